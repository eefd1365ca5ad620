"""A GPU has fallen off the bus.

## What it checks
Xid 79 in the kernel log since the last boot, and the other Xids that mean a GPU needs a reset (48, 74, 95, 119, 120,
154).

## Why it matters
A GPU that lost its link answers nothing until a reset or a power cycle; what fails is whatever touches it next.
Power, risers and cables are the usual causes.

## Example
```
NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.
Unable to determine the device handle for GPU0000:01:00.0: GPU is lost.
```

## What to do
Reset the machine. If it comes back: power supply, cable, slot, a lower power limit.

## References
- NVIDIA Xid catalogue
- NVIDIA/open-gpu-kernel-modules#900
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import host_finding, known_machine
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="HOST004",
    kind="xid79_fallen_off_bus",
    title="A GPU has fallen off the bus",
    stage="device",
    needs=("machine.xids",),
)

RESET = {
    48: "double-bit ECC error",
    74: "NVLink error",
    79: "fallen off the bus",
    95: "uncontained memory error",
    119: "GSP timeout",
    120: "GSP error",
    154: "recovery action needed",
}
"""NVIDIA's Xid catalogue: those whose action is a reset of the GPU or of the machine."""


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    found = machine.xids.value if isinstance(machine.xids, Known) else ()
    for number in sorted({one.number for one in found} & set(RESET)):
        hits = [one for one in found if one.number == number]
        yield host_finding(
            RULE,
            f"GPU at {hits[0].device}",
            (
                Premise(
                    f"the kernel log holds Xid {number} ({RESET[number]}) {len(hits)} times, last for {hits[-1].device}",
                    "dmesg",
                ),
            ),
            "the GPU is lost until it is reset"
            if number == 79
            else "the GPU may need a reset before it can be trusted",
            "RuntimeError: CUDA error: unspecified launch failure"
            if number != 79
            else "Unable to determine the device handle for GPU: GPU is lost.",
            (Remedy("reset the GPU or the machine, then look at power and link", ("reboot",)),),
            severity="error" if number == 79 else "warning",
            order=15,
            detail=tuple(f"Xid {one.number} {one.device}: {one.text}" for one in hits[-10:]),
        )

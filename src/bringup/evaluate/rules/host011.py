"""A GPU is on the bus and the driver cannot start it.

## What it checks
GPUs on the PCI bus that nvidia-smi does not list, with what the kernel log says of them: the proprietary module on a
GPU that only the open one drives, or a BAR that was not assigned.

## Why it matters
Blackwell GPUs are driven by the open kernel modules alone, and the installer of a distribution may choose the other.
A large BAR needs Above 4G Decoding in the firmware, and an eGPU or a passed-through GPU often lacks it.

## Example
```
NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2bb1) installed in this system requires use of the NVIDIA open kernel modules.
NVRM: RmInitAdapter failed!
```

## What to do
Install the open flavour of the module; turn Above 4G Decoding and Resizable BAR on.

## References
- NVIDIA/open-gpu-kernel-modules#862
- NVIDIA/open-gpu-kernel-modules#872
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import host_finding, known_machine, log, pci, smi
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="HOST011",
    kind="blackwell_init_fails_bar_or_module_flavor",
    title="A GPU is on the bus and the driver cannot start it",
    stage="device",
    needs=(
        "machine.pci",
        "machine.smi",
    ),
)


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    lines = [
        line
        for line in log(machine)
        if any(
            word in line
            for word in (
                "open kernel modules",
                "RmInitAdapter failed",
                "This PCI I/O region assigned to your NVIDIA device is invalid",
                "BAR1 is 0M",
            )
        )
    ]
    listed = {one.bus[-10:] for one in smi(machine)}
    absent = [
        one for one in pci(machine) if one.is_gpu and one.driver in ("", "nvidia") and one.address[-10:] not in listed
    ]
    if not absent or not lines:
        return
    flavour = any("requires use of the NVIDIA open kernel modules" in line for line in lines)
    remedy = (
        Remedy("install the open flavour of the kernel module", ("apt-get install nvidia-open",))
        if flavour
        else Remedy("turn on Above 4G Decoding and Resizable BAR in the firmware")
    )
    yield host_finding(
        RULE,
        f"GPU at {absent[0].address}",
        (
            Premise(
                f"the GPU at {absent[0].address} is on the bus, and nvidia-smi does not list it",
                "/sys/bus/pci/devices, nvidia-smi",
            ),
            Premise(f"the kernel says: {lines[-1].strip()}", "dmesg"),
        ),
        "this GPU cannot be used",
        "No devices were found",
        (remedy,),
        order=13,
    )

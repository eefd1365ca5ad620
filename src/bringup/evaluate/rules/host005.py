"""A GPU counts uncorrectable memory errors.

## What it checks
ECC counters, pending row remaps and failed remaps of each GPU.

## Why it matters
A pending remap takes effect at the next reset, until when the bad row is in use; a failed remap means that the GPU is
to be replaced. The engine dies in the middle of a batch.

## Example
```
RuntimeError: CUDA error: uncorrectable ECC error encountered
```

## What to do
Reset the GPU when a remap is pending; replace it when remapping failed.

## References
- vllm-project/vllm#5222
- NVIDIA GPU memory error management
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import host_finding, known_machine, smi
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="HOST005",
    kind="ecc_uncorrectable",
    title="A GPU counts uncorrectable memory errors",
    stage="device",
    needs=("machine.smi",),
)


def check(facts: Facts) -> Iterator[Finding]:
    for one in smi(known_machine(facts)):
        if not (one.ecc_uncorrectable > 0 or one.remap_pending or one.remap_failed):
            continue
        state = (
            "remapping a bad row failed"
            if one.remap_failed
            else "a bad row waits to be remapped"
            if one.remap_pending
            else f"{one.ecc_uncorrectable} uncorrectable errors are counted"
        )
        yield host_finding(
            RULE,
            f"GPU {one.index}",
            (Premise(f"on GPU {one.index} ({one.name}) {state}", "nvidia-smi -q"),),
            "a run can end at any time when it touches that memory",
            "RuntimeError: CUDA error: uncorrectable ECC error encountered",
            (
                Remedy(
                    "replace the GPU" if one.remap_failed else "reset the GPU",
                    () if one.remap_failed else (f"nvidia-smi --gpu-reset -i {one.index}",),
                ),
            ),
            severity="error" if one.remap_failed or one.remap_pending else "warning",
            order=30,
        )

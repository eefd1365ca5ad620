"""A GPU takes one process only.

## What it checks
The compute mode of each GPU as nvidia-smi lists it.

## Why it matters
In Exclusive_Process a second process on the GPU fails: an engine and its watcher, two replicas, a left-over run. In
Prohibited no process gets it. The mode outlives the job that set it.

## Example
```
RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable
```

## What to do
Set the default mode.

## References
- NVIDIA/DIGITS#2005
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import host_finding, known_machine, smi
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="HOST003",
    kind="exclusive_compute_mode",
    title="A GPU takes one process only",
    stage="device",
    needs=("machine.smi",),
)


def check(facts: Facts) -> Iterator[Finding]:
    held = [
        one for one in smi(known_machine(facts)) if one.compute_mode.lower().startswith(("exclusive", "prohibited"))
    ]
    if not held:
        return
    closed = any(one.compute_mode.lower() == "prohibited" for one in held)
    yield host_finding(
        RULE,
        f"GPU {held[0].index}",
        tuple(Premise(f"GPU {one.index} is in compute mode {one.compute_mode}", "nvidia-smi -q") for one in held),
        "no process can use it" if closed else "a second process on the same GPU fails",
        "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        (Remedy("set the default compute mode", tuple(f"nvidia-smi -i {one.index} -c DEFAULT" for one in held)),),
        severity="error" if closed else "warning",
        order=40,
    )

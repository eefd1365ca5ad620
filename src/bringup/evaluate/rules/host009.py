"""The fabric manager is of another release than the driver.

## What it checks
The release of nv-fabricmanager against the loaded kernel module.

## Why it matters
The fabric manager starts only with exactly its own driver release; after an upgrade of one of the two it fails at
boot.

## Example
```
fabric manager NVIDIA GPU driver interface version 570.86.15 don't match with driver version 570.124.06
```

## What to do
Install the fabric manager of the driver's release.

## References
- NVIDIA/nvtrust#55
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import host_finding, known_machine, module_release, module_source
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="HOST009",
    kind="fabric_manager_version_mismatch",
    title="The fabric manager is of another release than the driver",
    stage="device",
    needs=(
        "machine.module",
        "machine.fabric_manager_release",
    ),
)


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    module = module_release(machine)
    manager = machine.fabric_manager_release.value if isinstance(machine.fabric_manager_release, Known) else ""
    if not module or not manager or module == manager:
        return
    yield host_finding(
        RULE,
        "nvidia-fabricmanager",
        (
            Premise(f"the fabric manager is {manager}", "nv-fabricmanager --version"),
            Premise(f"the kernel module is {module}", module_source(machine)),
        ),
        "the fabric manager does not start, and CUDA does not either",
        f"fabric manager NVIDIA GPU driver interface version {manager} don't match with driver version {module}",
        (
            Remedy(
                "install the fabric manager of the driver's release",
                (f"apt-get install nvidia-fabricmanager-{module.split('.')[0]}={module}-1",),
            ),
        ),
        order=24,
    )

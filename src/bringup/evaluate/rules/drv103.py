"""An old compat libcuda hides the driver's own.

## What it checks
Whether the libcuda.so.1 that is met first lies in a compat folder and is older than the kernel module.

## Why it matters
A compat package bridges to a newer CUDA; one that is older than the driver only takes away what the driver has, or
ends with an unsupported pair.

## Example
```
Error 803: system has unsupported display driver / cuda driver combination
```

## What to do
Drop the compat folder from LD_LIBRARY_PATH and from ld.so.conf.d.

## References
- DeepVAC/TorchPod#43
- NVIDIA/nvidia-docker#1515
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import driver_library, host_finding, known_machine, module_release, module_source, newer
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="DRV103",
    kind="compat_libcuda_shadows_driver",
    title="An old compat libcuda hides the driver's own",
    stage="device",
    needs=(
        "machine.module",
        "machine.driver_files",
    ),
)


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    module, cuda = module_release(machine), driver_library(machine, "libcuda.so.1")
    if not module or cuda is None or not cuda.compat or not cuda.release or not newer(module, cuda.release):
        return
    yield host_finding(
        RULE,
        cuda.path,
        (
            Premise(f"the libcuda.so.1 that is met first is cuda-compat's of {cuda.release}", cuda.real),
            Premise(f"the kernel module is {module}, which is newer", module_source(machine)),
        ),
        "CUDA meets an older libcuda than the driver's own",
        "Error 803: system has unsupported display driver / cuda driver combination",
        (Remedy("drop the compat folder from the search", (f"rm -r {cuda.path.rpartition('/')[0]}", "ldconfig")),),
        order=16,
    )

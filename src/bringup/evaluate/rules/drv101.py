"""libcuda and the kernel module are no pair.

## What it checks
The release of the libcuda.so.1 that the loader meets first against the loaded kernel module, where libnvidia-ml fits
the module.

## Why it matters
A stray libcuda, from an older installation, an image or a folder on LD_LIBRARY_PATH, is met before the right one.
nvidia-smi uses libnvidia-ml and looks healthy.

## Example
```
RuntimeError: Unexpected error from cudaGetDeviceCount(). ... Error 803: system has unsupported display driver / cuda driver combination
```

## What to do
Remove the stray libcuda, or its folder from LD_LIBRARY_PATH.

## References
- NVIDIA/nvidia-docker#1256
- easydiffusion/easydiffusion#379
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import driver_library, host_finding, known_machine, module_release, module_source
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="DRV101",
    kind="driver_userland_combo_803",
    title="libcuda and the kernel module are no pair",
    stage="device",
    needs=(
        "machine.module",
        "machine.driver_files",
    ),
)


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    module, cuda = module_release(machine), driver_library(machine, "libcuda.so.1")
    management = driver_library(machine, "libnvidia-ml.so.1")
    if not module or cuda is None or not cuda.release or cuda.release == module or cuda.compat:
        return
    if management is not None and management.release and management.release != module:
        return  # all of the libraries differ: that is one fault, with a rule of its own
    yield host_finding(
        RULE,
        cuda.path,
        (
            Premise(f"the loaded kernel module is {module}", module_source(machine)),
            Premise(f"the libcuda.so.1 that is met first is of {cuda.release}", cuda.real),
        ),
        "CUDA refuses the pair, although nvidia-smi works",
        "Error 803: system has unsupported display driver / cuda driver combination",
        (Remedy(f"take the libcuda of {cuda.release} out of the way", (f"rm {cuda.path}", "ldconfig")),),
        order=18,
    )

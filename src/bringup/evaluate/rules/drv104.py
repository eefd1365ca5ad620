"""The driver's PTX compiler is missing beside libcuda.

## What it checks
Whether libnvidia-ptxjitcompiler.so.1 is found, in the release of libcuda.so.1.

## Why it matters
libcuda opens it only when some code has PTX and no SASS for the GPU. Containers that mount libcuda by hand leave it
out, so that most work runs and one kernel does not.

## Example
```
CUDA_ERROR_JIT_COMPILER_NOT_FOUND: PTX JIT compiler library not found
```

## What to do
Mount or install the driver's companion libraries of the same release.

## References
- anduril/jetpack-nixos#184
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import driver_library, has_gpu, host_finding, known_machine
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="DRV104",
    kind="ptx_jit_library_missing_or_unusable",
    title="The driver's PTX compiler is missing beside libcuda",
    stage="kernels",
    needs=("machine.driver_files",),
)


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    cuda, compiler = driver_library(machine, "libcuda.so.1"), driver_library(machine, "libnvidia-ptxjitcompiler.so.1")
    if cuda is None or not cuda.release or not has_gpu(machine):
        return
    if compiler is not None and compiler.release in ("", cuda.release):
        return
    what = f"is of {compiler.release}" if compiler is not None else "is not there"
    yield host_finding(
        RULE,
        "libnvidia-ptxjitcompiler.so.1",
        (
            Premise(f"libcuda.so.1 is of {cuda.release}", cuda.real),
            Premise(
                f"libnvidia-ptxjitcompiler.so.1 {what}",
                compiler.real if compiler is not None else cuda.path.rpartition("/")[0],
            ),
        ),
        "code that has PTX and no SASS for the GPU cannot run",
        "PTX JIT compiler library not found",
        (Remedy(f"install the driver's libraries of {cuda.release} together"),),
        severity="warning",
        order=45,
    )

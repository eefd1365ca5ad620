"""Forward compatibility is tried on a GPU that does not have it.

## What it checks
Whether the libcuda.so.1 that is met first is one of a cuda-compat package, newer than the kernel module, on a GPU
that is no datacenter product.

## Why it matters
CUDA images carry a newer libcuda for datacenter GPUs on older drivers. On GeForce and most RTX boards it refuses to
start instead of falling back.

## Example
```
RuntimeError: Unexpected error from cudaGetDeviceCount(). ... Error 804: forward compatibility was attempted on non supported HW
```

## What to do
Use a newer driver on the host, or an image of an older CUDA; or take the compat folder out of the search.

## References
- oobabooga/textgen#4407
- gpustack/gpustack#1254
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import (
    driver_library,
    gpu_list,
    host_finding,
    known_machine,
    module_release,
    module_source,
    newer,
)
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="DRV102",
    kind="forward_compat_on_geforce",
    title="Forward compatibility is tried on a GPU that does not have it",
    stage="device",
    needs=(
        "machine.module",
        "machine.driver_files",
        "gpus",
    ),
)


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    module, cuda = module_release(machine), driver_library(machine, "libcuda.so.1")
    classes = {gpu.product_class for gpu in gpu_list(facts)}
    if not module or cuda is None or not cuda.compat or not cuda.release or not newer(cuda.release, module):
        return
    if not classes & {"geforce", "gb10"}:
        return
    name = next(gpu.name for gpu in gpu_list(facts) if gpu.product_class in ("geforce", "gb10"))
    yield host_finding(
        RULE,
        cuda.path,
        (
            Premise(f"the libcuda.so.1 that is met first is cuda-compat's of {cuda.release}", cuda.real),
            Premise(f"the kernel module is {module}", module_source(machine)),
            Premise(f"{name} is no datacenter GPU, and only those take a newer libcuda", "CUDA compatibility guide"),
        ),
        "CUDA does not start",
        "Error 804: forward compatibility was attempted on non supported HW",
        (
            Remedy("install a driver on the host that is as new as the image's CUDA"),
            Remedy("take the compat folder out of the search", (f"rm -r {cuda.path.rpartition('/')[0]}", "ldconfig")),
        ),
        order=17,
    )

"""The driver's libraries are of another release than its kernel module.

## What it checks
The release in the name of the libnvidia-ml.so.1 that would be loaded, and what nvidia-smi says, against the release
of the loaded kernel module.

## Why it matters
A package manager replaces the libraries at once and the module only at the next boot. In a container without GPU
passthrough of the libraries (LXC above all) they are the container's own and must equal the host's module.

## Example
```
Failed to initialize NVML: Driver/library version mismatch
```

## What to do
Reboot, or unload and load the nvidia modules. In an LXC container install the user-space driver of the host's
release, without its kernel module.

## References
- illinois-scicomp/machine-shop-maintenance#70
- zzzhouuu/truenas-nvidia-drivers#19
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import driver_library, host_finding, known_machine, module_release, module_source
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="HOST001",
    kind="driver_library_version_mismatch",
    title="The driver's libraries are of another release than its kernel module",
    stage="device",
    needs=(
        "machine.module",
        "machine.driver_files",
    ),
)


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    module, library = module_release(machine), driver_library(machine, "libnvidia-ml.so.1")
    said = machine.smi_error.value if isinstance(machine.smi_error, Known) else ""
    differs = bool(module and library and library.release and library.release != module)
    if not differs and "version mismatch" not in said:
        return
    premises = []
    if module:
        premises.append(Premise(f"the loaded kernel module is {module}", module_source(machine)))
    if library is not None and library.release:
        premises.append(Premise(f"libnvidia-ml.so.1 is of {library.release}", library.real))
    if said:
        premises.append(Premise(f"nvidia-smi says: {said.splitlines()[0]}", "nvidia-smi -q"))
    kind = machine.container.value if isinstance(machine.container, Known) else "none"
    if kind in ("lxc", "container"):
        remedy = Remedy(
            f"install the user-space driver {module} in the container, without its module",
            (f"sh NVIDIA-Linux-x86_64-{module}.run --no-kernel-module",),
        )
    else:
        remedy = Remedy("load the module of the libraries' release", ("reboot",))
    yield host_finding(
        RULE,
        "NVIDIA driver",
        tuple(premises),
        "NVML and CUDA refuse to start",
        "Failed to initialize NVML: Driver/library version mismatch",
        (remedy,),
        order=10,
        misread_as="a missing GPU: torch.cuda.is_available() is only False",
    )

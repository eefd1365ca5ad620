"""The container was not given the driver's libraries.

## What it checks
Whether a container that shows signs of a GPU (device nodes, a loaded module, NVIDIA_VISIBLE_DEVICES) has a
libcuda.so.1 that the loader finds.

## Why it matters
The driver's libraries come from the host through the NVIDIA runtime or CDI. With --device alone, or with a runtime
that is not the default, the nodes are there and the libraries are not; NVIDIA_DRIVER_CAPABILITIES without compute
leaves libcuda out.

## Example
```
ImportError: libcuda.so.1: cannot open shared object file: No such file or directory
RuntimeError: Found no NVIDIA driver on your system.
```

## What to do
Start the container with --gpus all (Docker), --device nvidia.com/gpu=all (Podman), or the device plugin (Kubernetes).

## References
- sgl-project/sglang#4778
- vllm-project/vllm#27268
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import driver_library, has_gpu, host_finding, known_machine, module_release, module_source
from bringup.facts import Facts, Known, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="CTR001",
    kind="libcuda_missing_in_container",
    title="The container was not given the driver's libraries",
    stage="device",
    needs=(
        "machine.container",
        "machine.driver_files",
    ),
)


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    kind = machine.container.value if isinstance(machine.container, Known) else "none"
    if (
        kind in ("none", "wsl")
        or driver_library(machine, "libcuda.so.1") is not None
        or not isinstance(machine.driver_files, Known)
    ):
        return
    signs = []
    if module_release(machine):
        signs.append(Premise(f"the host's NVIDIA module {module_release(machine)} is loaded", module_source(machine)))
    if has_gpu(machine):
        signs.append(Premise("the container shows an NVIDIA GPU", "/dev, /sys/bus/pci/devices"))
    asked = variable(facts, "NVIDIA_VISIBLE_DEVICES")
    if asked and asked not in ("void", "none"):
        signs.append(Premise(f"NVIDIA_VISIBLE_DEVICES is {asked}", "environment"))
    if not signs:
        return
    start = {
        "podman": "podman run --device nvidia.com/gpu=all IMAGE",
        "lxc": "pct exec ID -- sh NVIDIA-Linux-x86_64-RELEASE.run --no-kernel-module",
    }
    capabilities = variable(facts, "NVIDIA_DRIVER_CAPABILITIES")
    if capabilities and "compute" not in capabilities and "all" not in capabilities:
        signs.append(Premise(f"NVIDIA_DRIVER_CAPABILITIES is {capabilities}, without compute", "environment"))
    yield host_finding(
        RULE,
        "libcuda.so.1",
        (*signs, Premise("no libcuda.so.1 is in ld.so.cache, LD_LIBRARY_PATH or the default folders", "the probe")),
        "no CUDA program starts in this container",
        "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
        (
            Remedy(
                "let the container runtime bring the driver's libraries",
                (start.get(kind, "docker run --gpus all IMAGE"),),
            ),
        ),
        order=8,
        misread_as="a broken torch",
    )

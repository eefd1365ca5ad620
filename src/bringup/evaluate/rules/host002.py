"""The device node /dev/nvidia-uvm is missing.

## What it checks
Whether /dev/nvidia-uvm exists where /dev/nvidia0 does.

## Why it matters
nvidia-smi needs only the GPU's own node and looks healthy; CUDA needs unified memory's. The node is made by nvidia-
modprobe when the first CUDA program runs as root, and is not there after a boot in which none did, nor in a container
that was given the other nodes only.

## Example
```
RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable
CUDA_VISIBLE_DEVICES after program start.
```

## What to do
Make the node on the host, and pass it on.

## References
- NVIDIA/nvidia-docker#1085
- NVIDIA/nvidia-docker#1447
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import devices, host_finding, known_machine
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="HOST002",
    kind="nvidia_uvm_device_missing",
    title="The device node /dev/nvidia-uvm is missing",
    stage="device",
    needs=("machine.devices",),
)


def check(facts: Facts) -> Iterator[Finding]:
    nodes = devices(known_machine(facts))
    if not any(node.startswith("/dev/nvidia") and node[11:].isdigit() for node in nodes) or "/dev/nvidia-uvm" in nodes:
        return
    yield host_finding(
        RULE,
        "/dev/nvidia-uvm",
        (Premise("the GPU's device node is there, /dev/nvidia-uvm is not", "/dev"),),
        "CUDA cannot start, although nvidia-smi works",
        "RuntimeError: CUDA unknown error",
        (Remedy("make the node on the host, and pass it to the container", ("nvidia-modprobe -u -c 0",), safe=True),),
        order=20,
        misread_as="a wrong CUDA_VISIBLE_DEVICES, which the message names",
    )

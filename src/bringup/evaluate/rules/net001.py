"""/dev/shm is too small for several GPUs.

## What it checks
Whether /dev/shm is smaller than 1 GiB when the stack shall run on more than one GPU.

## Why it matters
NCCL and the engines' worker processes share buffers there. Docker gives a container 64 MiB unless told otherwise.

## Example
```
NCCL WARN Error while creating shared memory segment /dev/shm/nccl-XXXXXX (size 9637888)
RuntimeError: NCCL error: unhandled system error
```

## What to do
Start the container with --shm-size=16g, or --ipc=host; in Kubernetes mount an emptyDir with medium Memory.

## References
- NVIDIA/nccl#342
- xorbitsai/inference#2836
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import gpu_count, host_finding, known_machine
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="NET001",
    kind="shm_too_small",
    title="/dev/shm is too small for several GPUs",
    stage="collective",
    needs=(
        "machine.shared_memory",
        "gpus",
    ),
)

LEAST = 1 << 30


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    if not isinstance(machine.shared_memory, Known) or gpu_count(facts) < 2 or machine.shared_memory.value >= LEAST:
        return
    yield host_finding(
        RULE,
        "/dev/shm",
        (
            Premise(f"/dev/shm holds {machine.shared_memory.value >> 20} MiB", "statvfs"),
            Premise(f"the stack runs on {gpu_count(facts)} GPUs", "gpus"),
        ),
        "NCCL and the workers run out of shared memory when they start",
        "NCCL WARN Error while creating shared memory segment",
        (Remedy("give the container more shared memory", ("docker run --shm-size=16g ...",), safe=True),),
        order=10,
        misread_as="an unhandled system error of NCCL, or a bus error of a worker",
    )

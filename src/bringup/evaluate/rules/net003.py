"""NCCL is too old for the GPU.

## What it checks
The NCCL that the stack's wheels bring, on several GPUs of compute capability 12.0.

## Why it matters
NCCL tunes and chooses protocols by architecture. On compute capability 12.0 releases up to 2.26.2 were seen to fail,
at start or from some message size on; 2.31.2 works. Between them nothing is known.

## Example
```
torch.distributed.DistBackendError: NCCL error ... Cuda failure 'an illegal memory access was encountered'
```

## What to do
Install a newer NCCL wheel of the same CUDA major.

## References
- NVIDIA/nccl#1637
- NVIDIA/nccl#2418
- pytorch/pytorch#152780
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import gpu_count, gpu_list, host_finding, numbers
from bringup.facts import Facts, distribution
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="NET003",
    kind="nccl_too_old_for_gpu",
    title="NCCL is too old for the GPU",
    stage="collective",
    needs=(
        "distributions",
        "gpus",
    ),
)

LAST_BAD = (2, 26, 2)


def check(facts: Facts) -> Iterator[Finding]:
    blackwell = next((gpu for gpu in gpu_list(facts) if (gpu.major, gpu.minor) == (12, 0)), None)
    nccl = next(
        (one for one in (distribution(facts, f"nvidia-nccl-cu{major}") for major in (13, 12)) if one is not None), None
    )
    if blackwell is None or nccl is None or gpu_count(facts) < 2 or numbers(nccl.version) > LAST_BAD:
        return
    yield host_finding(
        RULE,
        nccl.name,
        (
            Premise(f"NCCL is {nccl.version}", nccl.source or nccl.name),
            Premise(
                f"{blackwell.name} has compute capability {blackwell.compute_capability}, and there are {gpu_count(facts)} GPUs",
                "gpus",
            ),
            Premise("NCCL up to 2.26.2 was seen to fail there", "NVIDIA/nccl#1637, NVIDIA/nccl#2418"),
        ),
        "collectives fail or hang on these GPUs",
        "torch.distributed.DistBackendError: NCCL error",
        (Remedy("install a newer NCCL", (f"pip install --upgrade --no-deps '{nccl.name}>=2.27'",)),),
        order=20,
    )

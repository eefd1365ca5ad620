"""RDMA is there, and memory may not be locked.

## What it checks
RLIMIT_MEMLOCK where an RDMA adapter is present.

## Why it matters
RDMA pins its buffers. With the usual limit of 64 KiB or 8 MiB the registration fails, and NCCL's message speaks of
memory.

## Example
```
NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory
```

## What to do
Set memlock to unlimited: --ulimit memlock=-1, or LimitMEMLOCK=infinity.

## References
- NVIDIA/nccl-tests#206
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import gpu_count, host_finding, known_machine
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="NET002",
    kind="memlock_limit",
    title="RDMA is there, and memory may not be locked",
    stage="collective",
    needs=(
        "machine.limits",
        "machine.infiniband",
    ),
)


def check(facts: Facts) -> Iterator[Finding]:
    machine = known_machine(facts)
    if not isinstance(machine.limits, Known) or not isinstance(machine.infiniband, Known):
        return
    limit, adapters = machine.limits.value.memlock, machine.infiniband.value
    if limit < 0 or not adapters or limit >= 1 << 30:
        return
    yield host_finding(
        RULE,
        "RLIMIT_MEMLOCK",
        (
            Premise(f"{limit >> 10} KiB of memory may be locked", "getrlimit"),
            Premise(f"the machine has RDMA adapters: {', '.join(adapters[:4])}", "/sys/class/infiniband"),
        ),
        "NCCL cannot register its buffers with the adapter",
        "NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
        (Remedy("lift the limit", ("ulimit -l unlimited", "docker run --ulimit memlock=-1 ..."), safe=True),),
        severity="error" if gpu_count(facts) > 1 else "warning",
        order=12,
        misread_as="a machine that is out of memory",
    )

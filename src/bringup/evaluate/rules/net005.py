"""An NCCL variable is set to an unusual value.

## What it checks
NCCL variables that are known to break or slow a start when they are left over from another machine: interfaces that
do not exist there, buffer sizes beyond what RDMA registers, debugging switches.

## Why it matters
Such variables travel in images and profiles, and their effect looks like a broken network.

## Example
```
NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory
```

## What to do
Unset them unless they were measured on this machine.

## References
- vllm-project/vllm#19613
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import gpu_count, host_finding
from bringup.facts import Facts, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="NET005",
    kind="nccl_env_variable_bad",
    title="An NCCL variable is set to an unusual value",
    stage="collective",
    needs=("variables",),
)


def check(facts: Facts) -> Iterator[Finding]:
    size = variable(facts, "NCCL_BUFFSIZE") or ""
    if size.isdigit() and int(size) > 64 << 20:
        yield _found(
            "NCCL_BUFFSIZE",
            size,
            f"each channel asks for {int(size) >> 20} MiB",
            "NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
        )
    for name in ("NCCL_PROTO", "NCCL_ALGO"):
        value = variable(facts, name)
        if value and gpu_count(facts) > 1:
            yield _found(name, value, "it forbids NCCL its own choice for this machine", "")


def _found(name: str, value: str, what: str, error: str) -> Finding:
    return host_finding(
        RULE,
        name,
        (Premise(f"{name} is {value}", "environment"), Premise(what, "NCCL user guide, environment variables")),
        "collectives can fail or be slow for a reason that lies in a variable",
        error,
        (Remedy("let NCCL choose", (f"unset {name}",), safe=True),),
        severity="warning",
        order=40,
    )

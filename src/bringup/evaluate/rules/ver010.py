"""bitsandbytes carries no library for torch's CUDA.

## What it checks
The `libbitsandbytes_cuda*.so` that the installed release carries against the CUDA version of torch. The exact version is taken where
there is one; from 0.50 on else the nearest of the same major; BNB_CUDA_VERSION goes before both.

## Why it matters
The import goes on without its native code, and the first quantised layer fails.

## Example
```
RuntimeError: No compatible CUDA binary found at .../bitsandbytes/libbitsandbytes_cuda132.so
```

## What to do
A release of bitsandbytes for that CUDA version, or torch for a CUDA version that it carries.

## References
- bitsandbytes-foundation/bitsandbytes#427
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.faults import install
from bringup.evaluate.sonames import torch_cuda
from bringup.evaluate.variants import bitsandbytes_available, bitsandbytes_choice
from bringup.facts import Facts, distribution, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="VER010",
    kind="bitsandbytes_binary_missing_for_cuda",
    title="bitsandbytes carries no library for torch's CUDA",
    stage="weights",
    needs=("distributions", "libraries"),
)


def check(facts: Facts) -> Iterator[Finding]:
    one, torch = distribution(facts, "bitsandbytes"), distribution(facts, "torch")
    chosen, available = bitsandbytes_choice(facts), bitsandbytes_available(facts)
    if one is None or torch is None or chosen is None or chosen in available:
        return
    override = variable(facts, "BNB_CUDA_VERSION")
    carried = ", ".join(f"{name[:-1]}.{name[-1]}" for name in available) or "no CUDA version at all"
    reason = (
        Premise(f"BNB_CUDA_VERSION is {override}", "environment")
        if override
        else Premise(f"torch {torch.version} is built for CUDA {torch_cuda(facts)}", torch.source)
    )
    remedy = (
        Remedy("unset BNB_CUDA_VERSION", ("unset BNB_CUDA_VERSION",), safe=True)
        if override
        else Remedy("install a later release of bitsandbytes", (install(facts, "--upgrade bitsandbytes"),))
    )
    yield Finding(
        rule=RULE.code,
        kind=RULE.kind,
        severity="error",
        stage=RULE.stage,
        subject="bitsandbytes",
        because=(reason, Premise(f"bitsandbytes {one.version} carries libraries for {carried}", one.source)),
        therefore=f"bitsandbytes opens libbitsandbytes_cuda{chosen}.so, which is not there",
        predicted_error=f"RuntimeError: No compatible CUDA binary found at bitsandbytes/libbitsandbytes_cuda{chosen}.so",
        remedies=(remedy,),
    )

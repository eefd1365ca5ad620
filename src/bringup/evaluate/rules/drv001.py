"""The driver is older than the CUDA release that torch was built for.

## What it checks
The CUDA major version that the driver implements against that of the installed torch.

## Why it matters
A driver runs every CUDA release of its own major version, by minor-version compatibility, and none of a later major. The first
call into CUDA fails, and torch then says that there is no GPU.

## Example
```
RuntimeError: The NVIDIA driver on your system is too old (found version 12080).
```

## What to do
A newer driver, or torch built for the driver's CUDA major.

## References
- modelscope/FunASR#2973, lllyasviel/Fooocus#1313
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.drivers import version_pair
from bringup.evaluate.sonames import torch_cuda
from bringup.facts import Facts, Known, distribution
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="DRV001",
    kind="driver_older_than_cuda_runtime",
    title="The driver is older than the CUDA release of torch",
    stage="device",
    needs=("driver", "distributions"),
)


def check(facts: Facts) -> Iterator[Finding]:
    torch, cuda = distribution(facts, "torch"), torch_cuda(facts)
    if torch is None or not cuda or not isinstance(facts.driver, Known) or not facts.driver.value.cuda:
        return
    driver = facts.driver.value
    have, need = version_pair(driver.cuda), version_pair(cuda)
    if have[0] >= need[0]:
        return
    yield Finding(
        rule=RULE.code,
        kind=RULE.kind,
        severity="error",
        stage=RULE.stage,
        subject="torch",
        because=(
            Premise(f"torch {torch.version} is built for CUDA {cuda}", torch.source),
            Premise(f"driver {driver.version} implements CUDA {driver.cuda}", facts.driver.source),
        ),
        therefore=f"the driver cannot run anything of CUDA {need[0]}",
        predicted_error="RuntimeError: The NVIDIA driver on your system is too old "
        f"(found version {have[0] * 1000 + have[1] * 10}).",
        remedies=(
            Remedy(f"install a driver that implements CUDA {need[0]}.0 or later"),
            Remedy(f"or install torch built for CUDA {have[0]}"),
        ),
        fatal=True,
    )

"""The driver is older than a CUDA runtime of the stack.

## What it checks
The CUDA version that the driver implements against the one that torch was built for, and against the CUDA runtimes that are
installed beside it (`nvidia-cuda-runtime`) and that other packages link (`cupy-cuda13x`).

## Why it matters
From CUDA 11 on, a driver runs every CUDA release of its own major version, by minor-version compatibility, and of older ones, but
none of a later major. The first call into CUDA fails, and torch then says that there is no GPU. Minor-version compatibility does
not cover PTX: see GPU005.

## Example
```
RuntimeError: The NVIDIA driver on your system is too old (found version 12080). Please update your GPU driver by downloading and
installing a new version from the URL: http://www.nvidia.com/Download/index.aspx
```

## What to do
A newer driver, or torch built for the driver's CUDA major. The compatibility package of CUDA (`cuda-compat`) helps on data center
GPUs alone.

## References
- modelscope/FunASR#2973, lllyasviel/Fooocus#1313, vllm-project/vllm#47397
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from bringup.evaluate.drivers import branch_for, runs_runtime, version_pair
from bringup.evaluate.faults import install
from bringup.evaluate.sonames import torch_cuda
from bringup.facts import Distribution, Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="DRV001",
    kind="driver_older_than_cuda_runtime",
    title="The driver is older than a CUDA runtime of the stack",
    stage="device",
    needs=("driver", "distributions"),
)

BACKENDS = ("cu118", "cu126", "cu128", "cu129", "cu130")
"""CUDA variants of torch that uv knows by name (``--torch-backend``), oldest first."""

_RUNTIME = re.compile(r"nvidia-cuda-runtime(?:-cu(\d+))?$")
_NAMED = re.compile(r"cupy-cuda(\d+)x$")


class Need(NamedTuple):
    """A distribution that needs a driver for a CUDA version, and the clause that says so."""

    owner: Distribution
    cuda: str
    text: str


def check(facts: Facts) -> Iterator[Finding]:
    if not isinstance(facts.driver, Known) or not facts.driver.value.cuda:
        return
    driver = facts.driver.value
    unmet = [need for need in needs_of(facts) if not runs_runtime(driver.cuda, need.cuda)]
    # Where torch is among them, the runtime beside it is torch's own: one finding, not two.
    subjects = {need.owner.name for need in unmet}
    for need in unmet:
        if "torch" in subjects and _RUNTIME.match(need.owner.name):
            continue
        have, wanted = version_pair(driver.cuda), version_pair(need.cuda)
        branch = branch_for(f"{wanted[0]}.0")
        number = have[0] * 1000 + have[1] * 10
        is_torch = need.owner.name == "torch"
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity="error",
            stage=RULE.stage,
            subject=need.owner.name,
            because=(
                Premise(need.text, need.owner.source),
                Premise(f"driver {driver.version} implements CUDA {driver.cuda}", facts.driver.source),
            ),
            therefore=f"the driver cannot run anything of CUDA {wanted[0]}",
            predicted_error=f"RuntimeError: The NVIDIA driver on your system is too old (found version {number})."
            if is_torch
            else "CUDA driver version is insufficient for CUDA runtime version",
            remedies=(
                Remedy(
                    f"install driver {branch.major} or later" if branch else f"install a driver for CUDA {wanted[0]}"
                ),
                *_older_variant(facts, need, have),
            ),
            fatal=is_torch,
        )


def needs_of(facts: Facts) -> Iterator[Need]:
    """Every distribution whose name or build facts say which CUDA runtime it uses."""
    cuda = torch_cuda(facts)
    for one in facts.distributions.value if isinstance(facts.distributions, Known) else ():
        runtime, named = _RUNTIME.match(one.name), _NAMED.match(one.name)
        if one.name == "torch" and cuda:
            yield Need(one, cuda, f"torch {one.version} is built for CUDA {cuda}")
        elif runtime and one.version[:1].isdigit():
            yield Need(one, ".".join(one.version.split(".")[:2]), f"{one.name} {one.version} is installed")
        elif named:
            yield Need(one, f"{named.group(1)}.0", f"{one.name} {one.version} is built for CUDA {named.group(1)}")


def _older_variant(facts: Facts, need: Need, have: tuple[int, int]) -> tuple[Remedy, ...]:
    if need.owner.name.startswith("cupy-"):
        name = f"cupy-cuda{have[0]}x"
        return (Remedy(f"install {name}", (install(facts, name),)),)
    if need.owner.name != "torch":
        return ()
    fitting = [one for one in BACKENDS if runs_runtime(f"{have[0]}.{have[1]}", f"{one[2:-1]}.{one[-1]}")]
    if not fitting:
        return ()
    command = install(facts, f"--reinstall-package torch --torch-backend {fitting[-1]} torch")
    return (Remedy(f"install torch built for CUDA {fitting[-1][2:-1]}.{fitting[-1][-1]}", (command,)),)

"""A torch without CUDA beside a GPU.

## What it checks
Whether the installed torch is a CPU build while the stack shall run on NVIDIA GPUs.

## Why it matters
Resolvers take a CPU build where an index or a local version asks for it, and everything works except that no GPU is used.

## Example
```
AssertionError: Torch not compiled with CUDA enabled
```

## What to do
Install torch for the CUDA release of your driver; uv finds it with `--torch-backend auto`.

## References
- pytorch/pytorch#168065, nv-morpheus/Morpheus#2095
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.faults import install
from bringup.evaluate.sonames import torch_cuda
from bringup.facts import Facts, Known, distribution
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="VER007",
    kind="cpu_torch_installed",
    title="A torch without CUDA beside a GPU",
    stage="device",
    needs=("distributions", "gpus"),
)


def check(facts: Facts) -> Iterator[Finding]:
    torch = distribution(facts, "torch")
    if torch is None or torch_cuda(facts) != "" or dict(torch.build).get("hip") or not isinstance(facts.gpus, Known):
        return
    if not facts.gpus.value:
        return
    yield Finding(
        rule=RULE.code,
        kind=RULE.kind,
        severity="error",
        stage=RULE.stage,
        subject="torch",
        because=(
            Premise(f"torch {torch.version} is a build without CUDA", torch.source),
            Premise(f"the stack shall run on {facts.gpus.value[0].name}", facts.gpus.source),
        ),
        therefore="torch sees no GPU",
        predicted_error="AssertionError: Torch not compiled with CUDA enabled",
        remedies=(
            Remedy(
                "install torch for the CUDA release of the driver",
                (
                    install(
                        facts, f"--reinstall-package torch --torch-backend auto torch=={torch.version.split('+')[0]}"
                    ),
                ),
            ),
        ),
        order=40,
        fatal=True,
    )

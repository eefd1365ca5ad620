"""A package holds no code for the GPU.

## What it checks
The device code of every library of the stack, each by itself, against each GPU. Where a package holds several variants, the one
that it would load on that GPU is judged; the others are mentioned, and are no error.

## Why it matters
The package imports and then fails at its first kernel. Folder names and wheel names say little: what counts is what is in the file.

## Example
```
RuntimeError: CUDA error: no kernel image is available for execution on the device
```

## What to do
A wheel with code for the GPU, another back end of the engine, or a build from source for the GPU's architecture.

## References
- vllm-project/vllm#16515, sgl-project/sglang#7249, sgl-project/sglang#38515
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.device import device_gaps
from bringup.evaluate.device_findings import NO_KERNEL, device_finding
from bringup.facts import Facts
from bringup.findings import Finding, Rule

RULE = Rule(
    code="GPU002",
    kind="no_sass_for_gpu_in_extension",
    title="A package holds no code for the GPU",
    stage="kernels",
    needs=("libraries", "gpus"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for gap in device_gaps(facts):
        if gap.library.owner != "torch" and gap.kind == "absent":
            yield device_finding(RULE, facts, gap, NO_KERNEL)

"""The GPU is older than anything that a package holds code for.

## What it checks
Libraries whose device code is all for newer architectures than the GPU's.

## Why it matters
Wheels drop old architectures to stay small: torch for CUDA 12.8 and later holds nothing below 7.5, CUDA 13 nothing below 7.5
at all. Nothing translates newer code for an older GPU.

## Example
```
RuntimeError: CUDA error: no kernel image is available for execution on the device
```

## What to do
An older release, or the variant for an older CUDA version (torch for CUDA 12.6 still serves 5.0 to 7.0).

## References
- vllm-project/vllm#19542, easydiffusion/torchruntime#22, pytorch/pytorch#172352
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.device import device_gaps
from bringup.evaluate.device_findings import NO_KERNEL, device_finding
from bringup.facts import Facts
from bringup.findings import Finding, Rule

RULE = Rule(
    code="GPU003",
    kind="gpu_too_old_for_wheel",
    title="The GPU is older than anything that a package holds code for",
    stage="kernels",
    needs=("libraries", "gpus"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for gap in device_gaps(facts):
        if gap.kind == "too_old":
            yield device_finding(RULE, facts, gap, NO_KERNEL)

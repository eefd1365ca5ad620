"""Only code for another architecture-specific target.

## What it checks
Libraries whose code of the GPU's generation is all built for architecture-specific (`sm_120a`) or family (`sm_100f`) targets that
do not include the GPU.

## Why it matters
Code for `sm_120a` runs on compute capability 12.0 alone, not on 12.1; code for `sm_100f` on 10.0 and 10.3, not on 11.0. The plain
targets would have run.

## Example
```
CUDA error: no kernel image is available for execution on the device
This kernel only supports sm100f.
```

## What to do
A package with code for the GPU's own target, or for its family.

## References
- flashinfer-ai/flashinfer#3344, vllm-project/vllm#46796
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.device import device_gaps
from bringup.evaluate.device_findings import NO_KERNEL, device_finding
from bringup.facts import Facts
from bringup.findings import Finding, Rule

RULE = Rule(
    code="GPU004",
    kind="arch_specific_cubin_mismatch",
    title="Only code for another architecture-specific target",
    stage="kernels",
    needs=("libraries", "gpus"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for gap in device_gaps(facts):
        if gap.library.owner != "torch" and gap.kind == "arch_specific":
            yield device_finding(RULE, facts, gap, NO_KERNEL)

"""Only PTX that is too new for the driver.

## What it checks
Libraries without SASS for the GPU whose PTX has a newer ISA version than the driver's compiler takes.

## Why it matters
The driver compiles PTX, and refuses a version that it does not know. The CUDA version of torch says nothing about it: each library
was built by its own toolkit.

## Example
```
torch.AcceleratorError: CUDA error: the provided PTX was compiled with an unsupported toolchain.
```

## What to do
A newer driver, or a package built by a toolkit that is not newer than the driver, or with SASS for the GPU.

## References
- vllm-project/vllm#47397, vllm-project/vllm#31700, vllm-project/vllm#37140
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.device import device_gaps
from bringup.evaluate.device_findings import UNSUPPORTED_PTX, device_finding
from bringup.facts import Facts
from bringup.findings import Finding, Rule

RULE = Rule(
    code="GPU005",
    kind="ptx_newer_than_driver",
    title="Only PTX that is too new for the driver",
    stage="kernels",
    needs=("libraries", "gpus", "driver"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for gap in device_gaps(facts):
        if gap.kind == "ptx_too_new":
            yield device_finding(RULE, facts, gap, UNSUPPORTED_PTX)

"""torch holds no code for the GPU.

## What it checks
The SASS and PTX in torch's `libtorch_cuda.so` against each GPU: SASS runs on its own major architecture at the same or a later
minor one, PTX on every later architecture.

## Why it matters
Every operation on the GPU fails, asynchronously, so that the traceback often names another place.

## Example
```
torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device
```

## What to do
Install a torch release, or its variant for another CUDA version, that holds code for the GPU. A list of architectures alone
misleads: code for sm_86 runs on 8.9, code for sm_120 on 12.1.

## References
- vllm-project/production-stack#528, nerfstudio-project/gsplat#1053
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.device import device_gaps
from bringup.evaluate.device_findings import NO_KERNEL, device_finding
from bringup.facts import Facts
from bringup.findings import Finding, Rule

RULE = Rule(
    code="GPU001",
    kind="no_sass_for_gpu_in_torch",
    title="torch holds no code for the GPU",
    stage="kernels",
    needs=("libraries", "gpus"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for gap in device_gaps(facts):
        if gap.library.owner == "torch" and gap.kind in ("absent", "arch_specific"):
            yield device_finding(RULE, facts, gap, NO_KERNEL)

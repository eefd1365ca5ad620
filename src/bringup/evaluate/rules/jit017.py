"""nvcc is of another CUDA release than torch.

## What it checks
major.minor of the nvcc that torch's cpp_extension would take against torch.version.cuda.

## Why it matters
torch refuses to build an extension where the majors differ, and only warns where the minors do. What FlashInfer compiles
with another major links another libcudart than torch has loaded.

## Example
```
RuntimeError: The detected CUDA version (12.8) mismatches the version that was used to compile PyTorch (13.0).
```

## What to do
Let CUDA_HOME name a toolkit of torch's CUDA major.

## References
- Dao-AILab/flash-attention#1759, deepspeedai/DeepSpeed#3223, NVIDIA/apex#314
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from bringup.evaluate.jit import ORDER, by_kit, jit_finding, users
from bringup.evaluate.jit_users import cuda_of_torch
from bringup.evaluate.toolchain import release, short
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="JIT017",
    kind="nvcc_vs_torch_cuda_mismatch",
    title="nvcc is of another CUDA release than torch",
    stage="jit",
    needs=("distributions", "toolkits", "tools", "variables"),
)


def check(facts: Facts) -> Iterator[Finding]:
    cuda = cuda_of_torch(facts)
    for kit, now, ones in by_kit(facts, users(facts, "nvcc")):
        nvcc = kit.component("nvcc")
        if nvcc is None or not nvcc.version or not now or release(nvcc.version)[0] == release(cuda)[0]:
            continue
        starting = tuple(one for one in ones if one.user.name in ("FlashInfer", "torch's cpp_extension"))
        if not starting:
            continue
        found = jit_finding(
            RULE,
            facts,
            starting,
            because=(
                Premise(f"torch was built with CUDA {cuda}", "torch/version.py"),
                Premise(f"the nvcc that {starting[0].user.name} takes is {nvcc.version}", nvcc.path),
            ),
            therefore="torch refuses to build extensions, and what others build links another libcudart than torch has loaded",
            predicted_error=f"RuntimeError: The detected CUDA version ({short(nvcc.version)}) mismatches the version that was used "
            f"to compile PyTorch ({cuda})",
            remedies=(Remedy(f"let CUDA_HOME name a toolkit of CUDA {release(cuda)[0]}"),),
            order=ORDER["arch"] + 2,
            subject=nvcc.path,
        )
        yield replace(found, severity="warning", fatal=False)

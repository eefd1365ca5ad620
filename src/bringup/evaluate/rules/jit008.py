"""nvcc is too old for the GPU's architecture.

## What it checks
Whether the nvcc that each JIT user would start can target the compute capability of every GPU: by the table inside of the
nvcc binary itself, or by its release where the binary could not be read.

## Why it matters
A driver runs on a new GPU long before an old toolkit can compile for it, and an older nvcc that comes first on PATH wins.

## Example
```
nvcc fatal   : Unsupported gpu architecture 'compute_120a'
```

## What to do
Put a toolkit that knows the architecture first: CUDA_HOME, or the first nvcc on PATH.

## References
- ggml-org/llama.cpp#23224, flashinfer-ai/flashinfer#1658, dusty-nv/jetson-containers#1186
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, by_kit, compiles_premise, jit_finding, kit_label, users
from bringup.evaluate.jit_users import gpus_of
from bringup.evaluate.toolchain import first_toolkit, knows, suffix_for, toolkits
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="JIT008",
    kind="nvcc_too_old_for_arch",
    title="nvcc is too old for the GPU's architecture",
    stage="jit",
    needs=("distributions", "toolkits", "tools", "variables", "gpus"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for kit, now, ones in by_kit(facts, users(facts, "nvcc")):
        nvcc = kit.component("nvcc")
        if nvcc is None:
            continue
        for gpu in gpus_of(facts):
            arch, suffix = gpu.major * 10 + gpu.minor, suffix_for(gpu)
            asking = tuple(one for one in ones if one.user.name != "FlashInfer" or gpu.major != 12)
            if not asking or knows(kit.nvcc_knows, nvcc.version, arch, suffix) is not False:
                continue
            other = next(
                (
                    one.home
                    for one in toolkits(facts)
                    if one is not kit
                    and knows(one.nvcc_knows, one.version("nvcc"), arch, suffix)
                    and one.component("nvcc")
                ),
                "",
            )
            first = first_toolkit(arch, suffix)
            yield jit_finding(
                RULE,
                facts,
                asking,
                because=(
                    compiles_premise(facts, asking, "an nvcc for the GPU"),
                    Premise(f"{gpu.name} has compute capability {gpu.compute_capability}", "gpus"),
                    Premise(
                        f"nvcc {nvcc.version} of {kit_label(kit, now)} does not know compute_{arch}{suffix}", nvcc.path
                    ),
                ),
                therefore="no kernel can be compiled for this GPU",
                predicted_error=f"nvcc fatal   : Unsupported gpu architecture 'compute_{arch}{suffix}'",
                remedies=(
                    Remedy(
                        f"use a toolkit of CUDA {first or 'that knows the GPU'}{' or newer' if first else ''}",
                        (f"export CUDA_HOME={other}",) if other else (),
                    ),
                ),
                order=ORDER["arch"],
                subject=nvcc.path,
            )

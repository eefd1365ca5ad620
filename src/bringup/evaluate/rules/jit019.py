"""TORCH_CUDA_ARCH_LIST does not fit the GPU or the compiler.

## What it checks
Whether TORCH_CUDA_ARCH_LIST, where it is set, covers each GPU (an equal entry, or one of the same major and a smaller minor, or
an older one with +PTX), and whether the nvcc that would be used knows every entry.

## Why it matters
Images preset it for the machine that they were built on. Extensions that are compiled at run time then hold no code for the
GPU that they run on, and older FlashInfer releases take their targets from it.

## Example
```
RuntimeError: CUDA error: no kernel image is available for execution on the device
RuntimeError: FlashInfer requires GPUs with sm75 or higher
```

## What to do
Unset it, or let it name the GPU.

## References
- flashinfer-ai/flashinfer#371
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from bringup.evaluate.jit import ORDER, jit_finding, users
from bringup.evaluate.jit_users import gpus_of
from bringup.evaluate.toolchain import choose, compiler_kit, knows
from bringup.facts import Facts, Gpu, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="JIT019",
    kind="torch_cuda_arch_list_env_wrong",
    title="TORCH_CUDA_ARCH_LIST does not fit the GPU or the compiler",
    stage="jit",
    needs=("distributions", "variables", "gpus"),
)


def check(facts: Facts) -> Iterator[Finding]:
    value = variable(facts, "TORCH_CUDA_ARCH_LIST")
    ones = tuple(one for one in users(facts, "nvcc") if one.user.name in ("torch's cpp_extension", "FlashInfer"))
    if not value or not ones:
        return
    entries = [word for word in re.split(r"[ ;]+", value) if word]
    kit = compiler_kit(facts, choose(facts, ones[-1].user.search))
    unknown = [
        word
        for word in entries
        if kit is not None and _numbers(word) and knows(kit.nvcc_knows, kit.version("nvcc"), *_target(word)) is False
    ]
    missed = [gpu for gpu in gpus_of(facts) if not any(_covers(word, gpu) for word in entries)]
    if not missed and not unknown:
        return
    if missed:
        reason = Premise(
            f"no entry of it covers {missed[0].name} (compute capability {missed[0].compute_capability})",
            f"TORCH_CUDA_ARCH_LIST={value}",
        )
        error = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    else:
        target = "".join(str(part) for part in _target(unknown[0]))
        reason = Premise(
            f"nvcc {kit.version('nvcc') if kit else ''} does not know its entry {unknown[0]}",
            f"TORCH_CUDA_ARCH_LIST={value}",
        )
        error = f"nvcc fatal   : Unsupported gpu architecture 'compute_{target}'"
    found = jit_finding(
        RULE,
        facts,
        ones,
        because=(
            Premise(
                "torch's cpp_extension takes its targets from TORCH_CUDA_ARCH_LIST",
                "torch/utils/cpp_extension.py _get_cuda_arch_flags",
            ),
            reason,
        ),
        therefore="extensions that are compiled here do not run here",
        predicted_error=error,
        remedies=(Remedy("let torch ask the GPU", ("unset TORCH_CUDA_ARCH_LIST",), safe=True),),
        order=ORDER["arch"] + 4,
        subject="TORCH_CUDA_ARCH_LIST",
    )
    yield replace(found, severity="warning", fatal=False)


def _numbers(word: str) -> re.Match[str] | None:
    return re.match(r"(\d+)\.(\d)([af]?)(\+PTX)?$", word)


def _target(word: str) -> tuple[int, str]:
    match = _numbers(word)
    assert match is not None
    return int(match.group(1)) * 10 + int(match.group(2)), match.group(3)


def _covers(word: str, gpu: Gpu) -> bool:
    match = _numbers(word)
    if match is None:
        return True  # a name such as "Blackwell": not judged
    major, minor, suffix = int(match.group(1)), int(match.group(2)), match.group(3)
    if suffix == "a":
        return (major, minor) == (gpu.major, gpu.minor)
    return (major == gpu.major and minor <= gpu.minor) or (
        bool(match.group(4)) and (major, minor) <= (gpu.major, gpu.minor)
    )

"""FlashInfer says that the GPU is too old; its toolkit is.

## What it checks
Which CUDA release FlashInfer would see (its nvcc's, or torch's where it has none) when the GPU has compute capability 12.x,
against the release that this FlashInfer asks for; and whether FLASHINFER_CUDA_ARCH_LIST is in its form.

## Why it matters
FlashInfer swallows the error of its architecture detection and is left with an empty list of targets. The message then
speaks of GPUs older than sm_75, on the newest GPUs of all.

## Example
```
RuntimeError: FlashInfer requires GPUs with sm75 or higher. Detected TARGET_CUDA_ARCHS=[].
```

## What to do
Let FlashInfer find CUDA 12.9 or newer, or take a FlashInfer that is content with 12.8.

## References
- flashinfer-ai/flashinfer#3675, flashinfer-ai/flashinfer#3633, vllm-project/vllm#42393
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from bringup.evaluate.jit import ORDER, jit_finding, users
from bringup.evaluate.jit_users import InStack, cuda_of_torch, gpus_of
from bringup.evaluate.toolchain import choose, compiler_kit, release, short, toolkits
from bringup.facts import Facts, Gpu, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="JIT009",
    kind="flashinfer_sm75_message_means_old_toolkit",
    title="FlashInfer says that the GPU is too old; its toolkit is",
    stage="jit",
    needs=("distributions", "toolkits", "tools", "variables", "gpus"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for one in users(facts, "link"):
        asked = variable(facts, "FLASHINFER_CUDA_ARCH_LIST")
        if asked:
            yield from _list(facts, one, asked)
            continue
        for gpu in gpus_of(facts):
            if gpu.major == 12:
                yield from _detection(facts, one, gpu)


def _detection(facts: Facts, one: InStack, gpu: Gpu) -> Iterator[Finding]:
    kit = compiler_kit(facts, choose(facts, one.user.search))
    seen = kit.version("nvcc") if kit is not None else ""
    source = f"{kit.home}/bin/nvcc" if kit is not None and seen else "torch/version.py, since no nvcc is found"
    seen = seen or cuda_of_torch(facts)
    wanted = _wanted(one.version, gpu)
    if not seen or release(seen) >= release(wanted):
        return
    newer = next((other.home for other in toolkits(facts) if release(other.version("nvcc")) >= release(wanted)), "")
    yield jit_finding(
        RULE,
        facts,
        (one,),
        because=(
            Premise(f"{gpu.name} has compute capability {gpu.compute_capability}", "gpus"),
            Premise(f"FlashInfer {one.version} targets it from CUDA {wanted} on", one.user.source),
            Premise(f"the CUDA release that it finds is {short(seen)}", source),
        ),
        therefore="FlashInfer is left without any target architecture, and every module fails",
        predicted_error="RuntimeError: FlashInfer requires GPUs with sm75 or higher",
        misread_as="a GPU that is too old",
        remedies=(
            Remedy(
                f"let FlashInfer find CUDA {wanted} or newer",
                (f"export CUDA_HOME={newer}",) if newer else (),
            ),
        ),
        order=ORDER["arch"],
    )


def _wanted(version: str, gpu: Gpu) -> str:
    try:
        relaxed = Version(version) >= Version("0.7")
    except InvalidVersion:
        relaxed = False
    return "12.8" if relaxed and gpu.minor == 0 else "12.9"


def _list(facts: Facts, one: InStack, asked: str) -> Iterator[Finding]:
    wrong = next((word for word in asked.split(" ") if word.count(".") != 1), None)
    if wrong is None:
        return
    yield jit_finding(
        RULE,
        facts,
        (one,),
        because=(
            Premise(f"FLASHINFER_CUDA_ARCH_LIST holds {wrong!r}", f"FLASHINFER_CUDA_ARCH_LIST={asked}"),
            Premise(
                "FlashInfer splits each entry at one dot, as in 12.0 or 12.0f", "flashinfer/compilation_context.py:116"
            ),
        ),
        therefore="importing FlashInfer fails",
        predicted_error="ValueError: not enough values to unpack (expected 2, got 1)",
        remedies=(Remedy("write the architecture with its dot", ("export FLASHINFER_CUDA_ARCH_LIST=12.0f",)),),
        order=ORDER["arch"],
        subject="FLASHINFER_CUDA_ARCH_LIST",
    )

"""Something compiles at run time, and no nvcc can be found.

## What it checks
For each installed package that compiles CUDA at run time (FlashInfer, SGLang's own kernels, DeepGEMM, tilelang, torch's
cpp_extension) its own search for CUDA_HOME, step by step as its code does it: `CUDA_HOME`, `CUDA_PATH`, `which nvcc`,
`/usr/local/cuda`.

## Why it matters
Kernels are compiled minutes after the weights were loaded, or while CUDA graphs are captured, so the fault is met late.
pip's `nvidia-cuda-nvcc` lays a whole compiler below `site-packages/nvidia/cu13`, and none of these packages but tilelang
looks there: "nvcc is installed" and "nvcc is found" are two things. DeepGEMM fails at import, with an empty message.

## Example
```
RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist
OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.
AssertionError
```

## What to do
Install the compiler of the same CUDA release as the runtime headers, and set CUDA_HOME to it. Or bring the modules
ready-made: `flashinfer-jit-cache`.

## References
- vllm-project/vllm#49497, flashinfer-ai/flashinfer#1919, flashinfer-ai/flashinfer#1781, deepspeedai/DeepSpeed#2772
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from bringup.evaluate.jit import ORDER, by_home, compiles_premise, jit_finding, listed, users
from bringup.evaluate.jit_users import InStack, cuda_of_torch
from bringup.evaluate.toolchain import choose, compiler_kit, toolkit_release, toolkits, wheels_toolkit
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="JIT001",
    kind="nvcc_absent_or_cuda_home_unset",
    title="Something compiles at run time, and no nvcc can be found",
    stage="jit",
    needs=("distributions", "toolkits", "tools", "variables"),
)


def check(facts: Facts) -> Iterator[Finding]:
    needing = {one.user.name: one for one in (*users(facts, "nvcc"), *users(facts, "home"))}
    lacking: list[InStack] = []
    premises: list[Premise] = []
    for choice, ones in by_home(facts, needing.values()):
        kit = compiler_kit(facts, choice)
        if kit is not None and kit.component("nvcc") is not None:
            continue
        if choice.how in ("CUDA_HOME", "CUDA_PATH"):
            continue  # set, and wrong: that has a rule of its own
        lacking.extend(ones)
        if choice.home:
            premises.append(Premise(f"{choice.home}, which the search ends at, holds no nvcc", choice.source))
        else:
            premises.append(
                Premise(
                    "CUDA_HOME and CUDA_PATH are not set, PATH holds no nvcc, and there is no /usr/local/cuda",
                    choice.source,
                )
            )
    if not lacking:
        return
    ones = tuple(sorted(lacking, key=lambda one: (not one.default, one.user.stage != "import", one.user.order)))
    wheels = wheels_toolkit(facts)
    if wheels is not None:
        premises.append(
            Premise(
                f"the nvcc at {wheels.home}/bin is found by none of them, since they do not look there",
                ones[0].user.source,
            )
        )
    first = next((one for one in ones if one.user.absent), ones[0])
    found = jit_finding(
        RULE,
        facts,
        ones,
        because=(compiles_premise(facts, ones, "nvcc"), *dict.fromkeys(premises)),
        therefore=f"{listed(one.user.name for one in ones)} cannot compile",
        predicted_error=first.user.absent,
        misread_as="a broken package: DeepGEMM's message is empty" if first.user.absent == "AssertionError" else "",
        remedies=_remedies(facts),
        order=ORDER["home"],
        subject="nvcc",
    )
    # Where nothing at all is found, a package that asks at import ends the start there, before any compile.
    at_import = first.user.stage == "import" and first.default and not choose(facts, first.user.search).home
    yield replace(found, stage="import", order=90) if at_import else found


def _remedies(facts: Facts) -> tuple[Remedy, ...]:
    wheels = wheels_toolkit(facts)
    cuda = cuda_of_torch(facts)
    if wheels is not None:
        return (
            Remedy(
                "let CUDA_HOME name the toolkit that the wheels laid",
                (f"export CUDA_HOME={wheels.home}", 'export PATH="$CUDA_HOME/bin:$PATH"'),
            ),
        )
    if cuda.startswith("12"):
        return (
            Remedy(
                f"install the CUDA {cuda} toolkit of the system or of conda: the wheels of CUDA 12 hold no nvcc",
                (f"conda install -c nvidia cuda-nvcc={cuda} cuda-cudart-dev={cuda}",),
            ),
        )
    release = next((toolkit_release(facts, kit) for kit in toolkits(facts) if kit.cudart), "") or f"{cuda}.*"
    root = facts.roots[0] if facts.roots else "SITE_PACKAGES"
    return (
        Remedy(
            "install the compiler of the runtime headers' own release, and let CUDA_HOME name it",
            (
                f'pip install "cuda-toolkit[nvcc,cccl,crt,nvvm,cudart]=={release}"',
                f"export CUDA_HOME={root}/nvidia/cu{cuda.split('.')[0]}",
            ),
        ),
    )

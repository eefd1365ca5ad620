"""NVRTC does not know the GPU.

## What it checks
The release of the libnvrtc that a package compiles with (CuPy) against the architectures that this release compiles for: too
new for it, or dropped by it (CUDA 13 no longer compiles for compute capability below 7.5).

## Why it matters
NVRTC is chosen by the CUDA major in the package's name, cupy-cuda12x or cupy-cuda13x, not by the GPU.

## Example
```
cupy.cuda.compiler.CompileException: nvrtc: error: invalid value for --gpu-architecture (-arch)
```

## What to do
Install the package of the CUDA major that still, or already, knows the GPU.

## References
- cupy/cupy#9475, cupy/cupy#2087
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, jit_finding, users
from bringup.evaluate.jit_users import gpus_of
from bringup.evaluate.toolchain import first_toolkit, knows, toolkits
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="JIT016",
    kind="nvrtc_does_not_know_arch",
    title="NVRTC does not know the GPU",
    stage="jit",
    needs=("distributions", "toolkits", "gpus"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for one in users(facts, "nvrtc"):
        major = "13" if one.user.distribution.endswith("13x") else "12"
        nvrtc = next(
            (
                part
                for kit in toolkits(facts)
                for part in (kit.component("nvrtc"),)
                if part and part.version.startswith(f"{major}.")
            ),
            None,
        )
        if nvrtc is None:
            continue
        for gpu in gpus_of(facts):
            arch = gpu.major * 10 + gpu.minor
            if knows((), nvrtc.version, arch, "") is not False:
                continue
            first = first_toolkit(arch)
            yield jit_finding(
                RULE,
                facts,
                (one,),
                because=(
                    Premise(f"{one.user.distribution} {one.version} compiles with NVRTC {nvrtc.version}", nvrtc.path),
                    Premise(
                        f"{gpu.name} has compute capability {gpu.compute_capability}, which that NVRTC does not compile for",
                        "CUDA release notes",
                    ),
                ),
                therefore=f"every kernel of {one.user.name} fails to compile on this GPU",
                predicted_error="nvrtc: error: invalid value for --gpu-architecture (-arch)",
                remedies=(
                    Remedy(
                        f"use a {one.user.name} for a CUDA release that compiles for it{f' ({first} or newer)' if first else ''}"
                    ),
                ),
                order=ORDER["arch"],
            )

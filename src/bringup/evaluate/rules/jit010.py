"""The host compiler is too new for nvcc.

## What it checks
The major version of the gcc that nvcc would start (`CC` where the JIT user passes it on, `NVCC_CCBIN`, else the first gcc on
PATH) against the maximum in that toolkit's own `crt/host_config.h`.

## Why it matters
A distribution upgrade brings a newer gcc, and every CUDA compile of the machine stops.

## Example
```
#error -- unsupported GNU version! gcc versions later than 15 are not supported!
```

## What to do
Install an older g++ beside it and name it by CC, CXX and NVCC_CCBIN.

## References
- instructlab/instructlab#2169, ggml-org/llama.cpp#9205, NVlabs/instant-ngp#1562
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, by_kit, compiles_premise, jit_finding, users
from bringup.evaluate.toolchain import tool
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule
from bringup.machine import Tool

RULE = Rule(
    code="JIT010",
    kind="host_gcc_too_new_for_nvcc",
    title="The host compiler is too new for nvcc",
    stage="jit",
    needs=("distributions", "toolkits", "tools", "variables"),
)


def host_compiler(facts: Facts) -> Tool | None:
    """What nvcc starts for the host half: the one that a variable names, else gcc on PATH."""
    return tool(facts, "NVCC_CCBIN", "CC", "gcc")


def check(facts: Facts) -> Iterator[Finding]:
    compiler = host_compiler(facts)
    if compiler is None or "clang" in compiler.path.rpartition("/")[2]:
        return
    major = compiler.version.partition(".")[0]
    if not major.isdigit():
        return
    for kit, _, ones in by_kit(facts, users(facts, "nvcc")):
        if not kit.host_gcc_maximum or int(major) <= kit.host_gcc_maximum:
            continue
        most = kit.host_gcc_maximum
        yield jit_finding(
            RULE,
            facts,
            ones,
            because=(
                compiles_premise(facts, ones, "a host compiler that nvcc takes"),
                Premise(f"{compiler.path} is gcc {compiler.version}", compiler.path),
                Premise(f"nvcc {kit.version('nvcc')} takes gcc up to {most}", f"{kit.home}/include/crt/host_config.h"),
            ),
            therefore="every CUDA compile stops in the first header",
            predicted_error=f"#error -- unsupported GNU version! gcc versions later than {most} are not supported!",
            remedies=(
                Remedy(
                    f"install gcc {most} beside it and name it to nvcc",
                    (f"apt-get install g++-{most}", f"export CC=gcc-{most} CXX=g++-{most} NVCC_CCBIN=g++-{most}"),
                ),
            ),
            order=ORDER["host compiler"],
            subject=compiler.path,
        )

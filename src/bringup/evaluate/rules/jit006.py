"""Parts of one toolkit are of different releases.

## What it checks
nvcc starts cicc (the nvvm package), ptxas and the host compiler with the crt headers. From a table and the files' own bytes:
whether cicc writes a PTX ISA that ptxas takes, whether the `__cudaLaunch` calls that cicc writes fit the macro in crt's
headers, and whether cicc knows the options that nvcc gives it.

## Why it matters
The packages declare each other without versions, so a partial upgrade mixes them, and every message points elsewhere.

## Example
```
ptxas fatal   : Unsupported .version 9.2; current version is '9.0'
error: macro "__cudaLaunch" requires 2 arguments, but only 1 given
error: invalid option: --simt-only
```

## What to do
Install all parts through the cuda-toolkit package, which pins them to one release.

## References
- docs/benchmarks.md, "Toolchain": 640 of 640 real compiles predicted
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, by_kit, compiles_premise, jit_finding, kit_label, parts_remedy, users
from bringup.evaluate.toolchain import predict, ptx_isa
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Rule
from bringup.machine import Toolkit

RULE = Rule(
    code="JIT006",
    kind="toolkit_parts_out_of_step",
    title="Parts of one toolkit are of different releases",
    stage="jit",
    needs=("distributions", "toolkits", "tools", "variables"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for kit, now, ones in by_kit(facts, users(facts, "nvcc")):
        prediction = predict(kit, cccl=False)
        if prediction.fault not in ("option", "isa", "arity"):
            continue
        yield jit_finding(
            RULE,
            facts,
            ones,
            because=(
                compiles_premise(facts, ones, "a toolkit whose parts fit"),
                *_premises(kit, now, prediction.fault),
            ),
            therefore="not even an empty kernel compiles",
            predicted_error=prediction.error,
            misread_as="a fault in the package's sources",
            remedies=(parts_remedy(facts, kit, ("nvcc", "cccl", "crt", "nvvm", "cudart")),),
            order=ORDER["parts"],
            subject=kit.home,
        )


def _premises(kit: Toolkit, now: bool, fault: str) -> tuple[Premise, ...]:
    nvcc, nvvm, crt = kit.component("nvcc"), kit.component("nvvm"), kit.component("crt")
    assert nvcc is not None
    assert nvvm is not None
    first = Premise(f"nvcc of {kit_label(kit, now)} is {nvcc.version}", nvcc.path)
    cicc = Premise(f"its cicc is of {nvvm.version}", nvvm.path)
    if fault == "option":
        return (first, cicc, Premise("that nvcc passes --simt-only, which that cicc does not know", nvvm.path))
    if fault == "isa":
        written, taken = ptx_isa(nvvm.version), ptx_isa(kit.version("ptxas"))
        text = f"cicc {nvvm.version} writes PTX ISA {written}, ptxas {kit.version('ptxas')} takes {taken}"
        return (first, Premise(text, "PTX ISA release notes"))
    said = f" {crt.version}" if crt is not None and crt.version else ""
    arguments = "one argument" if kit.launch_arguments == 1 else f"{kit.launch_arguments} arguments"
    text = f"the crt headers{said} define __cudaLaunch with {arguments}, which is not how that cicc calls it"
    return (first, cicc, Premise(text, f"{crt.path if crt else kit.home}/host_runtime.h"))

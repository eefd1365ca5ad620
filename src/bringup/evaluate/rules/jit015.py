"""Triton's ptxas does not know the GPU.

## What it checks
The ptxas that Triton would start for each GPU (`TRITON_PTXAS_PATH`, `TRITON_PTXAS_BLACKWELL_PATH`, else its own, and from
compute capability 10.0 on its own ptxas-blackwell where it ships one), by the table inside of that binary.

## Why it matters
Triton carries its own assembler, which is older than the toolkit of the same machine. torch.compile then fails for a GPU on
which everything else works.

## Example
```
ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'
```

## What to do
Point TRITON_PTXAS_PATH at the ptxas of a newer toolkit, or install a newer Triton with the torch that pins it.

## References
- triton-lang/triton#8539, sgl-project/sglang#14075, flashinfer-ai/flashinfer#4217
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, compiles_premise, jit_finding, users
from bringup.evaluate.jit_users import gpus_of
from bringup.evaluate.toolchain import knows, suffix_for, toolkits
from bringup.facts import Facts, Gpu, Known
from bringup.findings import Finding, Premise, Remedy, Rule
from bringup.machine import Tool

RULE = Rule(
    code="JIT015",
    kind="ptxas_does_not_know_arch",
    title="Triton's ptxas does not know the GPU",
    stage="jit",
    needs=("distributions", "tools", "gpus"),
)


def ptxas_of(facts: Facts, gpu: Gpu) -> Tool | None:
    """The ptxas that Triton starts for a GPU: triton/backends/nvidia/compiler.py get_ptxas, triton/knobs.py."""
    named = {one.name: one for one in facts.tools.value} if isinstance(facts.tools, Known) else {}
    blackwell = named.get("triton/ptxas-blackwell")
    if gpu.major >= 10 and blackwell is not None:
        # A path that does not exist is passed over silently, in favour of the bundled one.
        return next((one for one in (named.get("TRITON_PTXAS_BLACKWELL_PATH"),) if one and one.version), blackwell)
    return next((one for one in (named.get("TRITON_PTXAS_PATH"),) if one and one.version), named.get("triton/ptxas"))


def check(facts: Facts) -> Iterator[Finding]:
    ones = users(facts, "ptxas")
    if not ones:
        return
    for gpu in gpus_of(facts):
        tool = ptxas_of(facts, gpu)
        arch, suffix = gpu.major * 10 + gpu.minor, suffix_for(gpu)
        if tool is None or knows(tool.knows, tool.version, arch, suffix) is not False:
            continue
        newer = next(
            (
                kit.home
                for kit in toolkits(facts)
                if knows(kit.ptxas_knows, kit.version("ptxas"), arch, suffix) and kit.component("ptxas")
            ),
            "",
        )
        yield jit_finding(
            RULE,
            facts,
            ones,
            because=(
                compiles_premise(facts, ones, "a ptxas for the GPU"),
                Premise(f"{gpu.name} has compute capability {gpu.compute_capability}", "gpus"),
                Premise(f"Triton's ptxas is {tool.version} and does not know sm_{arch}{suffix}", tool.path),
            ),
            therefore="no Triton kernel can be assembled for this GPU",
            predicted_error=f"ptxas fatal   : Value 'sm_{arch}{suffix}' is not defined for option 'gpu-name'",
            remedies=(
                Remedy(
                    "let Triton use the ptxas of a newer toolkit",
                    (f"export TRITON_PTXAS_PATH={newer}/bin/ptxas",) if newer else (),
                ),
            ),
            order=ORDER["ptxas"],
            subject=tool.path,
        )

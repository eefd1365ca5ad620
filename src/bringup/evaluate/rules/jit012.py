"""No C compiler is found.

## What it checks
Whether a C compiler is found by those that need one: Triton takes CC, else gcc, else clang from PATH; nvcc takes gcc.

## Why it matters
Triton compiles a small C launcher for every kernel, so that torch.compile and every Triton kernel of an engine need a host
compiler although they need no nvcc. Slim images have none.

## Example
```
RuntimeError: Failed to find C compiler. Please specify via CC environment variable or set triton.knobs.build.impl.
```

## What to do
Install build-essential, or gcc and libc's headers.

## References
- sgl-project/sglang#1067
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, compiles_premise, jit_finding, users
from bringup.evaluate.toolchain import tool
from bringup.facts import Facts, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="JIT012",
    kind="c_compiler_missing",
    title="No C compiler is found",
    stage="jit",
    needs=("distributions", "tools", "variables"),
)


def check(facts: Facts) -> Iterator[Finding]:
    ones = users(facts, "cc")
    asked = variable(facts, "CC")
    if asked:
        named = tool(facts, "CC")
        if named is None or not named.path:
            yield from _missing(
                facts, ones, f"CC names {asked}, which is not found", f"[Errno 2] No such file or directory: '{asked}'"
            )
        return
    if tool(facts, "gcc", "clang") is not None:
        return
    error = "RuntimeError: Failed to find C compiler. Please specify via CC environment variable"
    yield from _missing(facts, ones, "CC is not set, and PATH holds neither gcc nor clang", error)
    rest = users(facts, "cxx")
    if not ones and rest:
        yield from _missing(
            facts,
            rest,
            "PATH holds neither gcc nor clang",
            "nvcc fatal   : Failed to preprocess host compiler properties.",
        )


def _missing(facts: Facts, ones: tuple, reason: str, error: str) -> Iterator[Finding]:  # type: ignore[type-arg]
    if not ones:
        return
    yield jit_finding(
        RULE,
        facts,
        ones,
        because=(
            compiles_premise(facts, ones, "a C compiler"),
            Premise(reason, f"PATH={variable(facts, 'PATH') or ''}"),
        ),
        therefore="no kernel can be launched",
        predicted_error=error,
        remedies=(Remedy("install a C compiler", ("apt-get install build-essential",), safe=True),),
        order=ORDER["compiler"],
        subject="C compiler",
    )

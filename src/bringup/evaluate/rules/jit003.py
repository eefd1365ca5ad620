"""Something compiles at run time, and ninja is nowhere.

## What it checks
Whether PATH finds `ninja` when FlashInfer, SGLang's own kernels or torch's cpp_extension would compile.

## Why it matters
These packages write a build.ninja and start the program; the message of the oldest is only Python's own.

## Example
```
FileNotFoundError: [Errno 2] No such file or directory: 'ninja'
RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)
```

## What to do
`pip install ninja`, and keep the environment's bin folder on PATH.

## References
- flashinfer-python 0.7.2, flashinfer/jit/cpp_ext.py:433; torch 2.14.1, torch/utils/cpp_extension.py:2574
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, compiles_premise, jit_finding, listed, users
from bringup.evaluate.toolchain import off_path, tool
from bringup.facts import Facts, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="JIT003",
    kind="ninja_missing",
    title="Something compiles at run time, and ninja is nowhere",
    stage="jit",
    needs=("distributions", "tools"),
)

ERRORS = {
    "torch's cpp_extension": "RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)",
}
USUAL_ERROR = "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'"


def check(facts: Facts) -> Iterator[Finding]:
    ones = users(facts, "ninja")
    if not ones or tool(facts, "ninja") is not None or off_path(facts, "ninja") is not None:
        return
    yield jit_finding(
        RULE,
        facts,
        ones,
        because=(
            compiles_premise(facts, ones, "ninja"),
            Premise(
                "no folder of PATH holds ninja, and nor does the environment", f"PATH={variable(facts, 'PATH') or ''}"
            ),
        ),
        therefore=f"{listed(one.user.name for one in ones)} cannot compile",
        predicted_error=ERRORS.get(ones[0].user.name, USUAL_ERROR),
        remedies=(Remedy("install ninja into the environment", ("pip install ninja",), safe=True),),
        order=ORDER["ninja"],
        subject="ninja",
    )

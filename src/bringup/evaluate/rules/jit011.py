"""Python's C headers are missing.

## What it checks
Whether Python.h lies in the include folder of the interpreter that the environment was made from, when Triton (its
launcher) or torch's cpp_extension would compile against it.

## Why it matters
A distribution's Python comes without its headers, and a container's slim image too. Triton needs them in every start that
launches one kernel, torch.compile included.

## Example
```
driver.c:9:10: fatal error: Python.h: No such file or directory
subprocess.CalledProcessError: Command '['/usr/bin/gcc', ...
```

## What to do
Install the headers of the same Python: `python3.X-dev`.

## References
- sgl-project/sglang#18644, vllm-project/vllm#27890
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, compiles_premise, interpreter, jit_finding, machine, users
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="JIT011",
    kind="python_headers_missing",
    title="Python's C headers are missing",
    stage="jit",
    needs=("distributions", "machine.python_header"),
)


def check(facts: Facts) -> Iterator[Finding]:
    below, python = machine(facts), interpreter(facts)
    ones = users(facts, "python.h")
    if below is None or not isinstance(below.python_header, Known) or below.python_header.value or not ones:
        return
    version = ".".join(python.version.split(".")[:2]) if python is not None else "3"
    include = below.python_header.source
    first = "driver.c:9:10: " if ones[0].user.name == "Triton" else ""
    yield jit_finding(
        RULE,
        facts,
        ones,
        because=(
            compiles_premise(facts, ones, "Python.h"),
            Premise(f"{include} holds no Python.h", include),
        ),
        therefore="the first kernel that is launched ends the start",
        predicted_error=f"{first}fatal error: Python.h: No such file or directory",
        remedies=(Remedy("install the headers of this Python", (f"apt-get install python{version}-dev",), safe=True),),
        order=ORDER["python.h"],
        subject="Python.h",
    )

"""ninja is installed, and PATH does not find it.

## What it checks
Whether `ninja` lies in the environment's own bin folder while that folder is not on PATH.

## Why it matters
Starting `/srv/venv/bin/python` from a service file or a container's entry point leaves PATH as it was. Python finds its
packages, the program `ninja` is not found, and the message says that it is missing although `pip show ninja` knows it.

## Example
```
FileNotFoundError: [Errno 2] No such file or directory: 'ninja'
```

## What to do
Put the environment's bin folder on the PATH of the service that starts the engine.

## References
- flashinfer-ai/flashinfer#3386
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, compiles_premise, jit_finding, listed, users
from bringup.evaluate.rules.jit003 import ERRORS, USUAL_ERROR
from bringup.evaluate.toolchain import off_path, tool
from bringup.facts import Facts, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="JIT004",
    kind="ninja_installed_but_not_on_path",
    title="ninja is installed, and PATH does not find it",
    stage="jit",
    needs=("distributions", "tools"),
)


def check(facts: Facts) -> Iterator[Finding]:
    ones = users(facts, "ninja")
    hidden = off_path(facts, "ninja")
    if not ones or hidden is None or tool(facts, "ninja") is not None:
        return
    folder = hidden.path.rpartition("/")[0]
    yield jit_finding(
        RULE,
        facts,
        ones,
        because=(
            compiles_premise(facts, ones, "ninja"),
            Premise(f"ninja lies at {hidden.path}", hidden.path),
            Premise(f"{folder} is not on PATH", f"PATH={variable(facts, 'PATH') or ''}"),
        ),
        therefore=f"{listed(one.user.name for one in ones)} cannot compile, although ninja is installed",
        predicted_error=ERRORS.get(ones[0].user.name, USUAL_ERROR),
        misread_as="a missing package",
        remedies=(Remedy("put the environment's bin folder on PATH", (f'export PATH="{folder}:$PATH"',), safe=True),),
        order=ORDER["ninja"],
        subject="ninja",
    )

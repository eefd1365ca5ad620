"""A wheel does not fit the interpreter.

## What it checks
The tags of every distribution against the stack's Python: version, ABI, and the machine. A wheel tagged `abi3` fits its own and
every later Python 3; a wheel that demands a newer Python than the one there is told, too.

## Why it matters
Copied environments and wrong containers leave extension modules that the interpreter does not even look at, and the import fails
with "no module named".

## Example
```
ModuleNotFoundError: No module named 'sgl_kernel.common_ops'
```

## What to do
Install the wheel for this Python, or take the Python that the wheels are for.

## References
- nano-aha#3, vllm-project/vllm#43435
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from bringup.evaluate.faults import install
from bringup.evaluate.tags import fits
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="PY001",
    kind="python_abi_tag",
    title="A wheel does not fit the interpreter",
    stage="install",
    needs=("distributions", "python"),
)


def check(facts: Facts) -> Iterator[Finding]:
    if not isinstance(facts.distributions, Known) or not isinstance(facts.python, Known):
        return
    python = facts.python.value
    for one in facts.distributions.value:
        reason = ""
        if one.tags and not any(fits(tag, python) for tag in one.tags):
            reason = f"{one.name} {one.version} is built for {', '.join(one.tags[:3])}"
        elif one.requires_python and not _allows(one.requires_python, python.version):
            reason = f"{one.name} {one.version} needs Python {one.requires_python}"
        if not reason:
            continue
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity="error",
            stage=RULE.stage,
            subject=one.name,
            because=(
                Premise(reason, one.source),
                Premise(f"the interpreter is Python {python.version}", facts.python.source),
            ),
            therefore=f"{one.name} does not fit this Python",
            predicted_error=f"ModuleNotFoundError: No module named '{one.top_level[0] if one.top_level else one.name}'",
            remedies=(Remedy(f"reinstall {one.name} for this Python", (install(facts, f"--reinstall {one.name}"),)),),
        )


def _allows(specifier: str, version: str) -> bool:
    try:
        return SpecifierSet(specifier).contains(version, prereleases=True)
    except InvalidSpecifier:
        return True

"""A declared requirement is not met.

## What it checks
Requires-Dist of every distribution, its markers evaluated for the stack's Python, against what is installed: what `pip check` does.

## Why it matters
A declared pin is the author's word about what works. It is a warning here, since it says nothing about what fails; rules about the
pairs that are known to fail say more.

## Example
```
sglang 0.5.23 requires transformers==5.19.0, but you have transformers 5.2.0
```

## What to do
Install the release that is asked for.

## References
- pypa/pip, command `pip check`
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.faults import install
from bringup.evaluate.requirements import is_numpy_abi, unmet_requirements
from bringup.evaluate.version_pairs import PAIRS
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="VER001",
    kind="requirement_unmet",
    title="A declared requirement is not met",
    stage="install",
    needs=("distributions",),
)


def check(facts: Facts) -> Iterator[Finding]:
    for one in unmet_requirements(facts):
        if any(pair.matches(one) for pair in PAIRS) or is_numpy_abi(one):
            continue
        asked = f"{one.name}{one.specifier}"
        have = (
            f"{one.name} {one.found.version} is installed" if one.found is not None else f"{one.name} is not installed"
        )
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity="warning",
            stage=RULE.stage,
            subject=one.owner.name,
            because=(
                Premise(f"{one.owner.name} {one.owner.version} declares that it needs {asked}", one.owner.source),
                Premise(have, one.found.source if one.found is not None else facts.target),
            ),
            therefore=f"{one.owner.name} {one.owner.version} was not meant to run with this {one.name}",
            remedies=(Remedy(f"install {asked}", (install(facts, f"'{asked}'"),)),),
        )

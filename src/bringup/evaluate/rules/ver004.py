"""Triton is not the release that torch pins.

## What it checks
What torch declares of triton against the release that is installed.

## Why it matters
Torch's compiler uses triton's internals, which change with each release.

## Example
```
AttributeError deep inside of a compiled function
```

## What to do
Install the triton release that is asked for, or the release of torch that goes with yours.

## References
- triton-lang/triton#7594, pytorch/pytorch#127271
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.version_pairs import pair_findings
from bringup.facts import Facts
from bringup.findings import Finding, Rule

RULE = Rule(
    code="VER004",
    kind="triton_version_vs_torch",
    title="triton is not the release that torch pins",
    stage="import",
    needs=("distributions",),
)


def check(facts: Facts) -> Iterator[Finding]:
    yield from pair_findings(RULE, facts)

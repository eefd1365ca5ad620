"""Torchvision and torch are no released pair.

## What it checks
What torchvision declares of torch against the release that is installed.

## Why it matters
Torchvision's operators are compiled against one torch release.

## Example
```
RuntimeError: operator torchvision::nms does not exist
```

## What to do
Install the torch release that is asked for, or the release of torchvision that goes with yours.

## References
- vladmandic/sdnext#3531
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.version_pairs import pair_findings
from bringup.facts import Facts
from bringup.findings import Finding, Rule

RULE = Rule(
    code="VER002",
    kind="torchvision_vs_torch",
    title="torchvision and torch are no released pair",
    stage="import",
    needs=("distributions",),
)


def check(facts: Facts) -> Iterator[Finding]:
    yield from pair_findings(RULE, facts)

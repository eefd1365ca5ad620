"""Xformers was built for another torch.

## What it checks
What xformers declares of torch against the release that is installed.

## Why it matters
Xformers goes on without its operators, and every call of one fails later.

## Example
```
WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions.
```

## What to do
Install the torch release that is asked for, or the release of xformers that goes with yours.

## References
- pia#30, rein#27
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.version_pairs import pair_findings
from bringup.facts import Facts
from bringup.findings import Finding, Rule

RULE = Rule(
    code="VER003",
    kind="xformers_vs_torch",
    title="xformers was built for another torch",
    stage="import",
    needs=("distributions",),
)


def check(facts: Facts) -> Iterator[Finding]:
    yield from pair_findings(RULE, facts)

"""Transformers is outside of the engine's range.

## What it checks
What sglang and vllm declare of transformers against the release that is installed.

## Why it matters
Engines use transformers' internals, which move between releases.

## Example
```
ImportError: cannot import name
```

## What to do
Install the transformers release that is asked for, or the release of sglang that goes with yours.

## References
- QwenLM/Qwen3-VL#2058
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.version_pairs import pair_findings
from bringup.facts import Facts
from bringup.findings import Finding, Rule

RULE = Rule(
    code="VER005",
    kind="transformers_vs_engine",
    title="transformers is outside of the engine's range",
    stage="import",
    needs=("distributions",),
)


def check(facts: Facts) -> Iterator[Finding]:
    yield from pair_findings(RULE, facts)

"""Torchvision or torchaudio, and torch, are no released pair.

## What it checks
What torchvision and torchaudio declare of torch against the release that is installed.

## Why it matters
Their operators are compiled against one torch release. Torchvision then registers none of them, and whoever imports it
meets that as another fault: transformers says that it cannot import a model class.

## Example
```
RuntimeError: operator torchvision::nms does not exist
```

## What to do
Install the torch release that is asked for, or the releases of the others that go with yours.

## References
- vladmandic/sdnext#3531, vllm-project/vllm-ascend#477
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.version_pairs import pair_findings
from bringup.facts import Facts
from bringup.findings import Finding, Rule

RULE = Rule(
    code="VER002",
    kind="torchvision_vs_torch",
    title="torchvision or torchaudio, and torch, are no released pair",
    stage="import",
    needs=("distributions",),
)


def check(facts: Facts) -> Iterator[Finding]:
    yield from pair_findings(RULE, facts)

"""A library asks for a newer libstdc++ than the loader finds.

## What it checks
The `GLIBCXX_` and `CXXABI_` versions that a library of the stack asks for, against those that the `libstdc++.so.6` found first
defines.

## Why it matters
Whichever copy of libstdc++ is loaded first serves the whole process: a conda environment's older one, or one that
LD_LIBRARY_PATH puts in front, hides the host's newer one.

## Example
```
ImportError: .../lib/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by ...)
```

## What to do
A newer libstdc++ in front (`conda install -c conda-forge libstdcxx-ng`), or the older copy out of the search order.

## References
- llm-d/kv-cache#445, kvcache-ai/ktransformers#439
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.faults import missing_versions
from bringup.facts import Facts
from bringup.findings import Finding, Rule

RULE = Rule(
    code="LIB007",
    kind="glibcxx_too_old",
    title="A library asks for a newer libstdc++ than the loader finds",
    stage="import",
    needs=("libraries", "system_libraries"),
)


def check(facts: Facts) -> Iterator[Finding]:
    yield from missing_versions(
        RULE,
        facts,
        ("GLIBCXX_", "CXXABI_"),
        "is found first and does not define it",
        "cannot be loaded with this libstdc++",
        "put a newer libstdc++ in front, or take the older copy out of the search order",
    )

"""A library asks for a newer libc or libstdc++ than the loader finds.

## What it checks
The symbol versions (`GLIBC_2.38`, `GLIBCXX_3.4.32`, `CXXABI_1.3.15`) that a library of the stack asks of the C and C++ runtime, against
those that the copy found first defines. A conda environment's own `libstdc++.so.6` counts where it is found first.

## Why it matters
A library that was built on a newer system refers to newer versions, and the loader refuses it whole.

## Example
```
ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by .../flash_attn_2_cuda.so)
```

## What to do
A wheel built for an older system, or a newer system. For libstdc++ alone: a newer libstdc++ earlier in the search order.

## References
- Dao-AILab/flash-attention#1708, vllm-project/vllm#6562, llm-d/kv-cache#445
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.faults import missing_versions
from bringup.facts import Facts
from bringup.findings import Finding, Rule

RULE = Rule(
    code="LIB006",
    kind="glibc_too_old",
    title="A library asks for a newer libc than the host has",
    stage="import",
    needs=("libraries", "system_libraries"),
)


def check(facts: Facts) -> Iterator[Finding]:
    yield from missing_versions(
        RULE,
        facts,
        ("GLIBC_",),
        "does not define it",
        "was built on a newer system and cannot be loaded here",
        "install a wheel built for an older system, or run on a newer one",
    )

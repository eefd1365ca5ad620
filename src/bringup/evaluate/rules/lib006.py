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

from bringup.evaluate.faults import faults, finding, owner_label
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="LIB006",
    kind="glibc_too_old",
    title="A library asks for a newer libc than the host has",
    stage="import",
    needs=("libraries", "system_libraries"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for fault in faults(facts):
        entries = [one for one in fault.versions if one.version.startswith("GLIBC_")]
        if not entries:
            continue
        library, first = fault.library, entries[-1]
        yield finding(
            RULE,
            fault,
            because=(
                Premise(f"{owner_label(facts, library)} asks for {first.version}", library.source),
                Premise(f"{first.library} does not define it", first.library),
            ),
            therefore=f"{library.path} was built on a newer system and cannot be loaded here",
            predicted_error=f"ImportError: {first.library}: version `{first.version}' not found "
            f"(required by {first.needed_by})",
            remedies=(Remedy("install a wheel built for an older system, or run on a newer one"),),
            detail=tuple(f"{one.version} of {one.library} for {one.needed_by}" for one in entries),
        )

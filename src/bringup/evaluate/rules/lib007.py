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

from bringup.evaluate.faults import faults, finding, owner_label
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="LIB007",
    kind="glibcxx_too_old",
    title="A library asks for a newer libstdc++ than the loader finds",
    stage="import",
    needs=("libraries", "system_libraries"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for fault in faults(facts):
        entries = [one for one in fault.versions if one.version.startswith(("GLIBCXX_", "CXXABI_"))]
        if not entries:
            continue
        library, first = fault.library, entries[-1]
        yield finding(
            RULE,
            fault,
            because=(
                Premise(f"{owner_label(facts, library)} asks for {first.version}", library.source),
                Premise(f"{first.library} is found first and does not define it", first.library),
            ),
            therefore=f"{library.path} cannot be loaded with this libstdc++",
            predicted_error=f"ImportError: {first.library}: version `{first.version}' not found "
            f"(required by {first.needed_by})",
            remedies=(Remedy("put a newer libstdc++ in front, or take the older copy out of the search order"),),
            detail=tuple(f"{one.version} of {one.library} for {one.needed_by}" for one in entries),
        )

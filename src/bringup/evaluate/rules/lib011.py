"""A file that should be a library cannot be read as one.

## What it checks
Files of the stack that are named like shared libraries or device code, or that describe a distribution, and whose bytes contradict
themselves: cut off, damaged, or not permitted to be read.

## Why it matters
A download that broke off or a disk that filled leaves such files, and the loader refuses them. Nothing else is said about a file that
could not be read, so that the rest of a report is about less than the whole stack.

## Example
```
ImportError: .../x.so: file too short
ImportError: .../x.so: invalid ELF header
```

## What to do
Reinstall the package that owns the file.

## References
- vllm-project/vllm#1718
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.faults import install
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="LIB011",
    kind="library_unreadable",
    title="A file that should be a library cannot be read as one",
    stage="import",
    needs=("unreadable",),
)


def check(facts: Facts) -> Iterator[Finding]:
    if not isinstance(facts.unreadable, Known):
        return
    for one in facts.unreadable.value:
        owner = f"{one.owner}'s {one.path}" if one.owner else one.path
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity="warning",
            stage=RULE.stage,
            subject=one.path,
            because=(Premise(f"{owner} cannot be read: {one.reason}", one.path),),
            therefore="nothing more is known of it, and loading it would fail",
            remedies=(
                Remedy(f"reinstall {one.owner}", (install(facts, f"--reinstall {one.owner}"),), safe=True)
                if one.owner
                else Remedy("reinstall the package that it belongs to"),
            ),
        )

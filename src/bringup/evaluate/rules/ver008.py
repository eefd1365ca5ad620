"""Two distributions own the same file with different content.

## What it checks
RECORD files that claim one path with different hashes. Pairs of NVIDIA's libraries for two CUDA majors have their own rule, VER009.

## Why it matters
The distribution that was installed last wins, and uninstalling or upgrading either one breaks the other.

## Example
```
ImportError: cannot import name 'driver' from 'cuda.bindings'
```

## What to do
Keep one of the two, and reinstall it after the other is gone.

## References
- pytorch/pytorch#186591
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.cuda_majors import majors_of
from bringup.evaluate.faults import install
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="VER008",
    kind="two_distributions_own_a_file",
    title="Two distributions own the same file",
    stage="install",
    needs=("shared_paths",),
)


def check(facts: Facts) -> Iterator[Finding]:
    if not isinstance(facts.shared_paths, Known):
        return
    by_owners: dict[tuple[str, ...], list[str]] = {}
    for shared in facts.shared_paths.value:
        by_owners.setdefault(tuple(sorted(shared.owners)), []).append(shared.path)
    for owners, paths in by_owners.items():
        if majors_of(owners):
            continue
        libraries = [path for path in paths if ".so" in path.rpartition("/")[2]]
        names = " and ".join(owners)
        first = (libraries or paths)[0]
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity="warning" if libraries else "info",
            stage=RULE.stage,
            subject=owners[0],
            because=(
                Premise(
                    f"{names} both claim {_files(len(paths))} with different content, {first} among them",
                    "RECORD of each",
                ),
            ),
            therefore="whichever was installed last has overwritten the other",
            remedies=(
                Remedy(
                    f"keep one of {names}, and reinstall it after the other is gone",
                    (install(facts, f"--reinstall-package {owners[-1]} {owners[-1]}"),),
                ),
            )
            if libraries
            else (),
            detail=tuple(paths),
        )


def _files(count: int) -> str:
    return "one file" if count == 1 else f"{count} files"

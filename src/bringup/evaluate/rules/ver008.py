"""Two distributions own the same file with different content.

## What it checks
RECORD files that claim one path with different hashes.

## Why it matters
The distribution that was installed last wins, and uninstalling or upgrading either one breaks the other. With CUDA wheels for two
major versions that lay into the same folders this ends in libraries of mixed releases.

## Example
```
ImportError: .../libcudnn.so.9: undefined symbol
```

## What to do
Uninstall both, then install the one that torch pins.

## References
- pytorch/pytorch#186591, rwth-i6/returnn#1802
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="VER008",
    kind="two_cuda_majors_in_env",
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
        libraries = [path for path in paths if ".so" in path.rpartition("/")[2]]
        names = " and ".join(owners)
        first = (libraries or paths)[0]
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind if all(owner.startswith("nvidia-") for owner in owners) else "two_distributions_own_a_file",
            severity="warning" if libraries else "info",
            stage=RULE.stage,
            subject=owners[0],
            because=(
                Premise(f"{names} both claim {len(paths)} files with different content, {first} among them", "RECORD"),
            ),
            therefore="whichever was installed last has overwritten the other",
            remedies=(Remedy(f"keep one of {names}, and reinstall it"),) if libraries else (),
            detail=tuple(paths),
        )

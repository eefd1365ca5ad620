"""One process would hold two major versions of a CUDA library.

## What it checks
What opening each library of the stack adds to a process that has imported torch: a CUDA library of another major version than the
one that torch has loaded (`libcudart.so.12` beside `libcudart.so.13`).

## Why it matters
Both load, since their sonames differ, and then each keeps its own state: streams, handles and allocations of one mean nothing to the
other. Some packages live well with it, others crash or hang at the first call that crosses.

## Example
```
RuntimeError: CUDA error: invalid resource handle
```

## What to do
Take the package's variant for torch's CUDA major.

## References
- vllm-project/vllm#44335, pytorch/pytorch#186591
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.cuda_libraries import provider_of, soname_major
from bringup.evaluate.faults import matching_pair, owner_label
from bringup.evaluate.openings import open_all
from bringup.facts import Facts, Library
from bringup.findings import Finding, Premise, Rule

RULE = Rule(
    code="LIB010",
    kind="two_cuda_majors_in_process",
    title="One process would hold two major versions of a CUDA library",
    stage="import",
    needs=("libraries",),
)


def check(facts: Facts) -> Iterator[Finding]:
    opened = open_all(facts)
    by_torch = dict(filter(None, map(_cuda, opened.loaded_by_torch)))
    told: set[tuple[str, str]] = set()
    for library, opening in opened.openings:
        if not opening.loads or provider_of(library.soname or library.file_name) is not None:
            continue
        for stem, major in filter(None, map(_cuda, opening.loaded)):
            if by_torch.get(stem, major) == major or (library.owner, stem) in told:
                continue
            told.add((library.owner, stem))
            yield _finding(facts, library, stem, by_torch[stem], major)


def _cuda(path: str) -> tuple[str, int] | None:
    """A CUDA library's stem and major version, from its path; None for any other library."""
    name = path.rpartition("/")[2]
    major = soname_major(name)
    return (name.split(".so", 1)[0], major) if major is not None and provider_of(name) is not None else None


def _finding(facts: Facts, library: Library, stem: str, torch: int, own: int) -> Finding:
    return Finding(
        rule=RULE.code,
        kind=RULE.kind,
        severity="warning",
        stage=RULE.stage,
        subject=library.path,
        because=(
            Premise(f"torch loads {stem}.so.{torch}", facts.target),
            Premise(f"{owner_label(facts, library)} loads {stem}.so.{own} into the same process", library.source),
        ),
        therefore=f"two {stem} share a process, each with a state of its own",
        remedies=matching_pair(facts, library),
    )

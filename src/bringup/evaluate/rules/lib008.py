"""An older copy of a library is found first.

## What it checks
Libraries of the stack that fail because a library they need is found outside of the stack (LD_LIBRARY_PATH, a conda folder,
ld.so.cache) while the stack brings its own copy of the same soname that would do.

## Why it matters
LD_LIBRARY_PATH is looked at before RUNPATH, and a library that is loaded once serves the whole process. A toolkit's folder in
LD_LIBRARY_PATH thus replaces the CUDA libraries that the wheels were tested with.

## Example
```
ImportError: .../libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12
```

## What to do
Take the folder out of LD_LIBRARY_PATH, or put the stack's own folder before it.

## References
- pytorch/pytorch#111469, pytorch/pytorch#134929, infiniflow/ragflow#4466
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.cuda_libraries import provider_of
from bringup.evaluate.faults import Fault, faults, finding, owner_label, subject_of
from bringup.evaluate.openings import open_all
from bringup.evaluate.symbols import References, unresolved
from bringup.facts import Facts, Known, Library, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="LIB008",
    kind="ld_library_path_shadows_wheel_libs",
    title="An older copy of a library is found first",
    stage="import",
    needs=("libraries", "system_libraries"),
)


def check(facts: Facts) -> Iterator[Finding]:
    own = {one.soname: one for one in facts.libraries.value if one.soname} if isinstance(facts.libraries, Known) else {}
    outside = {one.full_path: one for one in _system(facts)}
    before = open_all(facts).loaded_by_torch
    for fault in faults(facts):
        if not (fault.undefined or fault.versions):
            continue
        for path in dict.fromkeys((*fault.opening.loaded, *before)):
            shadow = outside.get(path)
            mine = own.get(shadow.soname) if shadow is not None else None
            if shadow is None or mine is None or provider_of(shadow.soname) is None:
                continue
            if not _offers(mine, shadow, fault):
                continue
            yield _finding(facts, fault, shadow, mine)
            break


def _system(facts: Facts) -> tuple[Library, ...]:
    return facts.system_libraries.value if isinstance(facts.system_libraries, Known) else ()


def _offers(mine: Library, shadow: Library, fault: Fault) -> bool:
    """Whether the stack's own copy defines something that fails with the copy found first."""
    symbols = frozenset(one.symbol for one in fault.undefined)
    versioned = frozenset(symbol for symbol in symbols if "@" in symbol)
    wanted = References(symbols - versioned, versioned)
    helped = unresolved(wanted, [mine]).names < unresolved(wanted, [shadow]).names
    versions = {one.version for one in fault.versions if one.library == shadow.full_path}
    return helped or bool(versions & set(mine.version_definitions))


def _finding(facts: Facts, fault: Fault, shadow: Library, mine: Library) -> Finding:
    library = fault.library
    symbol = fault.undefined[0].symbol if fault.undefined else fault.versions[0].version
    needed_by = fault.undefined[0].needed_by if fault.undefined else fault.versions[0].needed_by
    path = variable(facts, "LD_LIBRARY_PATH") or ""
    folder = shadow.full_path.rpartition("/")[0]
    how = "LD_LIBRARY_PATH holds its folder" if folder in path.split(":") else "the loader looks there first"
    return finding(
        RULE,
        fault,
        because=(
            Premise(f"{owner_label(facts, library)} needs {symbol} of {shadow.soname}", library.source),
            Premise(f"{shadow.full_path} is found first, which lacks it, since {how}", shadow.full_path),
            Premise(f"the stack's own {mine.path} has it", mine.source),
        ),
        therefore=f"{shadow.full_path} shadows the stack's own copy, and {library.path} cannot be loaded",
        predicted_error=f"ImportError: {subject_of(facts, needed_by)}: undefined symbol: {symbol}",
        remedies=(
            Remedy(
                "put the stack's own folder first, or take the other one out of LD_LIBRARY_PATH",
                (
                    f'export LD_LIBRARY_PATH="{mine.full_path.rpartition("/")[0]}:$LD_LIBRARY_PATH"',
                    "unset LD_LIBRARY_PATH",
                ),
                safe=True,
            ),
        ),
        detail=tuple(f"undefined symbol: {one.symbol}" for one in fault.undefined),
    )

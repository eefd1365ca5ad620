"""A library is installed but the loader does not look where it lies.

## What it checks
Sonames that a library of the stack needs, that the stack does hold, and that no search step reaches: no RPATH or RUNPATH leads
there, nothing has loaded it before, and it is in neither LD_LIBRARY_PATH nor ld.so.cache.

## Why it matters
The message says "no such file" although the file is there, which sends people to install it again.

## Example
```
ImportError: libcudnn_ops_infer.so.8: cannot open shared object file: No such file or directory
```

## What to do
Import torch first where the library is one that torch loads, else put its folder on LD_LIBRARY_PATH.

## References
- sgl-project/sglang#5002, OpenNMT/CTranslate2#1826
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.faults import cannot_open, faults, finding, owner_label
from bringup.evaluate.sonames import gap, listed, same_stem
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="LIB004",
    kind="soname_present_but_not_on_path",
    title="A library is installed but the loader does not look where it lies",
    stage="import",
    needs=("libraries",),
)


def check(facts: Facts) -> Iterator[Finding]:
    for fault in faults(facts):
        entries = [entry for entry in fault.missing if gap(facts, entry) == "unreachable"]
        if not entries:
            continue
        library, soname = fault.library, entries[0].soname
        found = next(one for one in same_stem(facts, soname) if soname in (one.soname, one.file_name))
        folder = found.full_path.rpartition("/")[0]
        yield finding(
            RULE,
            fault,
            because=(
                Premise(f"{owner_label(facts, library)} needs {listed(entries)}", library.source),
                Premise(f"it lies in {folder}, where no search step of the loader leads", found.source),
            ),
            therefore=f"{library.path} cannot be loaded although the library is installed",
            predicted_error=cannot_open(soname),
            remedies=(
                Remedy(
                    "put the library's folder on the loader's search path",
                    (f'export LD_LIBRARY_PATH="{folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"',),
                ),
            ),
            detail=tuple(f"{entry.soname} needed by {entry.needed_by}" for entry in entries),
        )

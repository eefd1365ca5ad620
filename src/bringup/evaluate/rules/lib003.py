"""A library of the host that a package needs is missing.

## What it checks
Sonames outside of CUDA and torch (`libnuma.so.1`, `libmpi.so.40`, `libpython3.11.so.1.0`) that a library of the stack needs and
that neither the stack nor the host holds. Asked only where the host is known.

## Why it matters
Wheels bundle what they need of the host, except where they forget. The message names the soname, but packages that catch it
print their own: a kernel wheel that lacked `libnuma.so.1` said that it could not load any common_ops library.

## Example
```
ImportError: libnuma.so.1: cannot open shared object file: No such file or directory
```

## What to do
Install the host's package that carries it.

## References
- odysseus#6257, NVIDIA/TensorRT-LLM#6102, NVIDIA/TensorRT-LLM#167
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.faults import cannot_open, faults, finding, owner_label
from bringup.evaluate.sonames import debian_package, gap, listed
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="LIB003",
    kind="system_soname_missing",
    title="A library of the host that a package needs is missing",
    stage="import",
    needs=("libraries", "system_libraries"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for fault in faults(facts):
        entries = [entry for entry in fault.missing if gap(facts, entry) == "system"]
        if not entries:
            continue
        library = fault.library
        packages = [package for entry in entries if (package := debian_package(entry.soname))]
        yield finding(
            RULE,
            fault,
            because=(
                Premise(f"{owner_label(facts, library)} needs {listed(entries)}", library.source),
                Premise("neither the stack nor the host holds it", "ld.so.cache and the loader's folders"),
            ),
            therefore=f"{library.path} cannot be loaded",
            predicted_error=cannot_open(entries[0].soname),
            remedies=(
                Remedy(
                    f"install the host's package that carries {entries[0].soname}",
                    (f"apt-get install {' '.join(dict.fromkeys(packages))}",) if packages else (),
                    safe=True,
                ),
            ),
            detail=tuple(f"{entry.soname} needed by {entry.needed_by}" for entry in entries),
        )

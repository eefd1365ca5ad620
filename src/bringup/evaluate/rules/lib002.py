"""A CUDA library that a package needs is not there at all.

## What it checks
Sonames of CUDA libraries (`libnvrtc.so.13`, `libcudnn.so.9`, ...) that a library of the stack needs and of which the stack holds
no version.

## Why it matters
Kernel wheels rarely declare the CUDA wheels whose libraries they need: they rely on torch's. `import torch` may work without
such a library, and the import of the kernel package then fails.

## Example
```
ImportError: libnvrtc.so.13: cannot open shared object file: No such file or directory
```

## What to do
Install the distribution that carries the library, in the release that torch pins.

## References
- vllm-project/vllm#44335, pytorch/pytorch#111469
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.cuda_libraries import provider_of, soname_major
from bringup.evaluate.faults import cannot_open, faults, finding, install, owner_label
from bringup.evaluate.sonames import gap, listed, torch_cuda
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="LIB002",
    kind="cuda_soname_missing",
    title="A CUDA library that a package needs is not there",
    stage="import",
    needs=("libraries",),
)


def check(facts: Facts) -> Iterator[Finding]:
    for fault in faults(facts):
        entries = [entry for entry in fault.missing if gap(facts, entry) == "cuda_absent"]
        if not entries:
            continue
        library = fault.library
        packages = list(dict.fromkeys(_package(facts, entry.soname) for entry in entries))
        yield finding(
            RULE,
            fault,
            because=(
                Premise(f"{owner_label(facts, library)} needs {listed(entries)}", library.source),
                Premise("no library of that name is in the stack or where the loader looks", facts.target),
            ),
            therefore=f"{library.path} cannot be loaded",
            predicted_error=cannot_open(entries[0].soname),
            remedies=(Remedy(f"install {' and '.join(packages)}", (install(facts, *packages),), safe=True),),
            detail=tuple(f"{entry.soname} needed by {entry.needed_by}" for entry in entries),
        )


def _package(facts: Facts, soname: str) -> str:
    """The distribution that carries the library, for the CUDA major of torch where the soname's own version is not CUDA's."""
    row = provider_of(soname)
    assert row is not None, "a gap of this kind has a provider"
    cuda = torch_cuda(facts)
    major = int(cuda.split(".")[0]) if cuda else soname_major(soname)
    return row.cuda12 if major == 12 else row.cuda13

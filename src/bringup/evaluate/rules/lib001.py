"""A library needs the CUDA libraries of another major release.

## What it checks
Sonames such as `libnvrtc.so.12` that a library of the stack needs, that no search step of the loader finds, and of which the
stack holds another major version only (`libnvrtc.so.13`).

## Why it matters
CUDA libraries carry their major version in the soname, and nothing but that very soname satisfies the loader. A wheel built
for CUDA 12 beside a torch built for CUDA 13 fails at import. Installing the missing library alone usually only uncovers the
next fault: such a wheel was built for another torch, too.

## Example
```
ImportError: libnvrtc.so.12: cannot open shared object file: No such file or directory
```

## What to do
Take the wheel's variant for the CUDA major of the installed torch, or a torch of the wheel's CUDA major. A link named `.so.12`
to a `.so.13` file is no way out: the functions behind it changed.

## References
- sgl-project/sglang#29646, sgl-project/sglang#10951, vllm-project/vllm#36099, vllm-project/vllm#44335
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.faults import cannot_open, faults, finding, matching_pair, owner_label
from bringup.evaluate.sonames import gap, listed, same_stem, torch_cuda
from bringup.facts import Facts, distribution
from bringup.findings import Finding, Premise, Rule

RULE = Rule(
    code="LIB001",
    kind="soname_missing_cuda_major_mismatch",
    title="A library needs the CUDA libraries of another major release",
    stage="import",
    needs=("libraries",),
)


def check(facts: Facts) -> Iterator[Finding]:
    for fault in faults(facts):
        entries = [entry for entry in fault.missing if gap(facts, entry) == "cuda_major"]
        if not entries:
            continue
        library, soname = fault.library, entries[0].soname
        present = same_stem(facts, soname)
        have = ", ".join(sorted({one.soname or one.file_name for one in present}))
        because = [
            Premise(f"{owner_label(facts, library)} needs {listed(entries)}", library.source),
            Premise(f"the stack holds {have} and no {soname}", present[0].source),
        ]
        torch, cuda = distribution(facts, "torch"), torch_cuda(facts)
        if torch is not None and cuda:
            because.append(Premise(f"torch {torch.version} is built for CUDA {cuda}", torch.source))
        behind = "supplying the library alone uncovers the next fault: symbols of torch are missing, too"
        yield finding(
            RULE,
            fault,
            because=tuple(because),
            therefore=f"{library.path} is built for another CUDA major and cannot be loaded",
            predicted_error=cannot_open(soname),
            remedies=matching_pair(facts, library),
            detail=tuple(f"{entry.soname} needed by {entry.needed_by}" for entry in entries),
            hints=(behind,) if fault.undefined else (),
        )

"""A package for a CUDA torch beside a torch without CUDA, or without torch.

## What it checks
Sonames of torch's own libraries (`libc10_cuda.so`, `libtorch_cuda.so`, `libtorch.so`) that a library of the stack needs and that the
installed torch does not bring: a CPU build of torch has no CUDA half, and a stack may hold no torch at all.

## Why it matters
Torchvision, torchaudio and torchcodec from the default index are CUDA builds. Beside a CPU torch they import half: torchvision
says that an operator does not exist, torchaudio that it could not load a library, and transformers then reports that it could
not import a model class. `pip check` finds nothing wrong.

## Example
```
RuntimeError: operator torchvision::nms does not exist
OSError: Could not load this library: .../torchaudio/lib/_torchaudio.so
```

## What to do
Install the CPU builds of these packages, or remove them where nothing needs them, or install a CUDA torch.

## References
- vladmandic/sdnext#3531
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.faults import cannot_open, faults, finding, owner_label, uninstall
from bringup.evaluate.sonames import gap, listed, torch_cuda
from bringup.facts import Facts, distribution
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="LIB005",
    kind="cuda_extension_beside_cpu_torch",
    title="A package for a CUDA torch beside a torch without CUDA",
    stage="import",
    needs=("libraries", "distributions"),
)


def check(facts: Facts) -> Iterator[Finding]:
    torch = distribution(facts, "torch")
    for fault in faults(facts):
        entries = [entry for entry in fault.missing if gap(facts, entry) == "torch"]
        if not entries:
            continue
        library = fault.library
        if torch is None:
            why = Premise("the stack holds no torch", facts.target)
        elif torch_cuda(facts) == "":
            why = Premise(f"torch {torch.version} is a build without CUDA", torch.source)
        else:
            why = Premise(f"torch {torch.version} does not bring it", torch.source)
        package = library.owner or library.path
        yield finding(
            RULE,
            fault,
            because=(Premise(f"{owner_label(facts, library)} needs {listed(entries)}", library.source), why),
            therefore=f"{library.path} cannot be loaded beside this torch",
            predicted_error=cannot_open(entries[0].soname),
            remedies=(
                Remedy(f"install the build of {package} that fits this torch"),
                Remedy(f"remove {package} where nothing needs it", (uninstall(facts, package),)),
            ),
            detail=tuple(f"{entry.soname} needed by {entry.needed_by}" for entry in entries),
        )

"""A CUDA library is older than what needs it.

## What it checks
Undefined symbols that belong to a CUDA library or NCCL (`ncclCommResume`, `cublasLt...`), where the copy that is loaded is the stack's
own: its release does not define them.

## Why it matters
A package that pins another release of such a library downgrades it under torch, and `import torch` itself then fails.

## Example
```
ImportError: .../torch/lib/libtorch_cuda.so: undefined symbol: ncclCommResume
```

## What to do
Install the release of the library that torch pins.

## References
- pytorch/pytorch#119932, NVIDIA/nccl#1784
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from bringup.evaluate.cuda_libraries import is_cuda_symbol, symbol_provider
from bringup.evaluate.faults import faults, finding, install, owner_label, subject_of
from bringup.facts import Distribution, Facts, Known, Library, distribution
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="LIB009",
    kind="cuda_library_too_old_for_extension",
    title="A CUDA library is older than what needs it",
    stage="import",
    needs=("libraries", "distributions"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for fault in faults(facts):
        entries = [one for one in fault.undefined if is_cuda_symbol(one.symbol)]
        if not entries or fault.missing:
            continue
        library, first = fault.library, entries[0]
        stem = symbol_provider(first.symbol)
        provider = next((one for one in _libraries(facts) if one.soname.startswith(f"{stem}.so")), None)
        release = distribution(facts, provider.owner) if provider is not None else None
        found = f"{release.name} {release.version}" if release is not None else stem
        owner = distribution(facts, library.owner) if library.owner else None
        pin = _pin(owner, release.name) if owner is not None and release is not None else ""
        yield finding(
            RULE,
            fault,
            because=(
                Premise(f"{owner_label(facts, library)} needs {first.symbol}", library.source),
                Premise(f"{found} does not define it", provider.source if provider is not None else facts.target),
                *((Premise(f"{library.owner} declares {pin}", owner.source),) if pin and owner is not None else ()),
            ),
            therefore=f"{found} is another release than {library.path} was built for",
            predicted_error=f"ImportError: {subject_of(facts, first.needed_by)}: undefined symbol: {first.symbol}",
            remedies=(
                Remedy(
                    f"install {pin or 'the release that it was built for'}",
                    (install(facts, f"'{pin}'"),) if pin else (),
                ),
            ),
            detail=tuple(f"undefined symbol: {one.symbol}" for one in entries),
        )


def _libraries(facts: Facts) -> tuple[Library, ...]:
    return facts.libraries.value if isinstance(facts.libraries, Known) else ()


def _pin(owner: Distribution, name: str) -> str:
    """What the owner declares of that distribution, without its marker: ``nvidia-nccl-cu13==2.30.7``."""
    for text in owner.requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if canonicalize_name(requirement.name) == name and requirement.specifier:
            return f"{name}{requirement.specifier}"
    return ""

"""An extension was built for another torch.

## What it checks
Every library of the stack that would be opened and that refers to C++ symbols of torch (namespaces `c10`, `at`, `torch`,
`caffe2`, or torch's C shims) which no library of the installed torch exports.

## Why it matters
torch has no stable C++ ABI. A kernel wheel is compiled against one torch release, and most of them declare no torch
requirement at all, so that every package resolver calls the pair compatible. The loader stops at the first symbol that it
cannot find, and the package that caught the error often prints something else: `Could not load any common_ops library`
sounds like a missing GPU architecture and never was in any report that we know.

## Example
```
ImportError: [sgl_kernel] CRITICAL: Could not load any common_ops library!
...
- ImportError: .../sgl_kernel/sm100/common_ops.abi3.so: undefined symbol: _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib
```

## What to do
Install the torch release that the extension was built for, or the extension's release that was built for your torch. Where
neither exists, build the extension from source against the installed torch.

## References
- sgl-project/sglang#30562, sgl-project/sglang#36462, vllm-project/vllm#35861, vllm-project/vllm#13608
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.faults import Fault, faults, other_release, owner_label, subject_of
from bringup.evaluate.symbols import family
from bringup.facts import Facts, distribution
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="ABI001",
    kind="extension_built_for_other_torch",
    title="An extension was built for another torch",
    stage="import",
    needs=("libraries", "distributions"),
)

TORCH_FAMILIES = frozenset({"c10", "at", "torch", "caffe2", "aoti", "c10d"})
"""Namespaces and C prefixes under which torch's own libraries export."""


def is_torch_symbol(symbol: str) -> bool:
    """Whether a name belongs to torch."""
    return family(symbol) in TORCH_FAMILIES


def check(facts: Facts) -> Iterator[Finding]:
    torch = distribution(facts, "torch")
    if torch is None:
        return
    for fault in faults(facts):
        symbols = [one for one in fault.undefined if is_torch_symbol(one.symbol)]
        if not symbols or fault.library.owner == "torch":
            continue
        yield _finding(facts, fault, [one.symbol for one in symbols], torch.version, torch.source)


def _finding(facts: Facts, fault: Fault, symbols: list[str], torch: str, torch_source: str) -> Finding:
    library = fault.library
    needed_by = subject_of(facts, fault.undefined[0].needed_by)
    count = f"{len(symbols)} C++ symbols" if len(symbols) > 1 else "a C++ symbol"
    return Finding(
        rule=RULE.code,
        kind=RULE.kind,
        severity=fault.severity,
        stage=RULE.stage,
        subject=library.path,
        because=(
            Premise(f"{owner_label(facts, library)} needs {count} of torch, {symbols[0]} among them", library.source),
            Premise(f"torch {torch} does not export {'them' if len(symbols) > 1 else 'it'}", torch_source),
            *fault.relevance,
        ),
        therefore=f"{library.path} was built for another torch and cannot be loaded",
        predicted_error=f"ImportError: {needed_by}: undefined symbol: {symbols[0]}",
        misread_as=fault.misread_as,
        remedies=(
            Remedy(
                summary=f"install a {library.owner or 'build'} that was built for torch {torch}, "
                "or the torch that this one was built for",
                commands=other_release(facts, library),
            ),
        ),
        detail=tuple(f"undefined symbol: {symbol}" for symbol in symbols),
        order=fault.order + 1,
        fatal=fault.severity == "error",
    )

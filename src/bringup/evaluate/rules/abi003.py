"""An extension lacks symbols of its own.

## What it checks
Undefined symbols in a library of the stack that belong neither to torch nor to a CUDA library: its own namespace, or that of a
sibling library which does not define them.

## Why it matters
The build left something out (a kernel that was not compiled for the chosen architectures, an option that was off), or two parts of
one package come from different releases. No other torch helps.

## Example
```
ImportError: .../vllm/_C.abi3.so: undefined symbol: cutlass_moe_mm_sm100
```

## What to do
Reinstall the package whole, or build it with the architectures and options that its code expects.

## References
- vllm-project/vllm#23925, deepseek-ai/DeepEP#429, NVIDIA/TensorRT-LLM#7665
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.cuda_libraries import is_cuda_symbol
from bringup.evaluate.faults import faults, finding, other_release, owner_label, subject_of
from bringup.evaluate.torch_symbols import is_torch_symbol
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="ABI003",
    kind="extension_missing_own_symbol",
    title="An extension lacks symbols of its own",
    stage="import",
    needs=("libraries",),
)


def check(facts: Facts) -> Iterator[Finding]:
    for fault in faults(facts):
        entries = [one for one in fault.undefined if not is_torch_symbol(one.symbol) and not is_cuda_symbol(one.symbol)]
        if not entries or any(is_torch_symbol(one.symbol) for one in fault.undefined):
            continue
        library, first = fault.library, entries[0]
        yield finding(
            RULE,
            fault,
            because=(
                Premise(f"{owner_label(facts, library)} refers to {first.symbol}", library.source),
                Premise("no library that it brings, and none that is loaded before, defines it", facts.target),
            ),
            therefore=f"{library.path} is incomplete or mixed from different releases, and cannot be loaded",
            predicted_error=f"ImportError: {subject_of(facts, first.needed_by)}: undefined symbol: {first.symbol}",
            remedies=(
                Remedy(f"reinstall {library.owner or library.path} whole", other_release(facts, library)),
                Remedy("build it with the architectures and options that its code expects"),
            ),
            detail=tuple(f"undefined symbol: {one.symbol}" for one in entries),
            later=1,
        )

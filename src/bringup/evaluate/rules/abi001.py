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

from bringup.evaluate.faults import faults, finding, matching_pair, owner_label, subject_of
from bringup.evaluate.torch_symbols import is_torch_symbol, other_string_abi, torch_exports
from bringup.facts import Facts, distribution
from bringup.findings import Finding, Premise, Rule

RULE = Rule(
    code="ABI001",
    kind="extension_built_for_other_torch",
    title="An extension was built for another torch",
    stage="import",
    needs=("libraries", "distributions"),
)


def check(facts: Facts) -> Iterator[Finding]:
    torch = distribution(facts, "torch")
    if torch is None:
        return
    exports = torch_exports(facts)
    for fault in faults(facts):
        undefined = [one for one in fault.undefined if is_torch_symbol(one.symbol)]
        if not undefined or fault.library.owner == "torch":
            continue
        if any(other_string_abi(one.symbol) & exports for one in undefined):
            continue  # the other string ABI, which has a rule of its own
        library = fault.library
        first = undefined[0]
        several = len(undefined) > 1
        what = f"{len(undefined)} symbols of torch, {first.symbol} among them" if several else f"torch's {first.symbol}"
        yield finding(
            RULE,
            fault,
            because=(
                Premise(f"{owner_label(facts, library)} needs {what}", library.source),
                Premise(f"torch {torch.version} does not export {'them' if several else 'it'}", torch.source),
            ),
            therefore=f"{library.path} was built for another torch and cannot be loaded",
            predicted_error=f"ImportError: {subject_of(facts, first.needed_by)}: undefined symbol: {first.symbol}",
            remedies=matching_pair(facts, library),
            detail=tuple(f"undefined symbol: {one.symbol}" for one in undefined),
            later=1,
        )

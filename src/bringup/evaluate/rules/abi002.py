"""An extension and torch disagree about the C++ string ABI.

## What it checks
Undefined symbols of torch in a library of the stack which torch does export in the other spelling: with
`std::__cxx11::basic_string` where the library asks for the old `std::string` (`Ss`), or the reverse.

## Why it matters
Up to torch 2.6 the wheels of the default index were built with `_GLIBCXX_USE_CXX11_ABI=0`, and with 1 since. An extension built
with the other setting has other mangled names for every function that takes a string.

## Example
```
ImportError: .../flash_attn_2_cuda.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIc...
```

## What to do
Install the wheel whose name carries the right tag (`cxx11abiTRUE` or `cxx11abiFALSE`), or build the extension against the
installed torch.

## References
- Dao-AILab/flash-attention#1644, Dao-AILab/flash-attention#853, vllm-project/vllm#1344, state-spaces/mamba#750
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.faults import faults, finding, owner_label, subject_of
from bringup.evaluate.torch_symbols import other_string_abi, torch_exports
from bringup.facts import Facts, distribution
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="ABI002",
    kind="torch_cxx11_abi_mismatch",
    title="An extension and torch disagree about the C++ string ABI",
    stage="import",
    needs=("libraries", "distributions"),
)


def check(facts: Facts) -> Iterator[Finding]:
    torch = distribution(facts, "torch")
    if torch is None:
        return
    exports = torch_exports(facts)
    for fault in faults(facts):
        entries = [one for one in fault.undefined if other_string_abi(one.symbol) & exports]
        if not entries:
            continue
        library, first = fault.library, entries[0]
        wants_new = "__cxx11" in first.symbol
        yield finding(
            RULE,
            fault,
            because=(
                Premise(
                    f"{owner_label(facts, library)} asks for {len(entries)} symbols of torch with the "
                    f"{'new' if wants_new else 'old'} C++ string ABI, {first.symbol} among them",
                    library.source,
                ),
                Premise(
                    f"torch {torch.version} exports them with the {'old' if wants_new else 'new'} one", torch.source
                ),
            ),
            therefore=f"{library.path} was built with _GLIBCXX_USE_CXX11_ABI={int(wants_new)} and cannot be loaded",
            predicted_error=f"ImportError: {subject_of(facts, first.needed_by)}: undefined symbol: {first.symbol}",
            remedies=(
                Remedy(
                    f"install the {library.owner or 'build'} wheel tagged "
                    f"cxx11abi{'FALSE' if wants_new else 'TRUE'}, or build it against the installed torch"
                ),
            ),
            detail=tuple(f"undefined symbol: {one.symbol}" for one in entries),
            later=1,
        )

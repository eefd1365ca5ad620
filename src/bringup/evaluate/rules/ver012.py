"""TVM FFI is not the release that a package was built for.

## What it checks
What distributions (xgrammar, flashinfer-python, nvidia-cutlass-dsl, sglang) declare of apache-tvm-ffi against the release that is
installed.

## Why it matters
Their compiled modules share its type tables and its C symbols. Another release ends in an undefined symbol, a failed cast of an
object, or a crash while the module is initialised.

## Example
```
Segfault encountered: tvm::ffi::reflection::Metadata::ToJSON, from the initialisation of xgrammar
```

## What to do
Install the release of apache-tvm-ffi that all of them allow.

## References
- flashinfer-ai/flashinfer#1913, mlc-ai/xgrammar#799
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.version_pairs import pair_findings
from bringup.facts import Facts
from bringup.findings import Finding, Rule

RULE = Rule(
    code="VER012",
    kind="tvm_ffi_abi",
    title="TVM FFI is not the release that a package was built for",
    stage="import",
    needs=("distributions",),
)


def check(facts: Facts) -> Iterator[Finding]:
    yield from pair_findings(RULE, facts)

"""A toolkit lacks a part that a compile needs.

## What it checks
Whether the toolkit that a JIT user would take holds the runtime headers, crt, cicc (nvvm), CCCL where the user includes
it, and the headers of other CUDA libraries that FlashInfer's modules include.

## Why it matters
`pip install nvidia-cuda-nvcc` alone brings neither CCCL nor, in older releases, crt and nvvm. Each absent part is met only
after the one before it was repaired.

## Example
```
cuda_runtime.h:82:10: fatal error: crt/host_config.h: No such file or directory
sh: 1: .../nvvm/bin/cicc: not found
fatal error: cublasLt.h: No such file or directory
```

## What to do
Install the parts in the release of the compiler.

## References
- docs/benchmarks.md, "Toolchain"
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, by_kit, compiles_premise, jit_finding, kit_label, listed, parts_remedy, users
from bringup.evaluate.toolchain import predict
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Rule

RULE = Rule(
    code="JIT007",
    kind="toolkit_part_missing",
    title="A toolkit lacks a part that a compile needs",
    stage="jit",
    needs=("distributions", "toolkits", "tools", "variables"),
)

_PARTS = {
    "no headers": ("the CUDA runtime headers", "cudart"),
    "no crt": ("the crt headers", "crt"),
    "no nvvm": ("cicc, the device compiler", "nvvm"),
    "no cccl": ("CCCL's headers", "cccl"),
}
_LIBRARY_OF_HEADER = {"cublasLt.h": "cublas", "curand.h": "curand"}


def check(facts: Facts) -> Iterator[Finding]:
    for kit, now, ones in by_kit(facts, users(facts, "nvcc")):
        prediction = predict(kit, cccl=any("cccl" in one.user.needs for one in ones))
        extra = list(dict.fromkeys(h for one in ones for h in one.user.extra_headers if h not in kit.headers))
        parts: tuple[str, ...]
        if prediction.fault in _PARTS:
            what, part = _PARTS[prediction.fault]
            parts, error = (part,), prediction.error
        elif not prediction.fault and extra:
            what = listed(extra)
            parts = tuple(_LIBRARY_OF_HEADER[header] for header in extra)
            error = f"fatal error: {extra[0]}: No such file or directory"
            ones = tuple(one for one in ones if one.user.extra_headers)
        else:
            continue
        yield jit_finding(
            RULE,
            facts,
            ones,
            because=(
                compiles_premise(facts, ones, what),
                Premise(f"{kit_label(kit, now)} does not hold {what}", kit.home),
            ),
            therefore="the compile ends at the first file that needs it",
            predicted_error=error,
            remedies=(parts_remedy(facts, kit, parts),),
            order=ORDER["parts"],
            subject=kit.home,
        )

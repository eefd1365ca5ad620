"""nvcc and the CUDA headers are of different releases.

## What it checks
Whether major.minor of the nvcc that a JIT user would start equals CUDART_VERSION of the cuda_runtime_api.h beside it, for
every user that includes CCCL (`<cuda/std/...>`, `<cub/...>`, `<thrust/...>`), as FlashInfer and SGLang's kernels do.

## Why it matters
CCCL refuses any other combination, older and newer alike, whatever CCCL's own version is: of 1,024 mixes of CUDA 13.0, 13.1,
13.2 and 13.5 exactly those with equal releases get past this check. A trivial .cu file includes no CCCL and compiles, so
that a hand-made test says that nvcc works. The mismatch arises by itself: torch pins the runtime, `nvidia-cuda-nvcc` is
bounded by nothing, and pip installs the newest.

## Example
```
#error "CUDA compiler and CUDA toolkit headers are incompatible, please check your include paths"
```

## What to do
Install the compiler of the headers' own release.

## References
- flashinfer-ai/flashinfer#3493
- CCCL, `cuda/std/__cccl/cuda_toolkit.h`
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.jit import ORDER, by_kit, compiles_premise, jit_finding, kit_label, parts_remedy, users
from bringup.evaluate.toolchain import predict, short
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Rule

RULE = Rule(
    code="JIT005",
    kind="nvcc_vs_cuda_headers_mismatch",
    title="nvcc and the CUDA headers are of different releases",
    stage="jit",
    needs=("distributions", "toolkits", "tools", "variables"),
)


def check(facts: Facts) -> Iterator[Finding]:
    for kit, now, ones in by_kit(facts, users(facts, "cccl")):
        prediction = predict(kit, cccl=True)
        if prediction.fault != "headers":
            continue
        nvcc, headers = kit.component("nvcc"), kit.component("runtime")
        assert nvcc is not None
        yield jit_finding(
            RULE,
            facts,
            ones,
            because=(
                compiles_premise(facts, ones, "nvcc and CUDA headers of one release, since they include CCCL"),
                Premise(f"nvcc of {kit_label(kit, now)} is {nvcc.version}", nvcc.path),
                Premise(f"the runtime headers beside it are CUDA {kit.cudart}", headers.path if headers else kit.home),
            ),
            therefore=f"CCCL refuses to compile with nvcc {short(nvcc.version)} and headers of {kit.cudart}",
            predicted_error=prediction.error,
            misread_as="wrong include paths; the paths are right, and which CCCL is used does not matter",
            remedies=(parts_remedy(facts, kit, ("nvcc", "cccl", "crt", "nvvm", "cudart")),),
            order=ORDER["headers"],
            subject="nvidia-cuda-nvcc" if "wheels" in kit.found else kit.home,
        )

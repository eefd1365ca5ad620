"""The model's quantisation is not supported on the GPU.

## What it checks
The quantisation method of the model's configuration against the least compute capability that the engine asks for it.

## Why it matters
FP8 needs compute capability 8.9 for its own arithmetic, and less where the engine has a weight-only path; below that the engine
refuses the model, or a kernel fails to compile.

## Example
```
ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 80. Current capability: 75.
```

## What to do
Take the model in another quantisation, or a newer GPU.

## References
- vllm-project/vllm#17581, vllm-project/vllm#6815, sgl-project/sglang#7715
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.engines import QUANTIZATIONS, within
from bringup.evaluate.jit_users import engine_of, gpus_of
from bringup.facts import Facts, Known, distribution
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="ENG003",
    kind="fp8_dtype_unsupported_on_arch",
    title="The model's quantisation is not supported on the GPU",
    stage="weights",
    needs=("gpus", "distributions", "model"),
)


def check(facts: Facts) -> Iterator[Finding]:
    engine = engine_of(facts)
    installed = distribution(facts, engine)
    if installed is None or not isinstance(facts.model, Known):
        return
    method = facts.model.value.quantization.partition(" ")[0]
    row = next(
        (
            one
            for one in QUANTIZATIONS
            if one.engine == engine and one.method == method and within(installed.version, one.since, one.until)
        ),
        None,
    )
    if row is None:
        return
    for gpu in gpus_of(facts):
        if (gpu.major, gpu.minor) >= row.least:
            continue
        least, have = row.least[0] * 10 + row.least[1], gpu.major * 10 + gpu.minor
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity="error",
            stage=RULE.stage,
            subject=facts.model.value.path,
            because=(
                Premise(f"the model is quantised by {method}", facts.model.value.source),
                Premise(
                    f"{engine} {installed.version} asks for compute capability {row.least[0]}.{row.least[1]} for it",
                    row.source,
                ),
                Premise(f"{gpu.name} has {gpu.compute_capability}", "gpus"),
            ),
            therefore="the engine refuses the model",
            predicted_error=(
                f"ValueError: The quantization method {method} is not supported for the current GPU. "
                f"Minimum capability: {least}. Current capability: {have}."
            ),
            remedies=(Remedy("take the model in another quantisation"),),
            order=5,
            fatal=True,
        )

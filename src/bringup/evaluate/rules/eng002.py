"""An attention backend was asked for that does not run on the GPU.

## What it checks
The attention backend in the engine's options or variables against the compute capabilities that the engine's own code lets it
run on.

## Why it matters
A setting that is the fastest on one GPU is refused on another one, after the weights were loaded. FlashAttention 3 is for
compute capability 9.0 (and 8.x), and not for any Blackwell.

## Example
```
AssertionError: FlashAttention v3 Backend requires SM>=80 and SM<=90. Please use `--attention-backend flashinfer`.
```

## What to do
Leave the choice to the engine, or name a backend that runs there.

## References
- sgl-project/sglang#15342, sgl-project/sglang#35080, flashinfer-ai/flashinfer#5445
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.engines import BACKENDS, DEFAULTS, covers, within
from bringup.evaluate.jit_users import engine_of, gpus_of
from bringup.evaluate.memory import option
from bringup.facts import Facts, Gpu, distribution, variable
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="ENG002",
    kind="attention_backend_unsupported_on_arch",
    title="An attention backend was asked for that does not run on the GPU",
    stage="kernels",
    needs=("gpus", "distributions"),
)


def check(facts: Facts) -> Iterator[Finding]:
    engine = engine_of(facts)
    asked = option(facts.goal, "--attention-backend", "--decode-attention-backend", "--prefill-attention-backend")
    source = "options"
    if not asked and engine == "vllm":
        asked, source = variable(facts, "VLLM_ATTENTION_BACKEND") or "", "VLLM_ATTENTION_BACKEND"
    installed = distribution(facts, engine)
    if not asked or installed is None:
        return
    row = next(
        (
            one
            for one in BACKENDS
            if one.engine == engine
            and one.name.lower() == asked.lower()
            and within(installed.version, one.since, one.until)
        ),
        None,
    )
    if row is None:
        return
    for gpu in gpus_of(facts):
        if covers(row.runs_on, gpu):
            continue
        other = default_backend(engine, installed.version, gpu)
        yield Finding(
            rule=RULE.code,
            kind=RULE.kind,
            severity="error",
            stage=RULE.stage,
            subject=f"attention backend {asked}",
            because=(
                Premise(f"the attention backend {asked} is asked for", source),
                Premise(
                    f"{gpu.name} has compute capability {gpu.compute_capability}, which {engine} {installed.version} refuses for it",
                    row.source,
                ),
            ),
            therefore="the engine ends after it has loaded the weights",
            predicted_error=row.error,
            remedies=(
                Remedy(
                    f"use {other}, which the engine takes by itself there"
                    if other
                    else "leave the choice to the engine"
                ),
            ),
            order=10,
            fatal=True,
        )


def default_backend(engine: str, version: str, gpu: Gpu, latent: bool = False) -> str:
    """The backend that an engine takes by itself, '' where the table does not know."""
    return next(
        (
            one.name
            for one in DEFAULTS
            if one.engine == engine
            and one.latent == latent
            and within(version, one.since, one.until)
            and one.least <= (gpu.major, gpu.minor) <= one.most
        ),
        "",
    )

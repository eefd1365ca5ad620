"""The model's context is longer than the memory for it.

## What it checks
How many tokens of keys and values fit beside the weights, against the context that was asked for, or the model's own.

## Why it matters
vLLM refuses to start where one request of the longest context would not fit, and takes the model's own maximum where none was
asked for: models with 128 thousand or a million tokens then fail on GPUs that hold their weights with ease.

## Example
```
ValueError: To serve at least one request with the model's max seq len (262144), 24.0 GiB KV cache is needed, which is larger than
the available KV cache memory (13.2 GiB).
```

## What to do
Ask for a shorter context, for an FP8 cache, or for more GPUs.

## References
- vllm 0.33.0, v1/core/kv_cache_planning.py:78
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import gpu_count, gpu_list, host_finding
from bringup.evaluate.jit_users import engine_of
from bringup.evaluate.memory import fit, gib, option, parallel_of
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="MEM002",
    kind="context_longer_than_kv_cache",
    title="The model's context is longer than the memory for it",
    stage="weights",
    needs=("model", "gpus"),
)


def check(facts: Facts) -> Iterator[Finding]:
    if not isinstance(facts.model, Known) or not facts.model.value.weight_bytes:
        return
    model, engine = facts.model.value, engine_of(facts)
    asked = option(facts.goal, "--max-model-len", "--context-length")
    context = int(asked) if asked.isdigit() else model.context
    for gpu in gpu_list(facts):
        if not gpu.memory or not context:
            continue
        found = fit(model, gpu, parallel_of(facts.goal, gpu_count(facts)), engine, facts.goal)
        if found.left <= 0 or found.tokens >= context or not found.per_token:
            continue
        needed = gib(context * found.per_token)
        yield host_finding(
            RULE,
            model.path,
            (
                Premise(
                    f"{'the context that was asked for' if asked else 'the model has a context'} of {context} tokens",
                    model.source,
                ),
                Premise(f"a token takes {found.per_token / 1024:.0f} KiB on each GPU", model.source),
                Premise(
                    f"beside the weights {gib(found.left)} are left on {gpu.name}: room for {found.tokens} tokens",
                    found.engine.source,
                ),
            ),
            "vLLM does not start with this context; other engines serve shorter requests only",
            f"ValueError: To serve at least one request with the model's max seq len ({context}), {needed} KV cache is needed"
            if engine == "vllm"
            else "",
            (
                Remedy(
                    "ask for a context that fits",
                    (f"--max-model-len {max(1024, found.tokens // 1024 * 1024)}",),
                    safe=True,
                ),
            ),
            severity="error" if engine == "vllm" else "warning",
            order=55,
        )

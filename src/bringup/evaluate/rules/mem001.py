"""The model leaves no memory for keys and values.

## What it checks
Bytes of the weights (from the safetensors headers) per GPU at the tensor-parallel degree that was asked for, or over all GPUs,
plus what the engine reserves, against the share of the GPU's memory that the engine may take.

## Why it matters
Loading takes minutes, and the engine says only at its end that nothing is left; the message speaks of a setting, not of
the model's size.

## Example
```
ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.
RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.
torch.OutOfMemoryError: CUDA out of memory.
```

## What to do
More GPUs, a quantised or smaller model, or fewer other processes on the GPU.

## References
- vllm-project/vllm#50985, vllm-project/vllm#27508
"""

from __future__ import annotations

from collections.abc import Iterator

from bringup.evaluate.host import gpu_count, gpu_list, host_finding
from bringup.evaluate.jit_users import engine_of
from bringup.evaluate.memory import fit, gib, least_parallel, parallel_of
from bringup.facts import Facts, Known
from bringup.findings import Finding, Premise, Remedy, Rule

RULE = Rule(
    code="MEM001",
    kind="no_memory_left_for_kv_cache",
    title="The model leaves no memory for keys and values",
    stage="weights",
    needs=("model", "gpus"),
)


def check(facts: Facts) -> Iterator[Finding]:
    if not isinstance(facts.model, Known) or not facts.model.value.weight_bytes:
        return
    model, engine = facts.model.value, engine_of(facts)
    for gpu in gpu_list(facts):
        if not gpu.memory:
            continue
        parallel = parallel_of(facts.goal, gpu_count(facts))
        found = fit(model, gpu, parallel, engine, facts.goal)
        if found.left > 0:
            continue
        loads = found.weights < gpu.memory * 0.97
        enough = least_parallel(model, gpu, engine, facts.goal)
        remedies = [Remedy("use a quantised or a smaller model")]
        if enough > parallel:
            remedies.insert(0, Remedy(f"share it out over {enough} such GPUs", (f"--tensor-parallel-size {enough}",)))
        yield host_finding(
            RULE,
            model.path,
            (
                Premise(
                    f"the weights are {gib(model.weight_bytes)}, {gib(found.weights)} on each of {parallel} GPUs",
                    model.source,
                ),
                Premise(
                    f"{gpu.name} has {gib(gpu.memory)}, of which the engine takes {gib(found.limit)}",
                    found.engine.source,
                ),
            ),
            "nothing is left for keys and values" if loads else "the weights do not fit",
            found.engine.error if loads else "torch.OutOfMemoryError: CUDA out of memory.",
            tuple(remedies),
            order=50,
            misread_as=f"a wrong {found.engine.option}" if loads and found.engine.option else "",
        )

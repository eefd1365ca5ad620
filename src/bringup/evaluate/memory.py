"""Will a model fit: weights, keys and values, and what an engine keeps for itself, per GPU and tensor-parallel degree.

An estimate, and said to be one: weights are read to the byte, a token's keys and values follow from the configuration, and
what the engine reserves is a table with its sources. Activations depend on options and are the part that is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

from bringup.facts import Goal, Gpu
from bringup.machine import Model

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """What an engine takes of a GPU: ``fraction`` of its memory at most, and ``reserved`` bytes of that for other things."""

    engine: str
    fraction: float
    reserved: int
    option: str
    error: str
    source: str


ENGINES: tuple[EngineMemory, ...] = (
    EngineMemory(
        "vllm",
        0.92,
        GIB,
        "--gpu-memory-utilization",
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
        "vllm 0.33.0: config/cache.py:215, v1/core/kv_cache_planning.py:58; reserved: CUDA context and smallest profile run",
    ),
    EngineMemory(
        "sglang",
        0.90,
        2 * GIB,
        "--mem-fraction-static",
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        "sglang 0.5.23: arg_groups/memory_hook.py:309-324, model_executor/pool_configurator.py:96",
    ),
    EngineMemory(
        "",
        0.95,
        GIB,
        "",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "CUDA context of torch with its libraries",
    ),
)

KV_BYTES = {"fp8": 1.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "int8": 1.0, "fp4": 0.5, "float32": 4.0}


@dataclass(frozen=True, slots=True)
class Fit:
    """Per GPU, in bytes. ``tokens`` is how many tokens of keys and values all GPUs together hold."""

    parallel: int
    memory: int
    weights: int
    reserved: int
    limit: int
    left: int
    per_token: float
    tokens: int
    engine: EngineMemory


def option(goal: Goal, *names: str) -> str:
    """The value of an engine's option, '' where it was not given: ``--tp 8`` and ``--tp=8``."""
    for position, word in enumerate(goal.options):
        name, equals, value = word.partition("=")
        if name in names:
            if equals:
                return value
            if position + 1 < len(goal.options):
                return goal.options[position + 1]
    return ""


def kv_bytes_per_token(model: Model, parallel: int, dtype: str = "") -> float:
    """Bytes of keys and values of one token on one GPU.

    Heads are shared out, and kept whole: with more GPUs than heads each keeps one. Latent attention keeps its one vector
    everywhere.
    """
    width = KV_BYTES.get(dtype, 4.0 if model.dtype == "float32" and not dtype else 2.0)
    if model.latent_size:
        return model.attention_layers * model.latent_size * width
    heads = max(1, -(-model.kv_heads // parallel))
    return 2.0 * model.attention_layers * heads * model.head_size * width


def parallel_of(goal: Goal, gpus: int) -> int:
    """The tensor-parallel degree: as asked, else all GPUs, since that is how a large model would be started."""
    asked = option(goal, "--tensor-parallel-size", "-tp", "--tp", "--tp-size")
    return int(asked) if asked.isdigit() and int(asked) > 0 else max(1, gpus)


def fit(model: Model, gpu: Gpu, parallel: int, engine: str, goal: Goal) -> Fit:
    """How a model lies on GPUs of one kind. ``gpu.memory`` must be known."""
    row = next((one for one in ENGINES if one.engine == engine), ENGINES[-1])
    fraction = row.fraction
    asked = option(goal, row.option) if row.option else ""
    if asked:
        try:
            fraction = min(1.0, max(0.0, float(asked)))
        except ValueError:
            fraction = row.fraction
    limit = int(gpu.memory * fraction)
    weights = -(-model.weight_bytes // parallel)
    left = limit - weights - row.reserved
    per_token = kv_bytes_per_token(model, parallel, option(goal, "--kv-cache-dtype"))
    tokens = int(left / per_token) if per_token and left > 0 else 0
    return Fit(parallel, gpu.memory, weights, row.reserved, limit, left, per_token, tokens, row)


def least_parallel(model: Model, gpu: Gpu, engine: str, goal: Goal, tokens: int = 2048) -> int:
    """The smallest power of two of GPUs on which the model fits with some context; 0 where 64 are not enough."""
    parallel = 1
    while parallel <= 64:
        if fit(model, gpu, parallel, engine, goal).tokens >= tokens:
            return parallel
        parallel *= 2
    return 0


def gib(size: float) -> str:
    """``13.4 GiB``."""
    return f"{size / GIB:.1f} GiB"

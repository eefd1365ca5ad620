"""What each engine touches when it starts, as tables. Each row was read in the engine's own shipped code, and says where."""

from __future__ import annotations

from bringup.evaluate.engines import plain_torch, sglang, vllm
from bringup.evaluate.engines.tables import Backend, DefaultBackend, Quantization, Touch, covers, within

__all__ = [
    "BACKENDS",
    "DEFAULTS",
    "QUANTIZATIONS",
    "TOUCHES",
    "Backend",
    "DefaultBackend",
    "Quantization",
    "Touch",
    "covers",
    "within",
]

TOUCHES: tuple[Touch, ...] = (*sglang.TOUCHES, *vllm.TOUCHES, *plain_torch.TOUCHES)
BACKENDS: tuple[Backend, ...] = (*sglang.BACKENDS, *vllm.BACKENDS)
DEFAULTS: tuple[DefaultBackend, ...] = (*sglang.DEFAULTS, *vllm.DEFAULTS)
QUANTIZATIONS: tuple[Quantization, ...] = vllm.QUANTIZATIONS

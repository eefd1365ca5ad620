"""SGLang: what a start touches, in order. Read in sglang 0.5.23 unless a row says otherwise."""

from __future__ import annotations

from bringup.evaluate.engines.tables import Backend, DefaultBackend, Touch

_E = "sglang"
_SRT = "sglang 0.5.23: srt/"
_REGISTRY = f"{_SRT}layers/attention/attention_registry.py"
_DEFAULT = f"{_SRT}arg_groups/model_override_base.py:278-345"

TOUCHES: tuple[Touch, ...] = (
    Touch(_E, "import", 10, "import torch", ("torch",), f"{_SRT}entrypoints/engine.py"),
    Touch(_E, "import", 20, "import of the kernels through the quantisation layers", ("sgl_kernel",),
          f"{_SRT}entrypoints/engine.py:59 -> configs/model_config.py:34 -> layers/quantization/compressed_tensors"),
    Touch(_E, "import", 30, "import of DeepGEMM, where the compute capability is 9.0 or higher", ("deep_gemm",),
          f"{_SRT}layers/deep_gemm_wrapper/configurer.py"),
    Touch(_E, "import", 40, "import of FlashInfer", ("flashinfer",), f"{_SRT}layers/attention/flashinfer_backend.py:76"),
    Touch(_E, "install", 90, "version gates: flashinfer_python >= 0.7.2, sglang-kernel >= 0.4.9", (),
          f"{_SRT}entrypoints/engine.py _set_envs_and_config", since="0.5.23", until="0.5.24"),
    Touch(_E, "collective", 10, "distributed initialisation, NCCL", (), f"{_SRT}model_executor/model_runner.py:466"),
    Touch(_E, "weights", 10, "load_model", (), f"{_SRT}model_executor/model_runner.py:715"),
    Touch(_E, "weights", 20, "memory pool for keys and values", (), f"{_SRT}managers/scheduler.py:1090"),
    Touch(_E, "kernels", 10, "attention backends", (), f"{_SRT}managers/scheduler.py:1115"),
    Touch(_E, "jit", 20, "Triton kernels", ("triton",), f"{_SRT}layers"),
    Touch(_E, "jit", 50, "own kernels (norm, rope, activation) and FlashInfer's modules", ("tvm_ffi", "flashinfer"),
          "sglang 0.5.23: kernels/ops/layernorm/norm.py, kernels/ops/attention/rope.py"),
    Touch(_E, "graph", 10, "CUDA graph capture", (), f"{_SRT}managers/scheduler.py:1124"),
    Touch(_E, "serve", 10, "warm-up request", (), f"{_SRT}entrypoints/http_server.py"),
)  # fmt: skip

BACKENDS: tuple[Backend, ...] = (
    Backend(_E, "fa3", (((8, 0), (8, 9)), ((9, 0), (9, 9))),
            "AssertionError: FlashAttention v3 Backend requires SM>=80 and SM<=90. Please use `--attention-backend flashinfer`.",
            f"{_REGISTRY}:243"),
    Backend(_E, "trtllm_mha", (((9, 0), (9, 9)), ((10, 0), (10, 9)), ((12, 0), (12, 9))),
            "ValueError: TRTLLM MHA backend for prefill requires Hopper (SM90), Blackwell (SM100), or SM120 GPUs.",
            f"{_SRT}arg_groups/attention_hook.py:200", since="0.5.23"),
    Backend(_E, "flashinfer", (((7, 5), (99, 9)),), "RuntimeError: FlashInfer requires GPUs with sm75 or higher",
            "flashinfer-python 0.7.2: flashinfer/jit/core.py:137"),
)  # fmt: skip

DEFAULTS: tuple[DefaultBackend, ...] = (
    DefaultBackend(_E, "fa3", (9, 0), (9, 9), _DEFAULT),
    DefaultBackend(_E, "trtllm_mha", (10, 0), (10, 9), _DEFAULT),
    DefaultBackend(
        _E, "flashinfer", (7, 5), (99, 9), f"{_DEFAULT}; triton where FlashInfer is absent or for attention sinks"
    ),
    DefaultBackend(_E, "fa3", (9, 0), (9, 9), _DEFAULT, latent=True),
    DefaultBackend(_E, "flashinfer", (10, 0), (10, 9), _DEFAULT, latent=True),
    DefaultBackend(_E, "triton", (7, 5), (99, 9), _DEFAULT, latent=True),
)
"""The first row that fits."""

"""vLLM: what a start touches, in order. Read in vllm 0.33.0 unless a row says otherwise."""

from __future__ import annotations

from bringup.evaluate.engines.tables import Backend, Capability, DefaultBackend, Quantization, Touch

_E = "vllm"
_V = "vllm 0.33.0: "
_ATTENTION = f"{_V}v1/attention/backends/"
_INVALID = "ValueError: Selected backend {name} is not valid for this configuration. Reason: ['compute capability not supported']"
_TO = (99, 9)

TOUCHES: tuple[Touch, ...] = (
    Touch(_E, "import", 10, "import torch", ("torch",), f"{_V}env_override.py"),
    Touch(_E, "import", 20, "import of transformers and what it opens (torchvision, torchaudio, torchcodec)",
          ("transformers", "torchvision", "torchaudio", "torchcodec"), f"{_V}transformers_utils/config.py"),
    Touch(_E, "import", 30, "import of its own extensions", ("vllm._C", "vllm._moe_C"), f"{_V}platforms/cuda.py"),
    Touch(_E, "import", 40, "its own version from the metadata of a distribution named vllm", (),
          f"{_V}entrypoints/cli/main.py:96"),
    Touch(_E, "collective", 10, "distributed initialisation, NCCL", (), f"{_V}v1/worker/gpu_worker.py init_device"),
    Touch(_E, "kernels", 10, "attention backend selection", (), f"{_V}platforms/cuda.py get_attn_backend_cls"),
    Touch(_E, "weights", 10, "load_model", (), f"{_V}v1/worker/gpu_worker.py load_model"),
    Touch(_E, "jit", 20, "torch.compile: inductor and Triton", ("triton",), f"{_V}compilation"),
    Touch(_E, "jit", 50, "FlashInfer's sampler, where the GPU and its toolkit allow it", ("flashinfer",),
          f"{_V}v1/sample/ops/topk_topp_sampler.py flashinfer_sampler_supported"),
    Touch(_E, "weights", 20, "profile run, then memory for keys and values", (), f"{_V}v1/worker/gpu_worker.py:773"),
    Touch(_E, "graph", 10, "CUDA graph capture", (), f"{_V}v1/worker/gpu_model_runner.py capture_model"),
)  # fmt: skip


def _backend(name: str, file: str, *ranges: tuple[Capability, Capability]) -> Backend:
    return Backend(
        _E, name, ranges, _INVALID.format(name=f"AttentionBackendEnum.{name}"), _ATTENTION + file, since="0.33"
    )


BACKENDS: tuple[Backend, ...] = (
    _backend("FLASH_ATTN", "flash_attn.py:458", ((8, 0), _TO)),
    _backend("FLASHINFER", "flashinfer.py:696", ((8, 0), (12, 1))),
    _backend("CUTLASS_MLA", "mla/cutlass_mla.py:65", ((10, 0), (10, 9))),
    _backend("FLASH_ATTN_MLA", "mla/flashattn_mla.py:69", ((9, 0), (9, 9))),
    _backend("FLASHINFER_MLA", "mla/flashinfer_mla.py:220", ((10, 0), (10, 9))),
    _backend("FLASHMLA", "mla/flashmla.py:73", ((9, 0), (9, 9)), ((10, 0), (10, 9))),
    _backend("TOKENSPEED_MLA", "mla/tokenspeed_mla.py:125", ((10, 0), (10, 9))),
)

DEFAULTS: tuple[DefaultBackend, ...] = (
    DefaultBackend(_E, "FLASHINFER", (10, 0), (10, 9), f"{_V}platforms/cuda.py _get_backend_priorities"),
    DefaultBackend(_E, "FLASH_ATTN", (8, 0), (99, 9), f"{_V}platforms/cuda.py _get_backend_priorities"),
    DefaultBackend(_E, "TRITON_ATTN", (0, 0), (7, 9), f"{_V}platforms/cuda.py _get_backend_priorities"),
)

_Q = f"{_V}model_executor/layers/quantization/"
QUANTIZATIONS: tuple[Quantization, ...] = (
    Quantization(_E, "fp8", (7, 5), f"{_Q}fp8.py:147", since="0.33"),
    Quantization(_E, "awq", (7, 5), f"{_Q}auto_awq.py:234", since="0.33"),
    Quantization(_E, "gptq", (6, 0), f"{_Q}auto_gptq.py:183", since="0.33"),
    Quantization(_E, "mxfp4", (8, 0), f"{_Q}mxfp4.py:72", since="0.33"),
    Quantization(_E, "modelopt", (7, 5), f"{_Q}modelopt.py:773", since="0.33"),
    Quantization(_E, "fbgemm_fp8", (8, 0), f"{_Q}fbgemm_fp8.py:67", since="0.33"),
)

"""Which of several binaries a package loads: a table of what the packages' own code decides, and on what.

Names lie, bytes do not: a folder named sm100 holds code for sm_120a, too, and is loaded on every GPU that is not of
compute capability 9.0. So each row says when code paths load a binary, not what its name suggests.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from bringup.evaluate.sonames import torch_cuda
from bringup.facts import Facts, Gpu, Library, distribution

Condition = Callable[[Facts, Gpu | None, "re.Match[str]"], bool | None]


class Row(NamedTuple):
    """``loads`` answers for a GPU (None: unknown) whether the package opens a file of that path; None where that is open."""

    packages: tuple[str, ...]
    pattern: str
    loads: Condition
    when: str
    source: str


def _capability_9_0(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    return None if gpu is None else (gpu.major, gpu.minor) == (9, 0)


def _not_capability_9_0(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    return None if gpu is None else (gpu.major, gpu.minor) != (9, 0)


def _flash_attention_3(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    return None if gpu is None else gpu.major in (8, 9)


def _datacenter_9_or_10(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    return None if gpu is None else gpu.major in (9, 10)


def _hopper(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    return None if gpu is None else gpu.major == 9


def _major_10(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    return None if gpu is None else gpu.major == 10


def _cuda_of_torch(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    cuda = torch_cuda(facts)
    return None if cuda is None else cuda.replace(".", "") == match.group(1)


def _cuda_major_of_torch(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    cuda = torch_cuda(facts)
    return None if cuda is None else cuda.split(".")[0] == match.group(1)


def _minor_of_torch(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    torch = distribution(facts, "torch")
    return None if torch is None else torch.version.replace(".", "").startswith(match.group(1))


def _never(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    return False


ROWS: tuple[Row, ...] = (
    Row(
        ("sgl-kernel", "sglang-kernel"),
        r"sgl_kernel/sm90/common_ops\.",
        _capability_9_0,
        "on compute capability 9.0",
        "sgl_kernel/load_utils.py, _load_architecture_specific_ops",
    ),
    Row(
        ("sgl-kernel", "sglang-kernel"),
        r"sgl_kernel/sm100/common_ops\.",
        _not_capability_9_0,
        "on every compute capability but 9.0",
        "sgl_kernel/load_utils.py, _load_architecture_specific_ops",
    ),
    Row(
        ("sgl-kernel", "sglang-kernel"),
        r"sgl_kernel/flash_ops\.",
        _flash_attention_3,
        "where FlashAttention 3 is chosen, on compute capability 8.x and 9.0",
        "sglang, attention_registry.py, create_flashattention_v3_backend",
    ),
    Row(
        ("sgl-flash-mla",),
        r"flash_mla/cuda\.",
        _major_10,
        "for FlashMLA on compute capability 10.x",
        "flash_mla/_loader.py, beside the legacy library for 9.0",
    ),
    Row(
        ("sgl-kernel", "sglang-kernel", "sgl-flash-mla"),
        r"(?:sgl_kernel/flashmla_ops|flash_mla/_C_legacy)\.",
        _datacenter_9_or_10,
        "for FlashMLA, on compute capability 9.0 and 10.x",
        "sgl_kernel/flash_mla.py",
    ),
    Row(
        ("vllm",),
        r"vllm/vllm_flash_attn/_vllm_fa3_C\.",
        _hopper,
        "for FlashAttention 3, on compute capability 9.0",
        "vllm/vllm_flash_attn/flash_attn_interface.py, _is_fa3_supported",
    ),
    Row(
        ("vllm",),
        r"vllm/_flashmla(?:_extension)?_C\.",
        _datacenter_9_or_10,
        "for FlashMLA, on compute capability 9.0 and 10.x",
        "vllm/v1/attention/ops/flashmla.py",
    ),
    Row(
        ("vllm",),
        r"vllm/_(?:qutlass|deepselect)_C\.",
        _major_10,
        "for kernels of compute capability 10.x",
        "vllm, CMakeLists.txt, QUTLASS_ARCHS and DEEPSELECT_ARCHS",
    ),
    Row(
        ("vllm",),
        r"vllm/third_party/deep_gemm/",
        _datacenter_9_or_10,
        "for DeepGEMM, on compute capability 9.0 and 10.x",
        "vllm/utils/deep_gemm.py",
    ),
    Row(
        ("bitsandbytes",),
        r"bitsandbytes/libbitsandbytes_cuda(\d+)\.so",
        _cuda_of_torch,
        "for the CUDA version of torch",
        "bitsandbytes/cextension.py, get_cuda_bnb_library_path",
    ),
    Row(
        ("bitsandbytes",),
        r"bitsandbytes/libbitsandbytes_(?:rocm|xpu)",
        _never,
        "on other vendors' GPUs",
        "bitsandbytes/cextension.py",
    ),
    Row(
        ("torch-memory-saver",),
        r"torch_memory_saver_hook_mode_\w+_cu(\d+)\.",
        _cuda_major_of_torch,
        "for the CUDA major of torch",
        "torch_memory_saver/utils.py, get_binary_path_from_package",
    ),
    Row(
        ("torch-c-dlpack-ext",),
        r"torch_c_dlpack_ext/libtorch_c_dlpack_addon_torch(\d+)-",
        _minor_of_torch,
        "for the minor release of torch",
        "torch_c_dlpack_ext/core.py, load_torch_c_dlpack_extension",
    ),
    Row(
        ("sgl-deep-gemm", "deep-gemm"),
        r"deep_gemm/",
        _datacenter_9_or_10,
        "for DeepGEMM, on compute capability 9.0 and 10.x",
        "sglang, deep_gemm_wrapper/configurer.py",
    ),
    Row(
        ("sgl-deep-ep", "deep-ep"),
        r"deep_ep/|deep_ep_cpp",
        _datacenter_9_or_10,
        "for DeepEP, on compute capability 9.0 and 10.x",
        "deep_ep",
    ),
    Row(
        ("nccl-extensions",),
        r"nccl/(?:m2n|ep)/",
        _never,
        "where an expert-parallel or transfer back end over NCCL is chosen",
        "nccl_extensions' metadata; sglang, --moe-a2a-backend",
    ),
    Row(
        ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"),
        r"nvidia/cudnn/",
        lambda facts, gpu, match: None,
        "as its engines need it",
        "cuDNN opens its sub-libraries by itself",
    ),
)


@lru_cache(maxsize=64)
def _rows_of(package: str) -> tuple[Row, ...]:
    return tuple(row for row in ROWS if package in row.packages)


class Choice(NamedTuple):
    """What the table says of a library on a GPU. ``loads`` None: not decided by what is known."""

    loads: bool | None
    when: str
    source: str


def choice(facts: Facts, library: Library, gpu: Gpu | None) -> Choice | None:
    """Whether the package would open that library on that GPU; None where no row speaks of it."""
    for row in _rows_of(library.owner):
        match = re.match(row.pattern, library.path)
        if match:
            return Choice(row.loads(facts, gpu, match), row.when, row.source)
    return None

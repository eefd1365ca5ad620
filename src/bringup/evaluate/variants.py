"""Which of several binaries a package loads: a table of what the packages' own code decides, and on what.

Names lie, bytes do not: a folder named sm100 holds code for sm_120a, too, and is loaded on every GPU that is not of
compute capability 9.0. So each row says when code paths load a binary, not what its name suggests.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from bringup.evaluate.sonames import torch_cuda
from bringup.facts import Facts, Gpu, Known, Library, distribution, variable

Condition = Callable[[Facts, "Gpu | None", "re.Match[str]"], "bool | None"]
"""Whether the package loads a file that the row's pattern matched; None where what is known does not decide it."""


def _on(*majors: int) -> Condition:
    """On compute capabilities of these majors."""

    def condition(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
        return None if gpu is None else gpu.major in majors

    return condition


def _exactly(major: int, minor: int, *, other: bool = False) -> Condition:
    """On that compute capability alone, or on every other one."""

    def condition(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
        return None if gpu is None else ((gpu.major, gpu.minor) == (major, minor)) is not other

    return condition


def _always(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    return True


def _never(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    return False


def _open(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    return None


def _flash_attention_2(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    """Refused below 8.0; the default on 8.x and 12.x; elsewhere other versions and FlashInfer go first."""
    if gpu is None:
        return None
    return False if gpu.major < 8 else True if gpu.major in (8, 12) else None


def _deep_gemm(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    """Asked for on 9.0 and 10.x; on 12.x only where it offers what is needed, and nobody else imports it."""
    if gpu is None or gpu.major == 12:
        return None
    return (gpu.major, gpu.minor) == (9, 0) or gpu.major == 10


def _bitsandbytes(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    chosen = bitsandbytes_choice(facts)
    return None if chosen is None else chosen == match.group(1)


def _cuda_major_of_torch(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    cuda = torch_cuda(facts)
    return None if cuda is None else cuda.split(".")[0] == match.group(1)


def _minor_of_torch(facts: Facts, gpu: Gpu | None, match: re.Match[str]) -> bool | None:
    torch = distribution(facts, "torch")
    try:
        release = Version(torch.version).release if torch is not None else None
    except InvalidVersion:
        release = None
    if release is None:
        return None
    if len(release) > 1 and release >= _TORCH_WITH_OWN_EXCHANGE:
        return False
    return f"{release[0]}{release[1]}" == match.group(1) and (gpu is None or match.group(2) == "cuda")


_TORCH_WITH_OWN_EXCHANGE = (2, 10)
"""From here on torch.Tensor brings __dlpack_c_exchange_api__, and the extension loads nothing: torch/_tensor.py of 2.9.1 has no such
name, that of 2.11.0 has it, and the extension carries libraries up to torch 2.9."""


class Row(NamedTuple):
    """``loads`` answers for a GPU whether the package opens a file of that path, ``when`` says it in words.

    ``asked``: it does so only where an option or a model asks for what is in the file, so that a start without that works.
    """

    packages: tuple[str, ...]
    pattern: str
    loads: Condition
    when: str
    source: str
    asked: bool = False


_SGL = ("sgl-kernel", "sglang-kernel")
_ARCH_OPS = "sgl_kernel/load_utils.py, _load_architecture_specific_ops (0.3.21, 0.4.10)"

ROWS: tuple[Row, ...] = (
    Row(_SGL, r"sgl_kernel/sm90/common_ops\.", _exactly(9, 0), "on compute capability 9.0", _ARCH_OPS),
    Row(
        _SGL, r"sgl_kernel/sm100/common_ops\.", _exactly(9, 0, other=True), "on every compute capability but 9.0", _ARCH_OPS
    ),
    Row(
        _SGL, r"sgl_kernel/flash_ops\.", _on(8, 9), "where FlashAttention 3 is chosen, on compute capability 8.x and 9.0",
        "sgl_kernel/flash_attn.py is_fa3_supported; sglang, attention_registry.py create_flashattention_v3_backend", asked=True,
    ),
    Row(
        _SGL, r"sgl_kernel/flashmla_ops\.", _on(9, 10), "for FlashMLA, on compute capability 9.0 and 10.x",
        "sgl_kernel/flash_mla.py", asked=True,
    ),
    Row(
        _SGL, r"sgl_kernel/infllm_ops\.", _open, "when a function of sgl_kernel.infllm_v2 is called",
        "sgl_kernel/infllm_v2/_loader.py load_infllm_ops (0.4.10)", asked=True,
    ),
    Row(
        _SGL, r"sgl_kernel/spatial_ops\.", _open, "when a function of sgl_kernel.spatial is called",
        "sgl_kernel/spatial.py", asked=True,
    ),
    Row(
        _SGL, r"(?:_mscclpp\.|lib/mscclpp)", _never, "where MSCCL++ is imported by itself",
        "no module of sgl_kernel names them (0.3.21)", asked=True,
    ),
    Row(
        ("sgl-flash-mla",), r"flash_mla/cuda\.", _on(10), "for FlashMLA, on compute capability 10.x",
        "flash_mla/_loader.py (1.0.0)", asked=True,
    ),
    Row(
        ("sgl-flash-mla",), r"flash_mla/_C_legacy\.", _on(9, 10), "for FlashMLA, on compute capability 9.0 and 10.x",
        "flash_mla/_loader.py (1.0.0)", asked=True,
    ),
    Row(
        ("sgl-deep-gemm", "deep-gemm"), r"deep_gemm/", _deep_gemm, "for DeepGEMM, on compute capability 9.0 and 10.x",
        "sglang, deep_gemm_wrapper/configurer.py _compute_enable_deep_gemm (0.5.23)",
    ),
    Row(
        ("sgl-deep-ep", "deep-ep"), r"deep_ep/|deep_ep_cpp", _on(9, 10),
        "where DeepEP is chosen, on compute capability 9.0 and 10.x", "sglang, --moe-a2a-backend deepep", asked=True,
    ),
    Row(
        ("nccl-extensions",), r"nccl/(?:m2n|ep)/", _never,
        "where an expert-parallel or transfer back end over NCCL is chosen",
        "nccl/ep/__init__.py, nccl/m2n/__init__.py; sglang, --moe-a2a-backend", asked=True,
    ),
    Row(
        ("vllm",), r"vllm/_C(?:_stable_libtorch)?\.", _always, "on every GPU",
        "vllm/platforms/cuda.py imports it (0.33.0)",
    ),
    Row(
        ("vllm",), r"vllm/vllm_flash_attn/_vllm_fa2_C\.", _flash_attention_2,
        "for FlashAttention 2, the default on compute capability 8.x and 12.x",
        "vllm/vllm_flash_attn/flash_attn_interface.py _is_fa2_supported; platforms/cuda.py _get_backend_priorities",
    ),
    Row(
        ("vllm",), r"vllm/vllm_flash_attn/_vllm_fa3_C\.", _on(9), "for FlashAttention 3, on compute capability 9.0",
        "vllm/vllm_flash_attn/flash_attn_interface.py _is_fa3_supported",
    ),
    Row(
        ("vllm",), r"vllm/_flashmla(?:_extension)?_C\.", _on(9, 10), "for FlashMLA, on compute capability 9.0 and 10.x",
        "vllm/v1/attention/ops/flashmla.py", asked=True,
    ),
    Row(
        ("vllm",), r"vllm/_(?:qutlass|deepselect)_C\.", _on(10), "for kernels of compute capability 10.x",
        "vllm/platforms/cuda.py and model_executor/layers/indexer_topk.py import them, and go on without", asked=True,
    ),
    Row(
        ("vllm",), r"vllm/_flashkda_C\.", _open, "when a model with Kimi delta attention runs",
        "vllm/models/kimi_k3/nvidia/kda.py", asked=True,
    ),
    Row(
        ("vllm",), r"vllm/third_party/deep_gemm/", _on(9, 10, 12), "for DeepGEMM, on compute capability 9.0, 10.x and 12.x",
        "vllm/platforms/cuda.py support_deep_gemm", asked=True,
    ),
    Row(
        ("bitsandbytes",), r"bitsandbytes/libbitsandbytes_cuda(\d+)\.so", _bitsandbytes, "for the CUDA version of torch",
        "bitsandbytes/cextension.py get_cuda_bnb_library_path (0.50.2)",
    ),
    Row(
        ("bitsandbytes",), r"bitsandbytes/libbitsandbytes_(?:rocm|xpu)", _never, "on other vendors' GPUs",
        "bitsandbytes/cextension.py",
    ),
    Row(
        ("torch-memory-saver",), r"torch_memory_saver_hook_mode_\w+_cu(\d+)\.", _cuda_major_of_torch,
        "for the CUDA major of torch", "torch_memory_saver/utils.py get_binary_path_from_package",
    ),
    Row(
        ("torch-c-dlpack-ext",), r"torch_c_dlpack_ext/libtorch_c_dlpack_addon_torch(\d+)-(cpu|cuda)", _minor_of_torch,
        "for the minor release of torch, where torch has no exchange of its own",
        "torch_c_dlpack_ext/core.py load_torch_c_dlpack_extension",
    ),
    Row(
        ("pynvvideocodec",), r"PyNvVideoCodec/PyNvVideoCodec_\d+\.", _open, "for the driver's video interface",
        "PyNvVideoCodec/__init__.py", asked=True,
    ),
    Row(
        ("torchcodec",), r"torchcodec/libtorchcodec_(?:core|custom_ops|pybind_ops)\d", _open,
        "for the major version of FFmpeg that is found", "torchcodec/_core/_ffmpeg_ops.py load_core_libraries", asked=True,
    ),
    Row(
        ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"), r"nvidia/cudnn/", _open, "as its engines need it",
        "cuDNN opens its sub-libraries by itself",
    ),
)  # fmt: skip


class Choice(NamedTuple):
    """What the table says of a library on a GPU. ``loads`` None: not decided by what is known. ``asked``: see `Row`."""

    loads: bool | None
    when: str
    source: str
    asked: bool = False


def choice(facts: Facts, library: Library, gpu: Gpu | None) -> Choice | None:
    """Whether the package would open that library on that GPU; None where no row speaks of it."""
    for row in _rows_of(library.owner):
        match = re.match(row.pattern, library.path)
        if match:
            return Choice(row.loads(facts, gpu, match), row.when, row.source, row.asked)
    return None


@lru_cache(maxsize=64)
def _rows_of(package: str) -> tuple[Row, ...]:
    return tuple(row for row in ROWS if package in row.packages)


_BITSANDBYTES = re.compile(r"bitsandbytes/libbitsandbytes_cuda(\d+)\.so$")


def bitsandbytes_available(facts: Facts) -> tuple[str, ...]:
    """The CUDA versions for which bitsandbytes carries a library, as in its file names: ``("118", "130")``."""
    libraries = facts.libraries.value if isinstance(facts.libraries, Known) else ()
    found = (_BITSANDBYTES.match(library.path) for library in libraries if library.owner == "bitsandbytes")
    return tuple(sorted(match.group(1) for match in found if match))


def bitsandbytes_choice(facts: Facts) -> str | None:
    """The one that it loads: what BNB_CUDA_VERSION says, else that of torch's CUDA version, else the nearest of its major.

    It may name a library that is not there. None where torch's CUDA version is not known or torch has none.
    """
    override = variable(facts, "BNB_CUDA_VERSION")
    if override and override.isdigit():
        return override
    cuda = torch_cuda(facts)
    if not cuda:
        return None
    wanted = cuda.replace(".", "")
    same = sorted((one for one in bitsandbytes_available(facts) if one[:-1] == wanted[:-1]), key=int)
    if wanted in same or not same or not _falls_back(facts):
        return wanted
    lower = [one for one in same if int(one) < int(wanted)]
    return lower[-1] if lower else same[0]


def _falls_back(facts: Facts) -> bool:
    one = distribution(facts, "bitsandbytes")
    try:
        return one is None or Version(one.version) >= Version("0.50")
    except InvalidVersion:
        return True

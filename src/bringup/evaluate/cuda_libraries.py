"""The CUDA libraries by soname: which distribution carries each, and which symbols belong to it."""

from __future__ import annotations

import re
from typing import NamedTuple


class Provider(NamedTuple):
    """A CUDA library's soname without its version, and the distribution that carries it for CUDA 13 and for CUDA 12."""

    stem: str
    cuda13: str
    cuda12: str


PROVIDERS = (
    Provider("libcudart", "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"),
    Provider("libnvrtc", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"),
    Provider("libnvrtc-builtins", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"),
    Provider("libcublas", "nvidia-cublas", "nvidia-cublas-cu12"),
    Provider("libcublasLt", "nvidia-cublas", "nvidia-cublas-cu12"),
    Provider("libnvblas", "nvidia-cublas", "nvidia-cublas-cu12"),
    Provider("libcudnn", "nvidia-cudnn-cu13", "nvidia-cudnn-cu12"),
    Provider("libcufft", "nvidia-cufft", "nvidia-cufft-cu12"),
    Provider("libcufftw", "nvidia-cufft", "nvidia-cufft-cu12"),
    Provider("libcurand", "nvidia-curand", "nvidia-curand-cu12"),
    Provider("libcusolver", "nvidia-cusolver", "nvidia-cusolver-cu12"),
    Provider("libcusolverMg", "nvidia-cusolver", "nvidia-cusolver-cu12"),
    Provider("libcusparse", "nvidia-cusparse", "nvidia-cusparse-cu12"),
    Provider("libcusparseLt", "nvidia-cusparselt-cu13", "nvidia-cusparselt-cu12"),
    Provider("libcufile", "nvidia-cufile", "nvidia-cufile-cu12"),
    Provider("libcupti", "nvidia-cuda-cupti", "nvidia-cuda-cupti-cu12"),
    Provider("libnvJitLink", "nvidia-nvjitlink", "nvidia-nvjitlink-cu12"),
    Provider("libnvToolsExt", "nvidia-nvtx", "nvidia-nvtx-cu12"),
    Provider("libnccl", "nvidia-nccl-cu13", "nvidia-nccl-cu12"),
    Provider("libnvshmem_host", "nvidia-nvshmem-cu13", "nvidia-nvshmem-cu12"),
    Provider("libnvvm", "nvidia-nvvm", "nvidia-cuda-nvcc-cu12"),
    Provider("libnpp", "nvidia-npp", "nvidia-npp-cu12"),
    Provider("libnvjpeg", "nvidia-nvjpeg", "nvidia-nvjpeg-cu12"),
    Provider("libcutensor", "cutensor-cu13", "cutensor-cu12"),
)
"""From the RECORD files of the distributions named."""

_NPP = re.compile(r"libnpp[a-z]+$")


def provider_of(soname: str) -> Provider | None:
    """The table row of a CUDA library's soname, None for any other library."""
    stem = soname.split(".so", 1)[0]
    if _NPP.fullmatch(stem):
        stem = "libnpp"
    return next((row for row in PROVIDERS if row.stem == stem), None)


def soname_major(soname: str) -> int | None:
    """The major version in a soname: 12 for ``libnvrtc.so.12``."""
    found = re.search(r"\.so\.(\d+)", soname)
    return int(found.group(1)) if found else None


SYMBOL_PREFIXES = (
    ("nccl", "libnccl"),
    ("nvrtc", "libnvrtc"),
    ("cublasLt", "libcublasLt"),
    ("cublas", "libcublas"),
    ("cudnn", "libcudnn"),
    ("cufft", "libcufft"),
    ("curand", "libcurand"),
    ("cusolver", "libcusolver"),
    ("cusparseLt", "libcusparseLt"),
    ("cusparse", "libcusparse"),
    ("cuFile", "libcufile"),
    ("cupti", "libcupti"),
    ("__nvJitLink", "libnvJitLink"),
    ("nvJitLink", "libnvJitLink"),
    ("nvshmem", "libnvshmem_host"),
    ("cudaGraph", "libcudart"),
    ("cuda", "libcudart"),
    ("__cuda", "libcudart"),
)
"""What the names of a CUDA library's functions start with, longer prefixes first."""


def symbol_provider(symbol: str) -> str:
    """The stem of the CUDA library that a name belongs to, '' where it belongs to none."""
    return next((stem for prefix, stem in SYMBOL_PREFIXES if symbol.startswith(prefix)), "")


def is_cuda_symbol(symbol: str) -> bool:
    """Whether a name belongs to one of the CUDA libraries."""
    return bool(symbol_provider(symbol))

"""Which distribution brings which soname, and what kind of gap a missing one is."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from bringup.evaluate.loading import MissingSoname
from bringup.facts import Facts, Known, Library, distribution


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

Gap = Literal["torch", "cuda_major", "cuda_absent", "unreachable", "system"]

_NPP = re.compile(r"libnpp[a-z]+$")
_TORCH = re.compile(r"lib(?:torch|torch_cpu|torch_cuda|torch_hip|torch_python|torch_global_deps|c10|c10_cuda|c10_hip|caffe2\w*|shm)\.so")


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


def same_stem(facts: Facts, soname: str) -> list[Library]:
    """Libraries of the stack with that soname's stem, whatever version."""
    stem = soname.split(".so", 1)[0]
    if not isinstance(facts.libraries, Known):
        return []
    return [one for one in facts.libraries.value if (one.soname or one.file_name).split(".so", 1)[0] == stem]


def gap(facts: Facts, entry: MissingSoname) -> Gap:
    """What kind of gap a missing soname is."""
    if _TORCH.match(entry.soname):
        return "torch"
    present = same_stem(facts, entry.soname)
    if any(entry.soname in (one.soname, one.file_name) for one in present):
        return "unreachable"
    if provider_of(entry.soname) is not None:
        return "cuda_major" if present else "cuda_absent"
    return "system"


def torch_cuda(facts: Facts) -> str | None:
    """The CUDA version that the installed torch was built for: ``13.0``; '' for a CPU build; None where not known."""
    torch = distribution(facts, "torch")
    if torch is None:
        return None
    for name, value in torch.build:
        if name == "cuda":
            return "" if value in ("", "None") else value
    return None


def listed(entries: list[MissingSoname]) -> str:
    """``libnvrtc.so.12 and libcudart.so.12``: each missing soname once, in the loader's order."""
    unique = list(dict.fromkeys(entry.soname for entry in entries))
    return " and ".join(filter(None, (", ".join(unique[:-1]), unique[-1])))


DEBIAN_PACKAGES = (
    ("libnuma.so.1", "libnuma1"),
    ("libmpi.so.40", "libopenmpi3"),
    ("libmpi_cxx.so.40", "libopenmpi3"),
    ("libibverbs.so.1", "libibverbs1"),
    ("libmlx5.so.1", "ibverbs-providers"),
    ("librdmacm.so.1", "librdmacm1"),
    ("libgomp.so.1", "libgomp1"),
    ("libgl.so.1", "libgl1"),
    ("libGL.so.1", "libgl1"),
    ("libglib-2.0.so.0", "libglib2.0-0"),
    ("libgthread-2.0.so.0", "libglib2.0-0"),
    ("libsndfile.so.1", "libsndfile1"),
    ("libtbb.so.12", "libtbb12"),
    ("libaio.so.1", "libaio1"),
    ("libcurl.so.4", "libcurl4"),
    ("libunwind.so.8", "libunwind8"),
    ("libfabric.so.1", "libfabric1"),
    ("libucs.so.0", "libucx0"),
    ("libjsoncpp.so.25", "libjsoncpp25"),
    ("libgflags.so.2.2", "libgflags2.2"),
    ("libglog.so.1", "libgoogle-glog0v6"),
    ("libgrpc++.so.1.51", "libgrpc++1.51"),
)
"""Soname and the Debian 12 package that carries it, from the packages' file lists."""

_PYTHON = re.compile(r"libpython(3\.\d+)\.so")


def debian_package(soname: str) -> str:
    """The Debian package that carries a library of the host, '' where the table has none."""
    python = _PYTHON.match(soname)
    if python:
        return f"libpython{python.group(1)}"
    return dict(DEBIAN_PACKAGES).get(soname, "")


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

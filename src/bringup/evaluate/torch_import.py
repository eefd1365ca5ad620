"""What ``import torch`` leaves loaded: the libraries that every extension of a stack finds already there.

Kernel wheels carry no RPATH and still load, because torch has loaded the CUDA wheels' libraries before them. The order is
that of ``torch/__init__.py``: ``libtorch_global_deps.so`` with RTLD_GLOBAL, some preloads of CUDA wheels' libraries, then
the extension module ``torch._C``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from packaging.version import InvalidVersion, Version

from bringup.evaluate.loading import Opening, Process, World
from bringup.facts import Facts, Library, distribution

_ALL_PRELOADS = (
    ("cublas", "libcublasLt.so.*[0-9]"),
    ("cublas", "libcublas.so.*[0-9]"),
    ("cudnn", "libcudnn.so.*[0-9]"),
    ("cuda_nvrtc", "libnvrtc.so.*[0-9]"),
    ("cuda_nvrtc", "libnvrtc-builtins.so.*[0-9]"),
    ("cuda_runtime", "libcudart.so.*[0-9]"),
    ("cuda_cupti", "libcupti.so.*[0-9]"),
    ("cufft", "libcufft.so.*[0-9]"),
    ("curand", "libcurand.so.*[0-9]"),
    ("nvjitlink", "libnvJitLink.so.*[0-9]"),
    ("cusparse", "libcusparse.so.*[0-9]"),
    ("cusparselt", "libcusparseLt.so.*[0-9]"),
    ("cusolver", "libcusolver.so.*[0-9]"),
    ("nccl", "libnccl.so.*[0-9]"),
    ("nvshmem", "libnvshmem_host.so.*[0-9]"),
    ("cufile", "libcufile.so.*[0-9]"),
)


@dataclass(frozen=True, slots=True)
class PreloadRow:
    """What a torch release opens once libcudart is loaded. ``lenient``: a library that is not there is passed over."""

    since: str
    libraries: tuple[tuple[str, str], ...]
    lenient: bool
    source: str


PRELOADS = (
    PreloadRow("2.14", _ALL_PRELOADS, True, "torch 2.14.1, torch/__init__.py, _preload_cuda_deps(required=False)"),
    PreloadRow("2.11", _ALL_PRELOADS, False, "torch 2.11.0, torch/__init__.py, _preload_cuda_deps()"),
    PreloadRow(
        "2.7",
        (
            ("cuda_nvrtc", "libnvrtc.so.*[0-9]"),
            ("cuda_nvrtc", "libnvrtc-builtins.so.*[0-9]"),
            ("nvjitlink", "libnvJitLink.so.*[0-9]"),
        ),
        False,
        "torch 2.9.1, torch/__init__.py, _load_global_deps",
    ),
    PreloadRow("2.6", (("nvjitlink", "libnvJitLink.so.*[0-9]"),), False, "pytorch/pytorch#138460"),
    PreloadRow("0", (), True, "before pytorch/pytorch#138460"),
)
"""Newest first."""


@dataclass(frozen=True, slots=True)
class TorchImport:
    """The steps of ``import torch`` that open a library, in order; those that fail end it."""

    present: bool
    openings: tuple[Opening, ...] = ()

    @property
    def failed(self) -> Opening | None:
        """The first step that fails, None where torch imports."""
        return next((one for one in self.openings if not one.loads), None)


def import_torch(process: Process, facts: Facts) -> TorchImport:
    """Let ``process`` import torch. Libraries stay loaded even where a step fails, so that what comes after can be judged."""
    world = process.world
    own = {library.path: library for library in world.libraries}
    dependencies = own.get("torch/lib/libtorch_global_deps.so")
    module = _extension(own)
    if module is None:
        return TorchImport(present=False)
    openings: list[Opening] = []
    if dependencies is not None:
        first = process.open(dependencies)
        if not first.loads and any(_is_cuda(entry.soname) for entry in first.missing):
            for pattern in _ALL_PRELOADS:
                _preload(process, world, pattern)
        openings.append(process.open(dependencies, keep=True, everywhere=True))
    if any(process.is_loaded(f"libcudart.so.{major}") for major in (11, 12, 13, 14)):
        row = _row(facts)
        for pattern in row.libraries:
            if not _preload(process, world, pattern) and not row.lenient:
                break
    openings.append(process.open(module, keep=True))
    return TorchImport(present=True, openings=tuple(openings))


def _extension(own: dict[str, Library]) -> Library | None:
    for path, library in own.items():
        if path.startswith("torch/_C.") and path.endswith(".so"):
            return library
    return None


def _is_cuda(soname: str) -> bool:
    stem = soname.split(".", 1)[0]
    return any(pattern.split(".", 1)[0] == stem for _, pattern in _ALL_PRELOADS)


def _row(facts: Facts) -> PreloadRow:
    torch = distribution(facts, "torch")
    try:
        release = Version(torch.version).release if torch is not None else (99,)
    except InvalidVersion:
        release = (99,)
    return next(row for row in PRELOADS if release >= Version(row.since).release)


def _preload(process: Process, world: World, row: tuple[str, str]) -> bool:
    """Open a CUDA wheel's library as torch would; False where it is not there or does not load."""
    folder, pattern = row
    for library in _wheel_libraries(world, folder, pattern):
        return process.open(library, keep=True).loads
    return False


def _wheel_libraries(world: World, folder: str, pattern: str) -> list[Library]:
    places = (f"nvidia/{folder}/lib", "nvidia/cu*/lib", f"{folder}/lib")
    found: list[Library] = []
    for place in places:
        for library in world.libraries:
            head, _, name = library.path.rpartition("/")
            if fnmatchcase(head, place) and fnmatchcase(name, pattern) and re.search(r"\d$", name):
                found.append(library)
    return found

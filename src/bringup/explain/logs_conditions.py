"""Conditions on facts that separate kinds which share a message. None: what is known does not decide it."""

from __future__ import annotations

import re
from collections.abc import Callable

from packaging.version import InvalidVersion, Version

from bringup.collect.report import Reported
from bringup.facts import Gpu, Known, distribution

Condition = Callable[[Reported, str], "bool | None"]

_CUDA_OF_SONAME = {
    # Libraries whose soname is their CUDA major (NVIDIA, CUDA release notes).
    "cudart": 0, "cublas": 0, "cublaslt": 0, "nvrtc": 0, "nvjitlink": 0, "cupti": 0, "nppc": 0, "nppicc": 0, "nppig": 0,
    # cuFFT's soname is one below: libcufft.so.11 is of CUDA 12.
    "cufft": 1,
}  # fmt: skip
_MISSING = re.compile(
    r"lib(\w+)\.so\.(\d+)(?:\.\d+)*['\"]?(?:: cannot open shared object| => not found|: no such file| not found)"
)


def _gpu(test: Callable[[Gpu], bool]) -> Condition:
    def condition(said: Reported, text: str) -> bool | None:
        gpus = said.facts.gpus
        return any(test(gpu) for gpu in gpus.value) if isinstance(gpus, Known) else None

    return condition


def _torch_from(minimum: str) -> Condition:
    def condition(said: Reported, text: str) -> bool | None:
        return _at_least(said.torch, minimum)

    return condition


def _at_least(version: str, minimum: str) -> bool | None:
    try:
        return Version(version.partition("+")[0]) >= Version(minimum) if version else None
    except InvalidVersion:
        return None


def _major(version: str) -> int | None:
    return int(version.split(".")[0]) if version[:1].isdigit() else None


def _torch_cuda_13(said: Reported, text: str) -> bool | None:
    major = _major(said.cuda)
    return None if major is None else major >= 13


def _torch_without_blackwell(said: Reported, text: str) -> bool | None:
    blackwell = _gpu(lambda gpu: gpu.major >= 10)(said, text)
    if not blackwell:
        return blackwell
    if said.cuda:
        return _at_least(said.cuda, "12.8") is False
    newer = _at_least(said.torch, "2.7")
    return None if newer is None else not newer


def _driver_older(said: Reported, text: str) -> bool | None:
    driver = said.facts.driver
    if not isinstance(driver, Known) or not driver.value.cuda or not said.cuda:
        return None
    newer = _at_least(driver.value.cuda, said.cuda)
    return None if newer is None else not newer


def _nvcc_before_12_9(said: Reported, text: str) -> bool | None:
    newer = _at_least(said.nvcc, "12.9")
    return None if newer is None else not newer


def missing_majors(text: str) -> set[int]:
    """CUDA majors of the libraries that a lower-case text says are missing."""
    return {
        int(match.group(2)) + _CUDA_OF_SONAME[match.group(1)]
        for match in _MISSING.finditer(text)
        if match.group(1) in _CUDA_OF_SONAME
    }


def _soname_of_other_major(said: Reported, text: str) -> bool | None:
    major, missing = _major(said.cuda), missing_majors(text)
    return None if major is None or not missing else any(one != major for one in missing)


def _soname_of_same_major(said: Reported, text: str) -> bool | None:
    other = _soname_of_other_major(said, text)
    return None if other is None else not other


def _companions_differ(said: Reported, text: str) -> bool | None:
    main = distribution(said.facts, "flashinfer-python")
    others = [distribution(said.facts, name) for name in ("flashinfer-cubin", "flashinfer-jit-cache")]
    known = [other for other in others if other is not None]
    if main is None or not known:
        return None
    return any(other.version.partition("+")[0] != main.version.partition("+")[0] for other in known)


def _two_majors(said: Reported, text: str) -> bool | None:
    return len(set(re.findall(r"\bnvidia-[a-z]+(?:-[a-z]+)?-cu(1\d)\b", text))) > 1


def _several(said: Reported, text: str) -> bool | None:
    gpus = said.facts.gpus
    return sum(gpu.count for gpu in gpus.value) > 1 if isinstance(gpus, Known) else None


CONDITIONS: dict[str, Condition] = {
    "blackwell": _gpu(lambda gpu: gpu.major >= 10),
    "blackwell_desktop": _gpu(lambda gpu: gpu.major == 12),
    "gb10": _gpu(lambda gpu: (gpu.major, gpu.minor) == (12, 1)),
    "gpu_10_3_or_11": _gpu(lambda gpu: (gpu.major, gpu.minor) == (10, 3) or gpu.major == 11),
    "hopper": _gpu(lambda gpu: gpu.major == 9),
    "gpu_before_ada": _gpu(lambda gpu: (gpu.major, gpu.minor) < (8, 9)),
    "gpu_before_turing": _gpu(lambda gpu: (gpu.major, gpu.minor) < (7, 5)),
    "gpu_turing": _gpu(lambda gpu: (gpu.major, gpu.minor) == (7, 5)),
    "gpu_turing_to_hopper": _gpu(lambda gpu: (7, 5) <= (gpu.major, gpu.minor) < (10, 0)),
    "geforce": _gpu(lambda gpu: gpu.product_class in ("geforce", "rtx-pro")),
    "several_gpus": _several,
    "container": lambda said, text: True if said.container else None,
    "wsl": lambda said, text: True if said.wsl else None,
    "torch_2_7_up": _torch_from("2.7"),
    "torch_cuda_13": _torch_cuda_13,
    "torch_without_blackwell": _torch_without_blackwell,
    "driver_older_than_runtime": _driver_older,
    "nvcc_before_12_9": _nvcc_before_12_9,
    "soname_of_other_cuda_major": _soname_of_other_major,
    "soname_of_same_cuda_major": _soname_of_same_major,
    "flashinfer_companions_differ": _companions_differ,
    "packages_of_two_cuda_majors": _two_majors,
}


def holds(names: tuple[str, ...], said: Reported, text: str) -> bool:
    """Whether all conditions are known to hold; ``!name`` must be known not to."""
    for name in names:
        value = CONDITIONS[name.lstrip("!")](said, text)
        if value is None or value is name.startswith("!"):
            return False
    return True

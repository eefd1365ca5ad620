"""Which packages compile when a stack starts, what each needs for it, and where each looks for its compiler.

A table, read from the packages' own shipped code; `in_stack` only walks it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from packaging.version import InvalidVersion, Version

from bringup.facts import Facts, Gpu, Known, distribution, variable
from bringup.findings import Stage

# Steps of a search for CUDA_HOME, tried in order:
#   CUDA_HOME, CUDA_PATH   the variable, taken as it is
#   nvcc                   two folders above `which nvcc`
#   default                /usr/local/cuda where that exists
#   default-unchecked      /usr/local/cuda whether it exists or not
#   wheels                 where the nvidia-cuda-nvcc distribution laid its nvcc
#   conda                  CONDA_PREFIX where it holds nvcc
_USUAL = ("CUDA_HOME", "CUDA_PATH", "nvcc", "default")


@dataclass(frozen=True, slots=True)
class JitUser:
    """One package that compiles, in one range of its versions.

    ``needs``: ``nvcc``, ``ninja``, ``cxx``, ``cccl`` (includes CCCL's headers), ``link`` (links against ``lib64`` and
    ``lib64/stubs`` of CUDA_HOME), ``cc`` and ``python.h`` and ``libcuda`` (Triton's launcher), ``ptxas``, ``home`` (a CUDA_HOME
    at import, whatever it holds). ``absent`` is what it prints where no CUDA_HOME is found; ``prebuilt`` are
    distributions that carry its modules ready-made.
    """

    name: str
    distribution: str
    needs: tuple[str, ...]
    source: str
    since: str = "0"
    until: str = ""
    search: tuple[str, ...] = _USUAL
    absent: str = ""
    stage: Stage = "jit"
    order: int = 50
    prebuilt: tuple[str, ...] = ()
    extra_headers: tuple[str, ...] = ()


USERS: tuple[JitUser, ...] = (
    JitUser(
        "DeepGEMM",
        "sgl-deep-gemm",
        ("home", "nvcc"),
        "sgl-deep-gemm 0.2.3.post2: deep_gemm/__init__.py:477 calls find_cuda_home at import, cuda_helpers.py:20",
        absent="AssertionError",
        stage="import",
        order=80,
    ),
    JitUser(
        "DeepGEMM in sgl-kernel",
        "sgl-kernel",
        ("home", "nvcc"),
        "sgl-kernel 0.3.21: deep_gemm/__init__.py:30",
        since="0.2",
        until="0.4",
        absent="AssertionError",
        stage="import",
        order=80,
    ),
    JitUser(
        "Triton",
        "triton",
        ("cc", "python.h", "libcuda", "ptxas"),
        "triton 3.8.0 and 3.5.1: runtime/build.py, backends/nvidia/driver.py, backends/nvidia/compiler.py",
        search=(),
        stage="jit",
        order=20,
    ),
    JitUser(
        "SGLang's own kernels",
        "sglang",
        ("nvcc", "ninja", "cxx", "cccl"),
        "sglang 0.5.23: kernels/jit/utils/compile/toolchain.py:40-60; tvm_ffi/cpp/extension.py builds",
        since="0.5.23",
        search=("CUDA_HOME", "CUDA_PATH", "nvcc", "default-unchecked"),
        absent="RuntimeError: Could not find CUDA installation. Please set CUDA_HOME environment variable.",
        order=50,
    ),
    JitUser(
        "FlashInfer",
        "flashinfer-python",
        ("nvcc", "ninja", "cxx", "cccl", "link"),
        "flashinfer-python 0.7.2: flashinfer/jit/cpp_ext.py get_cuda_path, generate_ninja_build_for_op, run_ninja",
        since="0.2",
        absent="RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist",
        order=50,
        prebuilt=("flashinfer-jit-cache",),
        extra_headers=("curand.h", "cublasLt.h"),
    ),
    JitUser(
        "tilelang",
        "tilelang",
        ("nvcc", "cxx"),
        "tilelang 0.1.12: tilelang/env.py _find_cuda_home",
        search=("CUDA_HOME", "CUDA_PATH", "nvcc", "wheels", "default"),
        order=60,
    ),
    JitUser(
        "CuPy",
        "cupy-cuda13x",
        ("nvrtc",),
        "cupy 14: cupy/_environment.py _get_cuda_path, by cuda.pathfinder",
        search=("wheels", "conda", "CUDA_HOME", "CUDA_PATH", "default"),
        order=70,
    ),
    JitUser(
        "CuPy",
        "cupy-cuda12x",
        ("nvrtc",),
        "CuPy documentation, Installation: CUDA_PATH, nvcc on PATH, /usr/local/cuda",
        search=("CUDA_PATH", "nvcc", "default"),
        order=70,
    ),
    JitUser(
        "torch's cpp_extension",
        "torch",
        ("nvcc", "ninja", "cxx", "cccl", "python.h"),
        "torch 2.14.1, 2.11.0, 2.9.1: torch/utils/cpp_extension.py _find_cuda_home",
        absent="OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
        order=65,
    ),
)


@dataclass(frozen=True, slots=True)
class EngineUse:
    """That an engine's default start uses a JIT user on GPUs of a range of compute capabilities."""

    engine: str
    user: str
    source: str
    least: tuple[int, int] = (0, 0)
    most: tuple[int, int] = (99, 9)
    since: str = "0"
    until: str = ""
    switch: str = ""
    """The variable that turns this use off by ``0`` or ``false``."""


_SGLANG_SAMPLER = "sglang 0.5.23: srt/arg_groups/overrides.py _sampling_backend_default"
ENGINE_USES: tuple[EngineUse, ...] = (
    EngineUse(
        "sglang",
        "DeepGEMM",
        "sglang 0.5.23: srt/layers/deep_gemm_wrapper/configurer.py",
        least=(9, 0),
        switch="SGLANG_ENABLE_JIT_DEEPGEMM",
    ),
    EngineUse(
        "sglang",
        "DeepGEMM in sgl-kernel",
        "sgl-kernel 0.3.21: deep_gemm/__init__.py:30, met in real starts",
        (9, 0),
        (10, 9),
    ),
    EngineUse("sglang", "Triton", "sglang 0.5.23: srt/layers, triton kernels of every backend"),
    EngineUse(
        "sglang",
        "SGLang's own kernels",
        "sglang 0.5.23: kernels/ops/layernorm/norm.py, attention/rope.py",
        least=(7, 5),
    ),
    EngineUse("sglang", "FlashInfer", _SGLANG_SAMPLER, least=(7, 5)),
    EngineUse("vllm", "Triton", "vllm 0.33.0: torch.compile with inductor by default"),
    EngineUse(
        "vllm",
        "FlashInfer",
        "vllm 0.33.0: v1/sample/ops/topk_topp_sampler.py flashinfer_sampler_supported, platforms/cuda.py",
        least=(7, 5),
        since="0.33",
        switch="VLLM_USE_FLASHINFER_SAMPLER",
    ),
)


@dataclass(frozen=True, slots=True)
class InStack:
    """A JIT user that is installed. ``default``: the engine uses it in a start with default options on this GPU."""

    user: JitUser
    version: str
    default: bool
    why: str = field(default="")


def engine_of(facts: Facts) -> str:
    """The engine that was asked for, else the one that is installed; '' where none is."""
    if facts.goal.engine:
        return facts.goal.engine
    return next((name for name in ("sglang", "vllm") if distribution(facts, name) is not None), "")


def cuda_of_torch(facts: Facts) -> str:
    """``13.0`` of a CUDA build of torch, '' for a CPU build, or where there is no torch."""
    torch = distribution(facts, "torch")
    return dict(torch.build).get("cuda", "") if torch is not None else ""


def gpus_of(facts: Facts) -> tuple[Gpu, ...]:
    """The GPUs, none where they are unknown."""
    return facts.gpus.value if isinstance(facts.gpus, Known) else ()


def in_stack(facts: Facts) -> tuple[InStack, ...]:
    """The JIT users of this stack, in the order in which a start meets them. None where torch has no CUDA."""
    if not cuda_of_torch(facts):
        return ()
    engine = engine_of(facts)
    engine_version = _version(facts, engine)
    found: list[InStack] = []
    for user in USERS:
        installed = distribution(facts, user.distribution)
        if installed is None or not _within(installed.version, user.since, user.until):
            continue
        use = next(
            (
                one
                for one in ENGINE_USES
                if one.engine == engine
                and one.user == user.name
                and _within(engine_version, one.since, one.until)
                and _any_gpu(facts, one)
                and (variable(facts, one.switch) or "").lower() not in ("0", "false")
            ),
            None,
        )
        found.append(InStack(user, installed.version, use is not None, use.source if use is not None else ""))
    # A user that the engine starts with comes before one that is only installed.
    return tuple(sorted(found, key=lambda one: (not one.default, one.user.order)))


def compiles(facts: Facts, one: InStack) -> bool:
    """Whether it would compile at all: FlashInfer does not where flashinfer-jit-cache brings its modules."""
    return not any(distribution(facts, name) is not None for name in one.user.prebuilt)


def _any_gpu(facts: Facts, use: EngineUse) -> bool:
    gpus = gpus_of(facts)
    return not gpus or any(use.least <= (gpu.major, gpu.minor) <= use.most for gpu in gpus)


def _version(facts: Facts, name: str) -> str:
    found = distribution(facts, name) if name else None
    return found.version if found is not None else ""


def _within(version: str, since: str, until: str) -> bool:
    try:
        value = Version(version)
        return value >= Version(since) and (not until or value < Version(until))
    except InvalidVersion:
        return True

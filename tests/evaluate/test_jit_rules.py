"""The rules about run-time compilation: each fires on its fault alone, and is silent on a whole toolkit."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from msgspec.structs import replace

from bringup.facts import Distribution, Facts, Goal, Gpu, Host, Interpreter, Known, Variable
from bringup.findings import Finding
from bringup.machine import CachedLibrary, CacheFolder, Component, DriverFile, Machine, Tool, Toolkit

HEADERS = (
    "cuda_runtime.h", "cuda_runtime_api.h", "crt/host_config.h", "nv/target", "cub/cub.cuh", "cuda/std/type_traits",
    "cublasLt.h", "curand.h",
)  # fmt: skip
LINKS = ("lib64/libcudart.so", "lib64/stubs/libcuda.so")
SM120 = Gpu("RTX PRO 6000", 12, 0, 8, product_class="rtx-pro")
H200 = Gpu("H200", 9, 0, product_class="datacenter")


def kit(home: str = "/usr/local/cuda", nvcc: str = "13.0.88", cudart: str = "13.0", **changes: Any) -> Toolkit:
    parts = {"nvcc": nvcc, "ptxas": nvcc, "nvvm": nvcc, "crt": nvcc, "runtime": "", "cccl": "3.0.1"}
    parts.update(changes.pop("parts", {}))
    components = tuple(
        Component(name, version, f"{home}/{name}") for name, version in parts.items() if version is not None
    )  # type: ignore[arg-type]
    two = nvcc.startswith("13.0")
    values: dict[str, Any] = {
        "found": ("/usr/local",), "components": components, "cudart": cudart, "launch_arguments": 2 if two else 1,
        "host_gcc_maximum": 15, "headers": HEADERS, "link_names": LINKS,
    }  # fmt: skip
    values.update(changes)
    return Toolkit(home, **values)


TOOLS = (
    Tool("ninja", "/usr/bin/ninja", "1.11.1"),
    Tool("gcc", "/usr/bin/gcc", "12.2.0"),
    Tool("g++", "/usr/bin/g++", "12.2.0"),
    Tool("triton/ptxas", "/e/triton/ptxas", "12.9.86", -1),
    Tool("triton/ptxas-blackwell", "/e/triton/ptxas-blackwell", "13.3.33", -1),
)
DISTRIBUTIONS = {
    "torch": "2.14.1", "sglang": "0.5.23", "flashinfer-python": "0.7.2", "triton": "3.8.0", "cuda-toolkit": "13.0.3.0",
}  # fmt: skip


def facts(
    kits: tuple[Toolkit, ...] = (kit(),),
    tools: tuple[Tool, ...] = TOOLS,
    variables: dict[str, str] | None = None,
    distributions: dict[str, str] | None = None,
    gpu: Gpu = SM120,
    machine: Machine | None = None,
    caches: tuple[CacheFolder, ...] = (),
    cuda: str = "13.0",
    loader_cache: tuple[tuple[str, str], ...] = (),
    engine: str = "sglang",
) -> Facts:
    stack = DISTRIBUTIONS if distributions is None else distributions
    return Facts(
        target="test",
        roots=("/e/site-packages",),
        host=Known(Host("x86_64", loader_cache=loader_cache, default_dirs=("/usr/lib",)), "test"),
        gpus=Known((gpu,), "--gpu"),
        python=Known(Interpreter("3.11.7"), "test"),
        distributions=Known(
            tuple(
                Distribution(name, version, build=(("cuda", cuda),) if name == "torch" and cuda else ())
                for name, version in stack.items()
            ),
            "test",
        ),
        variables=Known(tuple(Variable(*one) for one in {"PATH": "/usr/bin", **(variables or {})}.items()), "test"),
        toolkits=Known(kits, "test"),
        tools=Known(tools, "test"),
        caches=Known(caches, "test"),
        machine=Known(machine or Machine(), "test"),
        goal=Goal(engine=engine),
    )


def run(code: str, of: Facts) -> list[Finding]:
    module = importlib.import_module(f"bringup.evaluate.rules.{code.lower()}")
    return list(module.check(of))


CODES = [f"jit{number:03}" for number in range(1, 20)] + [f"fs{number:03}" for number in range(1, 5)]


@pytest.mark.parametrize("code", CODES)
def test_silent_on_a_whole_toolkit(code: str) -> None:
    assert run(code, facts()) == []


@pytest.mark.parametrize("code", CODES)
def test_silent_without_cuda(code: str) -> None:
    """A CPU build of torch compiles nothing for a GPU, whatever is missing."""
    assert run(code, facts(kits=(), tools=(), cuda="")) == []


def only(code: str, of: Facts) -> Finding:
    found = run(code, of)
    assert len(found) == 1, found
    return found[0]


def test_no_nvcc_anywhere() -> None:
    found = only("jit001", facts(kits=()))
    assert (
        found.predicted_error
        == "RuntimeError: Could not find CUDA installation. Please set CUDA_HOME environment variable."
    )
    assert found.severity == "error"
    assert found.fatal
    assert 'pip install "cuda-toolkit[nvcc,cccl,crt,nvvm,cudart]==13.0.*"' in found.remedies[0].commands


def test_no_nvcc_and_deep_gemm_ends_the_import() -> None:
    found = only("jit001", facts(kits=(), distributions={**DISTRIBUTIONS, "sgl-deep-gemm": "0.2.3.post2"}))
    assert (found.stage, found.predicted_error) == ("import", "AssertionError")


def test_nvcc_of_the_wheels_is_not_found_by_itself() -> None:
    home = "/e/site-packages/nvidia/cu13"
    found = only("jit001", facts(kits=(kit(home, found=("wheels",)),)))
    assert found.remedies[0].commands[0] == f"export CUDA_HOME={home}"


def test_an_engine_that_does_not_use_it_gives_a_warning() -> None:
    stack = {"torch": "2.14.1"}
    assert only("jit001", facts(kits=(), distributions=stack, engine="torch")).severity == "warning"


@pytest.mark.parametrize("value", [":/usr/local/cuda", "/usr/local/cuda:/usr/local/cuda", "/nowhere"])
def test_cuda_home_malformed(value: str) -> None:
    found = only("jit002", facts(variables={"CUDA_HOME": value}))
    assert found.predicted_error == f"/bin/sh: 1: {value}/bin/nvcc: not found"
    assert found.remedies[0].commands == ("export CUDA_HOME=/usr/local/cuda",)
    assert run("jit001", facts(variables={"CUDA_HOME": value})) == []


def test_ninja_missing_or_hidden() -> None:
    without = tuple(one for one in TOOLS if one.name != "ninja")
    assert only("jit003", facts(tools=without)).kind == "ninja_missing"
    hidden = (*without, Tool("ninja", "/e/bin/ninja", "1.13", -1))
    assert run("jit003", facts(tools=hidden)) == []
    found = only("jit004", facts(tools=hidden))
    assert found.predicted_error == "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'"
    assert found.remedies[0].commands == ('export PATH="/e/bin:$PATH"',)


def test_flashinfer_with_its_modules_ready_made_compiles_nothing() -> None:
    stack = {"torch": "2.14.1", "flashinfer-python": "0.7.2", "flashinfer-jit-cache": "0.7.2"}
    assert run("jit014", facts(kits=(kit(link_names=()),), distributions=stack)) == []


def test_nvcc_against_headers() -> None:
    found = only("jit005", facts(kits=(kit(nvcc="13.2.78"),)))
    assert "CUDA compiler and CUDA toolkit headers are incompatible" in found.predicted_error
    home = "/e/site-packages/nvidia/cu13"
    hidden = only("jit005", facts(kits=(kit(home, nvcc="13.5.37", found=("wheels",)),)))
    assert hidden.remedies[0].commands == ('pip install "cuda-toolkit[nvcc,cccl,crt,nvvm,cudart]==13.0.3"',)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"parts": {"nvvm": "13.2.78"}}, "Unsupported .version 9.2; current version is '9.0'"),
        ({"launch_arguments": 1}, 'macro "__cudaLaunch" passed 2 arguments, but takes just 1'),
        ({"nvcc": "13.5.37", "cudart": "13.5", "nvcc_says_simt_only": True}, "invalid option: --simt-only"),
        ({"nvcc": "13.2.78", "cudart": "13.2", "launch_arguments": 2}, "requires 2 arguments, but only 1 given"),
    ],
)
def test_parts_out_of_step(changes: dict[str, Any], error: str) -> None:
    assert error in only("jit006", facts(kits=(kit(**changes),))).predicted_error


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"parts": {"crt": None}}, "crt/host_config.h: No such file"),
        ({"parts": {"nvvm": None}}, "nvvm/bin/cicc: not found"),
        ({"headers": ()}, "cuda_runtime.h: No such file"),
        ({"headers": ("cuda_runtime.h",)}, "cuda/std/type_traits: No such file"),
        ({"headers": HEADERS[:-2]}, "curand.h: No such file"),
    ],
)
def test_parts_missing(changes: dict[str, Any], error: str) -> None:
    assert error in only("jit007", facts(kits=(kit(**changes),))).predicted_error


def test_nvcc_too_old() -> None:
    of = facts(kits=(kit(nvcc="12.4.131", cudart="12.4"),), cuda="12.4", gpu=SM120)
    assert only("jit008", of).predicted_error == "nvcc fatal   : Unsupported gpu architecture 'compute_120a'"
    assert "sm75" in only("jit009", of).predicted_error
    assert run("jit008", facts(kits=(kit(nvcc="12.4.131", cudart="12.4"),), cuda="12.4", gpu=H200)) == []


def test_flashinfer_thresholds_by_version() -> None:
    kits = (kit(nvcc="12.8.93", cudart="12.8"),)
    old = {**DISTRIBUTIONS, "flashinfer-python": "0.6.18"}
    assert only("jit009", facts(kits=kits, cuda="12.8", distributions=old)).kind.startswith("flashinfer_sm75")
    assert run("jit009", facts(kits=kits, cuda="12.8")) == []
    malformed = only("jit009", facts(variables={"FLASHINFER_CUDA_ARCH_LIST": "120"}))
    assert malformed.predicted_error == "ValueError: not enough values to unpack (expected 2, got 1)"
    assert run("jit009", facts(variables={"FLASHINFER_CUDA_ARCH_LIST": "12.0f 9.0"})) == []


def test_host_gcc() -> None:
    newer = tuple(replace(one, version="16.1.0") if one.name == "gcc" else one for one in TOOLS)
    assert "gcc versions later than 15" in only("jit010", facts(tools=newer)).predicted_error
    with_older = (*newer, Tool("NVCC_CCBIN", "/usr/bin/g++-14", "14.2.0"))
    assert run("jit010", facts(tools=with_older)) == []


def test_python_headers() -> None:
    below = Machine(python_header=Known(False, "/usr/include/python3.11"))
    found = only("jit011", facts(machine=below))
    assert found.predicted_error == "driver.c:9:10: fatal error: Python.h: No such file or directory"
    assert found.remedies[0].commands == ("apt-get install python3.11-dev",)


def test_c_compiler() -> None:
    without = tuple(one for one in TOOLS if one.name not in ("gcc", "g++"))
    assert "Failed to find C compiler" in only("jit012", facts(tools=without)).predicted_error
    named = (*TOOLS, Tool("CC", "", "", 0))
    assert "CC names gone" in only("jit012", facts(tools=named, variables={"CC": "gone"})).because[1].text


def test_libcuda_beside_the_list() -> None:
    files = (DriverFile("libcuda.so.1", "/opt/nv/libcuda.so.1", "/opt/nv/libcuda.so.580.1", "580.1"),)
    below = Machine(driver_files=Known(files, "test"))
    assert only("jit013", facts(machine=below)).predicted_error == "AssertionError: libcuda.so cannot found!"
    assert run("jit013", facts(machine=below, variables={"LD_LIBRARY_PATH": "/opt/nv"})) == []
    assert run("jit013", facts(machine=below, loader_cache=(("libcuda.so.1", "/opt/nv/libcuda.so.1"),))) == []
    old = {"torch": "2.3.0", "triton": "2.3.0"}
    listed = facts(machine=below, loader_cache=(("libcuda.so.1", "/opt/nv/libcuda.so.1"),), distributions=old)
    assert only("jit013", listed).predicted_error == "/usr/bin/ld: cannot find -lcuda"


def test_link_names() -> None:
    found = only("jit014", facts(kits=(kit(link_names=("lib/libcudart.so.13",)),)))
    assert found.predicted_error == "/usr/bin/ld: cannot find -lcudart"
    assert found.remedies[0].commands[0] == "ln -s lib /usr/local/cuda/lib64"
    in_system = (("libcudart.so", "/usr/lib/libcudart.so"), ("libcuda.so", "/usr/lib/libcuda.so"))
    assert run("jit014", facts(kits=(kit(link_names=()),), loader_cache=in_system)) == []


def test_a_script_makes_its_own_folder_the_cuda_home() -> None:
    script = Toolkit("/usr/local", ("PATH",), nvcc_is_script="/usr/local/cuda/bin/nvcc", link_names=())
    tools = (*TOOLS, Tool("nvcc", "/usr/local/bin/nvcc"))
    of = facts(kits=(script, kit()), tools=tools)
    assert run("jit001", of) == []
    assert only("jit014", of).subject == "/usr/local"


def test_ptxas_of_triton() -> None:
    gb10 = Gpu("GB10", 12, 1, product_class="gb10")
    old = tuple(one for one in TOOLS if one.name != "triton/ptxas-blackwell")
    old = tuple(replace(one, version="12.8.93") if one.name == "triton/ptxas" else one for one in old)
    found = only("jit015", facts(tools=old, gpu=gb10))
    assert found.predicted_error == "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'"
    set_to_newer = (*old, Tool("TRITON_PTXAS_PATH", "/usr/local/cuda/bin/ptxas", "13.0.88", -1))
    assert run("jit015", facts(tools=set_to_newer, gpu=gb10)) == []


def test_nvrtc() -> None:
    stack = {"torch": "2.14.1", "cupy-cuda13x": "14.0.0"}
    kits = (kit(parts={"nvrtc": "13.0.88"}),)
    assert only("jit016", facts(kits=kits, distributions=stack, gpu=Gpu("V100", 7, 0))).severity == "warning"
    assert run("jit016", facts(kits=kits, distributions=stack, gpu=SM120)) == []


def test_nvcc_against_torch() -> None:
    found = only("jit017", facts(kits=(kit(nvcc="12.8.93", cudart="12.8"),), gpu=H200))
    assert "The detected CUDA version (12.8) mismatches" in found.predicted_error
    assert run("jit017", facts(kits=(kit(nvcc="13.2.78", cudart="13.2"),))) == []


def cache(user: str = "flashinfer", **changes: Any) -> CacheFolder:
    values: dict[str, Any] = {"exists": True, "base": "/c", "writable": True, "filesystem": "ext4", "options": ("rw",)}
    values.update(changes)
    return CacheFolder(user, f"/c/{user}", "HOME", **values)


def test_stale_cache() -> None:
    below = Machine(installed=Known((("torch-2.14.1.dist-info", 200.0),), "RECORD"))
    older = cache(libraries=(CachedLibrary("/c/page.so", 100.0),))
    newer = cache(libraries=(CachedLibrary("/c/page.so", 300.0),))
    assert only("jit018", facts(machine=below, caches=(older,))).severity == "warning"
    assert run("jit018", facts(machine=below, caches=(newer,))) == []
    broken = cache("torch-extensions", libraries=(CachedLibrary("/c/x.so", 300.0, unresolved=("_ZN3c10x",)),))
    assert only("jit018", facts(machine=below, caches=(broken,))).severity == "error"


@pytest.mark.parametrize(
    ("value", "fires"), [("8.0 9.0", True), ("12.0", False), ("9.0+PTX", False), ("12.0a", False), ("12.1a", True)]
)
def test_arch_list(value: str, fires: bool) -> None:
    assert bool(run("jit019", facts(variables={"TORCH_CUDA_ARCH_LIST": value}))) is fires


def test_caches_that_cannot_be_used() -> None:
    assert only("fs001", facts(caches=(cache(writable=False),))).predicted_error.startswith("PermissionError")
    read_only = cache(writable=False, options=("ro",))
    assert "Read-only file system" in only("fs001", facts(caches=(read_only,))).predicted_error
    assert "failed to map" in only("fs002", facts(caches=(cache("triton", options=("rw", "noexec")),))).predicted_error
    left = cache("torch-extensions", locks=(("/c/torch-extensions/x/lock", 1.0),))
    assert only("fs003", facts(caches=(left,))).severity == "warning"
    assert run("fs003", facts(caches=(cache(locks=(("/c/tmp/page.lock", 1.0),)),))) == []
    assert only("fs004", facts(caches=(cache(filesystem="nfs4"),))).kind == "jit_cache_on_network_fs"
    assert run("fs001", facts(caches=(cache("cupy", writable=False),))) == [], "cupy is not installed"


def test_a_variable_turns_a_use_off() -> None:
    stack = {"torch": "2.14.1", "vllm": "0.33.0", "flashinfer-python": "0.7.2"}
    assert only("jit001", facts(kits=(), distributions=stack, engine="vllm")).severity == "error"
    off = {"VLLM_USE_FLASHINFER_SAMPLER": "0"}
    assert only("jit001", facts(kits=(), distributions=stack, engine="vllm", variables=off)).severity == "warning"

"""Settled bug reports of the world: the facts that a report states fire the rule of its kind, and no unrelated error.

Each case's facts are written out by hand from its ``env`` and symptom; what a report does not say stays unknown, or is a healthy
value where the rule under test is silent on it. The corpus lies beside the checkout.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from bringup.collect.model import parse_model
from bringup.evaluate.engine import evaluate
from bringup.facts import Distribution, Driver, Facts, Goal, Gpu, Host, Interpreter, Known, Variable
from bringup.machine import (
    CacheFolder,
    Component,
    DriverFile,
    KernelModule,
    Limits,
    Machine,
    SmiGpu,
    Tool,
    Toolkit,
)

CORPUS = Path(__file__).parents[3] / "shared/cases/dev.yaml"
PRO = Gpu("RTX PRO 6000", 12, 0, 2, product_class="rtx-pro")
HEADERS = ("cuda_runtime.h", "crt/host_config.h", "cuda/std/type_traits", "cublasLt.h", "curand.h")
LINKS = ("lib64/libcudart.so", "lib64/stubs/libcuda.so")
TOOLS = (Tool("gcc", "/usr/bin/gcc", "12.2.0"), Tool("ninja", "/usr/bin/ninja", "1.11"))


def kit(nvcc: str, cudart: str, gcc: int = 15) -> Toolkit:
    parts = ("nvcc", "nvvm", "ptxas", "crt", "runtime", "cccl")
    components = tuple(Component(one, nvcc, f"/cuda/{one}") for one in parts)  # type: ignore[arg-type]
    launch = 2 if nvcc.startswith("13.0") else 1
    return Toolkit(
        "/usr/local/cuda",
        ("/usr/local",),
        "",
        components,
        cudart,
        launch,
        host_gcc_maximum=gcc,
        headers=HEADERS,
        link_names=LINKS,
    )


def stack(packages: dict[str, str], cuda: str = "13.0", gpu: Gpu | None = None, **fields: Any) -> Facts:
    values: dict[str, Any] = {
        "distributions": Known(
            tuple(
                Distribution(name, version, build=(("cuda", cuda),) if name == "torch" else ())
                for name, version in packages.items()
            ),
            "report",
        ),
        "toolkits": Known((kit("13.0.88", "13.0"),), "report"),
        "tools": Known(TOOLS, "report"),
        "variables": Known((Variable("PATH", "/usr/bin"),), "report"),
        "host": Known(Host("x86_64", libc="glibc 2.39"), "report"),
        "python": Known(Interpreter("3.11.7"), "report"),
    }
    if gpu is not None:
        values["gpus"] = Known((gpu,), "report")
    values.update(fields)
    return Facts(target="report", **values)


def machine(**fields: Any) -> Machine:
    return Machine(**{name: Known(value, "report") for name, value in fields.items()})


def libraries(cuda: str, management: str, compat: bool = False, compiler: bool = True) -> tuple[DriverFile, ...]:
    folder = "/usr/local/cuda/compat" if compat else "/lib"
    found = [DriverFile("libcuda.so.1", f"{folder}/libcuda.so.1", f"{folder}/libcuda.so.{cuda}", cuda, compat)]
    found.append(
        DriverFile("libnvidia-ml.so.1", "/lib/libnvidia-ml.so.1", f"/lib/libnvidia-ml.so.{management}", management)
    )
    if compiler:
        found.append(DriverFile("libnvidia-ptxjitcompiler.so.1", "/lib/x", f"/lib/x.{cuda}", cuda))
    return tuple(found)


def below(of: Machine, gpu: Gpu | None = None, **fields: Any) -> Facts:
    values: dict[str, Any] = {"machine": Known(of, "report")}
    if gpu is not None:
        values["gpus"] = Known((gpu,), "report")
    values.update(fields)
    return Facts(target="report", **values)


GTX = Gpu("GTX 1050 Ti", 6, 1, product_class="geforce")
MODEL = replace(parse_model({"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_size": 4096}, 8 << 30, 0, "m"))
VLLM = {"torch": "2.13.0", "vllm": "0.30.0", "flashinfer-python": "0.7.2", "triton": "3.7.0"}

CASES: dict[str, Callable[[], Facts]] = {
    "edutelligence-687": lambda: stack(
        VLLM, gpu=PRO, toolkits=Known((kit("13.2.86", "13.0"),), "report"), goal=Goal("vllm")
    ),
    "flash-attn-779": lambda: stack({"torch": "2.1.2"}, "12.1", toolkits=Known((), "report")),
    "deepspeed-2772": lambda: stack({"torch": "2.0.0"}, "11.7", toolkits=Known((), "report")),
    "llamacpp-9205": lambda: stack(
        {"torch": "2.4.0"},
        "12.4",
        toolkits=Known((kit("12.4.131", "12.4", 13),), "report"),
        tools=Known((Tool("gcc", "/usr/bin/gcc", "14.2.0"), TOOLS[1]), "report"),
    ),
    "voicebox-877": lambda: stack(
        {"torch": "2.13.0", "triton": "3.7.0"},
        gpu=Gpu("RTX 5070 Ti", 12, 0, 2),
        tools=Known((), "report"),
        goal=Goal("torch"),
    ),
    "scope-84": lambda: stack(
        {"torch": "2.8.0", "triton": "3.4.0"},
        "12.8",
        toolkits=Known((kit("12.8.93", "12.8"),), "report"),
        machine=Known(machine(python_header=False), "report"),
    ),
    "triton-8539": lambda: stack(
        {"torch": "2.10.0", "triton": "3.5.0"},
        gpu=Gpu("GB10", 12, 1, product_class="gb10"),
        tools=Known((*TOOLS, Tool("triton/ptxas", "/t/ptxas", "12.8.93", -1)), "report"),
    ),
    "flashinfer-371": lambda: stack(
        {"torch": "2.3.0", "flashinfer-python": "0.2.0"},
        "12.4",
        gpu=Gpu("L20", 8, 9, product_class="datacenter"),
        toolkits=Known((kit("12.4.99", "12.4"),), "report"),
        variables=Known(
            (Variable("TORCH_CUDA_ARCH_LIST", "5.2 6.0 6.1 7.0 7.2 7.5"), Variable("PATH", "/usr/bin")), "report"
        ),
    ),
    "pytorch-123054": lambda: stack(
        {"torch": "2.2.0"},
        "12.1",
        toolkits=Known((kit("12.1.105", "12.1"),), "report"),
        caches=Known(
            (
                CacheFolder(
                    "torch-extensions", "/tmp/x", "TORCH_EXTENSIONS_DIR", True, "/tmp", True, "tmpfs", ("rw", "noexec")
                ),
            ),
            "report",
        ),
    ),
    "nvidia-docker-1085": lambda: below(machine(devices=("/dev/nvidia0", "/dev/nvidiactl"))),
    "nvidia-docker-1447": lambda: below(machine(devices=("/dev/nvidia0", "/dev/nvidiactl"))),
    "xinference-2836": lambda: below(machine(shared_memory=64 << 20), Gpu("P40", 6, 1, 4, product_class="datacenter")),
    "nccl-tests-206": lambda: below(
        machine(limits=Limits(8192 << 10, 1024), infiniband=("mlx5_0",)), Gpu("GPU", 8, 0, 8)
    ),
    "vllm-51513": lambda: below(
        machine(acs_redirect=("0000:40:01.1",), iommu_groups=70, command_line="quiet"), replace(PRO, count=4)
    ),
    "nccl-2418": lambda: stack(
        {"torch": "2.7.0", "nvidia-nccl-cu12": "2.26.2"},
        "12.8",
        gpu=PRO,
        toolkits=Known((kit("12.8.93", "12.8"),), "report"),
    ),
    "machine-shop-70": lambda: below(
        machine(module=KernelModule("520.56.06", "proprietary"), driver_files=libraries("525.85.12", "525.85.12"))
    ),
    "truenas-19": lambda: below(
        machine(module=KernelModule("580.173.02", "open"), driver_files=libraries("580.178", "580.178"))
    ),
    "gpuop-2781": lambda: below(machine(smi=(SmiGpu(0, "NVIDIA B200", fabric_state="In Progress"),))),
    "textgen-4407": lambda: below(
        machine(
            module=KernelModule("525.125.06", "proprietary"), driver_files=libraries("530.30.02", "525.125.06", True)
        ),
        GTX,
    ),
    "vllm-50985": lambda: stack(
        VLLM,
        gpu=Gpu("RTX 1000 Ada", 8, 9, memory=6 << 30),
        model=Known(MODEL, "report"),
        goal=Goal("vllm", "m"),
        driver=Known(Driver("580.95.05", "13.0"), "report"),
    ),
    "jetpack-nixos-184": lambda: below(
        machine(
            devices=("/dev/nvidia0", "/dev/nvidia-uvm"), driver_files=libraries("35.3.1", "35.3.1", compiler=False)
        ),
        Gpu("Orin", 8, 7, product_class="jetson"),
    ),
}


@pytest.fixture(scope="module")
def corpus() -> dict[str, dict[str, Any]]:
    if not CORPUS.exists():
        pytest.skip("the corpus of cases does not lie beside the checkout")
    return {one["id"]: one for one in yaml.safe_load(CORPUS.read_text())}


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_settled_case(name: str, corpus: dict[str, dict[str, Any]]) -> None:
    kind = corpus[name]["kind"]
    evaluation = evaluate(CASES[name]())
    assert not evaluation.faults
    found = [one.finding for one in evaluation.findings]
    assert kind in {one.kind for one in found}
    unrelated = {one.kind for one in found if one.severity == "error" and one.kind != kind}
    assert unrelated == set()


def test_the_case_that_is_named_otherwise(corpus: dict[str, dict[str, Any]]) -> None:
    """A compat libcuda of CUDA 11.3 before driver 460.80 on a GTX 1650: the report calls it shadowing, the rule the refusal."""
    assert corpus["torchpod-43"]["kind"] == "compat_libcuda_shadows_driver"
    of = machine(module=KernelModule("460.80", "proprietary"), driver_files=libraries("465.19.01", "460.80", True))
    found = [one.finding.kind for one in evaluate(below(of, GTX)).findings]
    assert found == ["forward_compat_on_geforce"]

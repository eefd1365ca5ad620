"""The rules about device code and the driver: each fires on its fault alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from bringup.evaluate.device import device_gaps
from bringup.evaluate.variants import ROWS, bitsandbytes_choice, choice
from bringup.facts import Facts, Known, Library
from bringup.findings import Finding
from bringup.gpus import parse_gpu
from tests.evaluate.stacks import ask, commands, library, said, stack

RULES = ("GPU001", "GPU002", "GPU003", "GPU004", "GPU005")
TORCH = library(
    "torch/lib/libtorch_cuda.so", "torch", "sm_70 sm_75 sm_80 sm_86 sm_90 sm_90a sm_100 sm_100a sm_120 sm_120a", size=9
)
TORCH_NEW = library("torch/lib/libtorch_cuda.so", "torch", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120", size=9)
SGL_0_3_21 = (
    library("sgl_kernel/sm90/common_ops.abi3.so", "sgl-kernel", "sm_80 sm_89 sm_90 sm_90a sm_100a sm_120a", size=374),
    library("sgl_kernel/sm100/common_ops.abi3.so", "sgl-kernel", "sm_80 sm_89 sm_90 sm_90a sm_100a sm_120a", size=374),
    library("sgl_kernel/flash_ops.abi3.so", "sgl-kernel", "sm_80 sm_86 sm_90a", size=400),
    library("sgl_kernel/flashmla_ops.abi3.so", "sgl-kernel", "sm_90a sm_100a", size=20),
    library("lib/mscclpp.so.0.6.0", "sgl-kernel", "sm_80 sm_90 compute_80 compute_90", size=30),
)
STACK = {"torch": "2.9.1", "sgl-kernel": "0.3.21"}


def everything(facts: Facts) -> list[Finding]:
    return [finding for rule in RULES for finding in ask(rule, facts)]


def sgl(gpu: str, driver: str = "580.95.05") -> dict[str, Finding]:
    found = everything(stack(STACK, (TORCH, *SGL_0_3_21), gpu, driver, cuda="12.8"))
    assert len({finding.subject for finding in found}) == len(found)
    return {finding.subject: finding for finding in found}


@pytest.mark.parametrize("gpu", ["8.9", "10.3", "12.1", "h200", "b200", "rtx-pro-6000", "v100", "a100"])
def test_torch_2_9_1_gives_no_false_alarm(gpu: str) -> None:
    assert everything(stack({"torch": "2.9.1"}, (TORCH,), gpu, "580.95.05")) == []


def test_torch_without_code_for_a_newer_gpu() -> None:
    old = library("torch/lib/libtorch_cuda.so", "torch", "sm_50 sm_60 sm_70 sm_80 sm_86 sm_90")
    (finding,) = ask("GPU001", stack({"torch": "2.4.1"}, (old,), "rtx-pro-6000", "580.95.05"))
    assert finding.severity == "error"
    assert finding.fatal
    assert "sm_50, sm_60, sm_70, sm_80, sm_86, sm_90" in said(finding)
    assert "RTX PRO 6000 Blackwell has compute capability 12.0" in said(finding)
    assert finding.predicted_error == "CUDA error: no kernel image is available for execution on the device"
    assert any("--upgrade torch" in command for command in commands(finding))


def test_torch_that_dropped_the_gpu() -> None:
    found = everything(stack({"torch": "2.11.0"}, (TORCH_NEW,), "v100", "580.95.05"))
    (finding,) = found
    assert (finding.rule, finding.kind, finding.severity) == ("GPU003", "gpu_too_old_for_wheel", "error")
    assert "compute capability 7.0, older than all of these" in said(finding)
    assert any("--torch-backend cu126" in command for command in commands(finding))


def test_sgl_kernel_on_sm_120() -> None:
    found = sgl("rtx-pro-6000")
    assert "sgl_kernel/sm100/common_ops.abi3.so" not in found
    assert "sgl_kernel/sm90/common_ops.abi3.so" not in found
    flash = found["sgl_kernel/flash_ops.abi3.so"]
    assert flash.severity == "info"
    assert "only where FlashAttention 3 is chosen" in said(flash)
    assert "sm_80, sm_86, sm_90a" in said(flash)
    assert flash.predicted_error == ""
    assert not flash.remedies
    assert all(finding.severity == "info" for finding in found.values())


@pytest.mark.parametrize("gpu", ["h200", "b200", "4090", "a100"])
def test_sgl_kernel_where_it_runs(gpu: str) -> None:
    assert all(finding.severity == "info" for finding in sgl(gpu).values())


def test_sgl_kernel_on_7_0() -> None:
    found = sgl("sm_70")
    errors = [finding for finding in found.values() if finding.severity == "error"]
    assert [finding.subject for finding in errors] == ["sgl_kernel/sm100/common_ops.abi3.so"]
    assert errors[0].kind == "gpu_too_old_for_wheel"
    assert "on every compute capability but 9.0" in said(errors[0])
    assert any(command.startswith("TORCH_CUDA_ARCH_LIST=7.0 ") for command in commands(errors[0]))


def test_code_for_another_architecture_specific_target() -> None:
    found = sgl("gb10")
    finding = found["sgl_kernel/sm100/common_ops.abi3.so"]
    assert (finding.rule, finding.kind, finding.severity) == ("GPU004", "arch_specific_cubin_mismatch", "error")
    assert "run only on their own architecture or family" in said(finding)
    assert any("--upgrade sgl-kernel" in command for command in commands(finding))
    # What only DeepSeek's attention asks for is no error by itself.
    assert sgl("b300")["sgl_kernel/flashmla_ops.abi3.so"].severity == "warning"


def test_an_extension_without_code_for_the_gpu() -> None:
    ours = library("mine/_C.so", "mine", "sm_80 sm_90a")
    (finding,) = everything(stack({"torch": "2.9.1", "mine": "1.0"}, (TORCH, ours), "rtx-pro-6000", "580.95.05"))
    assert (finding.rule, finding.kind, finding.severity) == ("GPU002", "no_sass_for_gpu_in_extension", "error")
    assert "no library of mine has any" in said(finding)
    assert finding.subject == "mine/_C.so"


def test_one_library_of_several_without_code_is_no_error() -> None:
    libraries = (TORCH, library("mine/_A.so", "mine", "sm_90a"), library("mine/_B.so", "mine", "sm_120"))
    (finding,) = everything(stack({"torch": "2.9.1", "mine": "1.0"}, libraries, "rtx-pro-6000", "580.95.05"))
    assert (finding.subject, finding.severity) == ("mine/_A.so", "info")


def test_a_bundled_library_does_not_speak_for_its_package() -> None:
    libraries = (TORCH, library("x.libs/libnvjpeg-1.so.13", "x", "sm_90"), library("x/_C.so", "x", "sm_120"))
    assert all(one.severity == "info" for one in everything(stack({"torch": "2.9.1"}, libraries, "5090", "580.95.05")))
    only = (TORCH, library("x.libs/libnvjpeg-1.so.13", "x", "sm_90"))
    assert all(one.severity == "info" for one in everything(stack({"torch": "2.9.1"}, only, "5090", "580.95.05")))


def test_nvidia_packages_are_judged_as_wholes() -> None:
    blas = library("nvidia/cublas/lib/libcublas.so.12", "nvidia-cublas-cu12", "sm_50 sm_90")
    light = library("nvidia/cublas/lib/libcublasLt.so.12", "nvidia-cublas-cu12", "sm_120", size=5)
    stub = library("nvidia/cufft/lib/libcufft.so.11", "nvidia-cufft-cu12", "sm_52")
    assert everything(stack({"torch": "2.9.1"}, (TORCH, blas, light, stub), "5090", "580.95.05")) == []
    (finding,) = everything(stack({"torch": "2.9.1"}, (TORCH, blas, stub), "5090", "580.95.05"))
    assert (finding.severity, finding.subject) == ("warning", blas.path)
    # Where torch itself has no code, what it calls is not told as well.
    lost = library("torch/lib/libtorch_cuda.so", "torch", "sm_90")
    assert [one.subject for one in everything(stack({"torch": "2.4"}, (lost, blas), "5090", "580.95.05"))] == [
        lost.path
    ]


def test_ptx_newer_than_the_driver() -> None:
    fa2 = library("vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so", "vllm", "sm_80 compute_80", isa="9.0")
    main = library("vllm/_C_stable_libtorch.abi3.so", "vllm", "sm_80 sm_120", size=5)
    facts = stack({"torch": "2.9.1", "vllm": "0.33.0"}, (TORCH, fa2, main), "rtx-pro-6000", "575.57.08")
    (finding,) = everything(facts)
    assert (finding.rule, finding.kind, finding.severity) == ("GPU005", "ptx_newer_than_driver", "error")
    assert "only PTX of ISA 9.0" in said(finding)
    assert "driver 575.57.08 takes PTX up to ISA 8.8" in said(finding)
    assert finding.predicted_error == "CUDA error: the provided PTX was compiled with an unsupported toolchain."
    assert "driver 580 or later" in finding.remedies[0].summary
    assert everything(stack({"vllm": "0.33.0"}, (TORCH, fa2, main), "rtx-pro-6000", "580.95.05")) == []
    # On 8.x there is SASS: the PTX is not needed.
    assert everything(stack({"vllm": "0.33.0"}, (TORCH, fa2, main), "4090", "575.57.08")) == []


def test_ptx_with_an_unknown_driver_is_silent() -> None:
    facts = stack({"torch": "2.9.1"}, (TORCH, library("mine/_C.so", "mine", "compute_80")), "5090")
    assert [gap for gap in device_gaps(facts) if gap.library.owner == "mine"] == []


# --- the driver and the CUDA runtimes -------------------------------------------------------------------------------


def test_driver_older_than_torch() -> None:
    facts = stack({"torch": "2.11.0", "nvidia-cuda-runtime": "13.0.96"}, driver="570.133.20", cuda="13.0")
    (finding,) = ask("DRV001", facts)
    assert said(finding) == "torch 2.11.0 is built for CUDA 13.0 and driver 570.133.20 implements CUDA 12.8"
    assert "found version 12080" in finding.predicted_error
    assert "driver 580 or later" in finding.remedies[0].summary
    assert any("--torch-backend cu129" in command for command in commands(finding))


def test_driver_older_than_another_runtime() -> None:
    facts = stack({"torch": "2.9.1", "cupy-cuda13x": "14.2.0"}, driver="570.133.20", cuda="12.8")
    (finding,) = ask("DRV001", facts)
    assert finding.subject == "cupy-cuda13x"
    assert not finding.fatal
    assert any("cupy-cuda12x" in command for command in commands(finding))


@pytest.mark.parametrize(
    ("driver", "cuda"), [("580.95.05", "13.0"), ("580.95.05", "12.8"), ("525.60.13", "12.8"), ("610.43.02", "13.0")]
)
def test_driver_that_runs_torch(driver: str, cuda: str) -> None:
    assert ask("DRV001", stack({"torch": "2.9.1"}, driver=driver, cuda=cuda)) == []


def test_cpu_torch_beside_a_gpu() -> None:
    (finding,) = ask("VER007", stack({"torch": "2.13.0+cpu"}, gpu="h200", cuda=""))
    assert "torch 2.13.0+cpu is a build without CUDA" in said(finding)
    assert finding.predicted_error == "AssertionError: Torch not compiled with CUDA enabled"
    assert any("--torch-backend auto torch==2.13.0" in command for command in commands(finding))
    assert ask("VER007", stack({"torch": "2.13.0"}, gpu="h200", cuda="13.0")) == []


# --- the table of variants --------------------------------------------------------------------------------------------


def test_every_row_says_where_it_was_read() -> None:
    for row in ROWS:
        assert row.source, row
        assert row.when, row
        assert row.packages, row


@pytest.mark.parametrize(
    ("owner", "path", "gpu", "loads"),
    [
        ("sgl-kernel", "sgl_kernel/sm90/common_ops.abi3.so", "h200", True),
        ("sgl-kernel", "sgl_kernel/sm100/common_ops.abi3.so", "h200", False),
        ("sglang-kernel", "sgl_kernel/sm100/common_ops.abi3.so", "4090", True),
        ("sglang-kernel", "sgl_kernel/flash_ops.abi3.so", "a100", True),
        ("vllm", "vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so", "h200", True),
        ("vllm", "vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so", "b200", False),
        ("vllm", "vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so", "t4", False),
        ("vllm", "vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so", "b200", None),
        ("vllm", "vllm/_flashmla_C.abi3.so", "5090", False),
        ("sgl-deep-gemm", "deep_gemm/_C.so", "5090", None),
        ("sgl-deep-gemm", "deep_gemm/_C.so", "4090", False),
        ("torch-memory-saver", "torch_memory_saver_hook_mode_preload_cu13.abi3.so", "h200", True),
        ("torch-memory-saver", "torch_memory_saver_hook_mode_preload_cu12.abi3.so", "h200", False),
        ("torch-c-dlpack-ext", "torch_c_dlpack_ext/libtorch_c_dlpack_addon_torch29-cuda.so", "h200", True),
        ("torch-c-dlpack-ext", "torch_c_dlpack_ext/libtorch_c_dlpack_addon_torch29-cpu.so", "h200", False),
        ("torch-c-dlpack-ext", "torch_c_dlpack_ext/libtorch_c_dlpack_addon_torch28-cuda.so", "h200", False),
    ],
)
def test_choice(owner: str, path: str, gpu: str, loads: bool | None) -> None:
    found = choice(stack({"torch": "2.9.1"}), library(path, owner), parse_gpu(gpu))
    assert found is not None
    assert found.loads is loads


def test_the_table_says_nothing_of_other_packages() -> None:
    assert choice(stack({}), library("mine/_C.so", "mine"), parse_gpu("h200")) is None


def bitsandbytes(*versions: str) -> tuple[Library, ...]:
    return tuple(library(f"bitsandbytes/libbitsandbytes_cuda{one}.so", "bitsandbytes", "sm_90") for one in versions)


@pytest.mark.parametrize(
    ("cuda", "release", "chosen"),
    [("13.0", "0.50.2", "130"), ("12.9", "0.50.2", "128"), ("12.0", "0.50.2", "121"), ("11.8", "0.50.2", "118"), ("14.0", "0.50.2", "140"),
     ("12.9", "0.45.0", "129"), ("", "0.50.2", None)],
)  # fmt: skip
def test_bitsandbytes_choice(cuda: str, release: str, chosen: str | None) -> None:
    facts = stack({"torch": "2.9.1", "bitsandbytes": release}, bitsandbytes("118", "121", "128", "130"), cuda=cuda)
    assert bitsandbytes_choice(facts) == chosen


def test_bitsandbytes_without_a_library_for_torchs_cuda() -> None:
    names = {"torch": "2.9.1", "bitsandbytes": "0.45.0"}
    (finding,) = ask("VER010", stack(names, bitsandbytes("118", "128"), cuda="13.0"))
    assert "torch 2.9.1 is built for CUDA 13.0" in said(finding)
    assert "carries libraries for 11.8, 12.8" in said(finding)
    assert "libbitsandbytes_cuda130.so" in finding.predicted_error
    assert any("--upgrade bitsandbytes" in command for command in commands(finding))
    assert ask("VER010", stack(names, bitsandbytes("118", "130"), cuda="13.0")) == []
    (finding,) = ask("VER010", stack(names, bitsandbytes("130"), cuda="13.0", variables={"BNB_CUDA_VERSION": "122"}))
    assert commands(finding) == ["unset BNB_CUDA_VERSION"]


# --- really installed environments --------------------------------------------------------------------------------


def environments() -> list[Path]:
    """Folders of BRINGUP_TRUTH_ENVS, separated as in PATH."""
    return [Path(one) for one in os.environ.get("BRINGUP_TRUTH_ENVS", "").split(os.pathsep) if one]


@pytest.mark.truth
@pytest.mark.parametrize("gpu", ["rtx-pro-6000", "h200", "b200", "rtx 4090"])
def test_no_error_on_healthy_environments(gpu: str) -> None:
    from bringup.pipeline import read_environment

    if not environments():
        pytest.skip("BRINGUP_TRUTH_ENVS names no environment")
    for folder in environments():
        facts = replace(read_environment(folder), gpus=Known((parse_gpu(gpu),), "--gpu"))
        found = [finding for finding in everything(facts) if finding.severity != "info"]
        assert found == [], folder

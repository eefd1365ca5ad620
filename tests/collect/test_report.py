"""Facts out of pasted text: what tools print, what people write; what is not said stays unknown."""

from __future__ import annotations

import pytest

from bringup.collect.report import Reported, read_report
from bringup.collect.reports.lines import read_text
from bringup.facts import Gpu, Known, Unknown, distribution

SMI = """
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 5090        On  |   00000000:01:00.0 Off |                  N/A |
|  0%   30C    P8             12W /  575W |       1MiB /  32607MiB |      0%      Default |
|   1  NVIDIA GeForce RTX 5090        On  |   00000000:02:00.0 Off |                  N/A |
"""
COLLECT_ENV = """PyTorch version              : 2.9.0+cu128
CUDA used to build PyTorch   : 12.8
OS                           : Ubuntu 22.04.5 LTS (x86_64)
Libc version                 : glibc-2.35
Python version               : 3.12.11 (main, Jun  4 2025, 08:56:18) [GCC 11.4.0] (64-bit runtime)
GPU models and configuration :
GPU 0: NVIDIA H100 80GB HBM3
GPU 1: NVIDIA H100 80GB HBM3
Nvidia driver version        : 570.86.15
[pip3] flashinfer-python==0.4.1
[pip3] triton==3.5.0
vLLM Version                 : 0.11.0
"""
CHECK_ENV = """Python: 3.12.12 (main, Jan 14 2026, 19:35:58) [Clang 21.1.4 ]
CUDA available: True
GPU 0,1,2,3,4,5,6,7: NVIDIA RTX PRO 6000 Blackwell Server Edition
GPU 0,1,2,3,4,5,6,7 Compute Capability: 12.0
CUDA_HOME: /usr/local/cuda
NVCC: Cuda compilation tools, release 13.0, V13.0.88
CUDA Driver Version: 580.126.09
PyTorch: 2.9.1+cu130
sglang: 0.5.7
sgl_kernel: 0.3.21
flashinfer_python: 0.6.1
triton: 3.5.1
"""
PIP_LIST = """Package                                  Version
---------------------------------------- ---------------
torch                                    2.8.0+cu126
vllm                                     0.10.2
nvidia-nccl-cu12                         2.27.3
"""


def said(text: str) -> Reported:
    return read_report(read_text(text).lines)


def gpus(text: str) -> tuple[Gpu, ...]:
    found = said(text).facts.gpus
    assert isinstance(found, Known), found
    return found.value


def version(reported: Reported, name: str) -> str:
    found = distribution(reported.facts, name)
    return found.version if found else ""


def test_nvidia_smi() -> None:
    reported = said(SMI)
    (gpu,) = gpus(SMI)
    assert (gpu.compute_capability, gpu.count, gpu.product_class) == ("12.0", 2, "geforce")
    driver = reported.facts.driver
    assert isinstance(driver, Known)
    assert (driver.value.version, driver.value.cuda, driver.source) == ("580.95.05", "13.0", "line 3")


def test_nvidia_smi_list() -> None:
    (gpu,) = gpus("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\nGPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)\n")
    assert (gpu.compute_capability, gpu.count) == ("8.0", 2)


def test_collect_env() -> None:
    reported = said(COLLECT_ENV)
    assert (reported.torch, reported.cuda) == ("2.9.0+cu128", "12.8")
    assert version(reported, "flashinfer-python") == "0.4.1"
    assert version(reported, "triton") == "3.5.0"
    (gpu,) = gpus(COLLECT_ENV)
    assert (gpu.compute_capability, gpu.count) == ("9.0", 2)
    host, python, driver = reported.facts.host, reported.facts.python, reported.facts.driver
    assert isinstance(host, Known)
    assert isinstance(python, Known)
    assert isinstance(driver, Known)
    assert (host.value.libc, python.value.version, driver.value.version) == ("glibc 2.35", "3.12.11", "570.86.15")
    assert driver.value.cuda == "12.8"


def test_check_env() -> None:
    reported = said(CHECK_ENV)
    assert (reported.torch, reported.cuda, reported.nvcc) == ("2.9.1+cu130", "13.0", "13.0")
    assert version(reported, "sgl-kernel") == "0.3.21"
    assert version(reported, "flashinfer-python") == "0.6.1"
    assert gpus(CHECK_ENV)[0].compute_capability == "12.0"


def test_pip_list() -> None:
    reported = said(PIP_LIST)
    assert reported.torch == "2.8.0+cu126"
    assert version(reported, "vllm") == "0.10.2"
    assert version(reported, "nvidia-nccl-cu12") == "2.27.3"


@pytest.mark.parametrize(
    ("text", "capability", "count"),
    [
        ("gpu: 8x RTX PRO 6000 Blackwell (12,0)", "12.0", 8),
        ("gpu: RTX 5090", "12.0", 1),
        ("gpu: 2x GB10 (DGX Spark, sm_121)", "12.1", 2),
        ("gpu: Tesla V100 (sm_70)", "7.0", 1),
        ("GPU: sm_103", "10.3", 1),
        ("it fails on my GTX 1080 Ti", "6.1", 1),
        ("device has compute capability 8.6", "8.6", 1),
        ("gpu: 4x A100", "8.0", 4),
    ],
)
def test_gpus_of_prose(text: str, capability: str, count: int) -> None:
    (gpu,) = gpus(text)[:1]
    assert (gpu.compute_capability, gpu.count) == (capability, count)


@pytest.mark.parametrize(
    "text", ["", "nothing here", "Python 3", "the file a100.py in /opt/l4/x", "INFO 2024-01-01 10:00:00 ready"]
)
def test_what_is_not_said_is_unknown(text: str) -> None:
    facts = said(text).facts
    assert isinstance(facts.gpus, Unknown)
    assert isinstance(facts.driver, Unknown)
    assert isinstance(facts.distributions, Unknown)
    assert isinstance(facts.libraries, Unknown)
    assert isinstance(facts.toolkits, Unknown)


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        ("torch: 2.11.0", "13.0"),
        ("torch: 2.9.1", "12.1"),
        ("torch: 2.9.1+cu126", "12.6"),
        ("packages: sglang 0.5.23", "13.0"),
    ],
)
def test_cuda_of_torch(text: str, cuda: str) -> None:
    assert said(text).cuda == cuda


def test_line_numbers_are_sources() -> None:
    facts = said("a\n\ntorch: 2.8.0\ngpu: L40S\n").facts
    assert isinstance(facts.distributions, Known)
    assert isinstance(facts.gpus, Known)
    assert (facts.distributions.source, facts.gpus.source) == ("line 3", "line 4")


def test_variables() -> None:
    facts = said("CUDA_HOME=:/usr/local/cuda TORCH_CUDA_ARCH_LIST='8.0 9.0'").facts
    assert isinstance(facts.variables, Known)
    assert [(one.name, one.value) for one in facts.variables.value] == [
        ("CUDA_HOME", ":/usr/local/cuda"),
        ("TORCH_CUDA_ARCH_LIST", "8.0"),
    ]

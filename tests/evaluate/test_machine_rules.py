"""The rules about driver, container, collectives: a firing and a silent case of each, on a recorded machine."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bringup.collect.host import with_machine
from bringup.facts import Distribution, Driver, Facts, Gpu, Host, Known, Variable
from bringup.findings import Finding
from bringup.machine import DriverFile, KernelModule, Limits, Machine, PciGpu, SmiGpu, Topology, Xid

RECORDED = Path(__file__).parent.parent / "data/recorded/h200-probe.json"
CODES = [
    *(f"host{number:03}" for number in range(1, 12)),
    *(f"drv{number}" for number in range(101, 106)),
    *("ctr001", "ctr002", "ctr003", "ctr005"),
    *(f"net{number:03}" for number in range(1, 6)),
]
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1")
SMI = SmiGpu(0, "NVIDIA RTX PRO 6000", bus="00000000:01:00.0", compute_mode="Default", ecc_uncorrectable=0)
PCI = PciGpu("0000:01:00.0", "0x2bb1", "0x030200", "nvidia")
PRO = Gpu("RTX PRO 6000", 12, 0, 8, product_class="rtx-pro")
GEFORCE = Gpu("GeForce RTX 4090", 8, 9, 2, product_class="geforce")


def files(release: str, **others: str) -> Known[tuple[DriverFile, ...]]:
    return Known(
        tuple(
            DriverFile(
                name,
                f"/lib/{name}",
                f"/lib/{name}.{others.get(name.split('.')[0], release)}",
                others.get(name.split(".")[0], release),
            )
            for name in LIBRARIES
        ),
        "test",
    )


HEALTHY = Machine(
    container=Known("none", "test"),
    user_namespace=Known(False, "test"),
    module=Known(KernelModule("580.95.05", "open"), "/proc/driver/nvidia/version"),
    driver_files=files("580.95.05"),
    smi=Known((SMI,), "nvidia-smi -q"),
    smi_error=Known("", "nvidia-smi -q"),
    devices=Known(("/dev/nvidia0", "/dev/nvidia-uvm", "/dev/nvidiactl"), "/dev"),
    pci=Known((PCI,), "test"),
    kernel_log=Known((), "dmesg"),
    xids=Known((), "dmesg"),
    secure_boot=Known(False, "test"),
    fabric_manager=Known("active", "test"),
    fabric_manager_release=Known("580.95.05", "test"),
    limits=Known(Limits(-1, 65536), "test"),
    shared_memory=Known(64 << 30, "test"),
    infiniband=Known((), "test"),
    cuda_requirement=Known("", "test"),
    acs_redirect=Known((), "test"),
)


def facts(
    machine: Machine = HEALTHY,
    gpu: Gpu = PRO,
    variables: dict[str, str] | None = None,
    distributions: dict[str, str] | None = None,
    cuda: str = "13.0",
    cache: tuple[tuple[str, str], ...] = (("libcuda.so.1", "/lib/libcuda.so.1"),),
) -> Facts:
    return Facts(
        target="test",
        machine=Known(machine, "test"),
        gpus=Known((gpu,), "test"),
        driver=Known(Driver("580.95.05", cuda), "test"),
        host=Known(Host("x86_64", loader_cache=cache), "test"),
        variables=Known(tuple(Variable(*one) for one in (variables or {}).items()), "test"),
        distributions=Known(tuple(Distribution(*one) for one in (distributions or {}).items()), "test"),
    )


def run(code: str, of: Facts) -> list[Finding]:
    return list(importlib.import_module(f"bringup.evaluate.rules.{code}").check(of))


def only(code: str, machine: Machine = HEALTHY, **others: Any) -> Finding:
    found = run(code, facts(machine, **others))
    assert len(found) == 1, found
    assert found[0].because
    assert all(one.source for one in found[0].because)
    return found[0]


@pytest.mark.parametrize("code", CODES)
def test_silent_on_a_healthy_machine(code: str) -> None:
    assert run(code, facts()) == []


@pytest.mark.parametrize("code", CODES)
def test_silent_on_a_real_h200(code: str) -> None:
    of = with_machine(Facts(target="h200"), json.loads(RECORDED.read_text()))
    assert run(code, of) == []


@pytest.mark.parametrize("code", CODES)
def test_silent_where_nothing_is_known(code: str) -> None:
    assert run(code, Facts(target="nothing")) == []


def but(**changes: Any) -> Machine:
    return replace(HEALTHY, **{name: Known(value, "test") for name, value in changes.items()})


def test_driver_libraries_of_another_release() -> None:
    assert only("host001", replace(HEALTHY, driver_files=files("580.126.09"))).predicted_error.endswith(
        "version mismatch"
    )
    inside = replace(but(container="lxc"), driver_files=files("580.126.09"))
    assert "580.95.05" in only("host001", inside).remedies[0].commands[0]
    said = but(smi_error="Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.126")
    assert only("host001", said).kind == "driver_library_version_mismatch"
    assert run("drv101", facts(replace(HEALTHY, driver_files=files("580.126.09")))) == [], "one fault, one finding"


def test_devices() -> None:
    assert only("host002", but(devices=("/dev/nvidia0", "/dev/nvidiactl"))).subject == "/dev/nvidia-uvm"
    assert only("host003", but(smi=(replace(SMI, compute_mode="Exclusive_Process"),))).severity == "warning"
    assert only("host003", but(smi=(replace(SMI, compute_mode="Prohibited"),))).severity == "error"
    assert only("host004", but(xids=(Xid(79, "0000:01:00", "GPU has fallen off the bus."),))).severity == "error"
    assert run("host004", facts(but(xids=(Xid(43, "0000:01:00", "Ch 1"),)))) == []
    assert only("host005", but(smi=(replace(SMI, remap_pending=True),))).severity == "error"
    assert only("host006", but(pci=(replace(PCI, driver="nouveau"),))).kind == "nouveau_holds_gpu"


def test_modules() -> None:
    rejected = replace(
        but(secure_boot=True, kernel_log=("Loading of unsigned module is rejected",)), module=Machine().module
    )
    assert only("host007", rejected).severity == "error"
    assert only("host008", but(smi=(replace(SMI, fabric_state="In Progress"),))).predicted_error.startswith("Error 802")
    switch = PciGpu("0000:07:00.0", "0x22a3", "0x068000", "nvidia")
    assert only("host008", but(pci=(PCI, switch), fabric_manager="failed")).kind == "fabric_manager_not_running"
    assert only("host009", but(fabric_manager_release="570.86.15")).kind == "fabric_manager_version_mismatch"
    assert only("host010", but(fabric_manager="failed")).severity == "info"
    log = (
        "NVRM: The NVIDIA GPU 0000:02:00.0 installed in this system requires use of the NVIDIA open kernel modules.",
    )
    second = replace(PCI, address="0000:02:00.0", driver="")
    assert "nvidia-open" in only("host011", but(pci=(PCI, second), kernel_log=log)).remedies[0].commands[0]


def test_libcuda() -> None:
    stray = replace(HEALTHY, driver_files=files("580.95.05", libcuda="550.54.14"))
    assert only("drv101", stray).predicted_error.startswith("Error 803")

    def compat(release: str) -> Machine:
        first = DriverFile("libcuda.so.1", "/c/compat/libcuda.so.1", f"/c/compat/libcuda.so.{release}", release, True)
        assert isinstance(HEALTHY.driver_files, Known)
        return but(driver_files=(first, *HEALTHY.driver_files.value))

    assert only("drv102", compat("590.10"), gpu=GEFORCE).predicted_error.startswith("Error 804")
    assert run("drv102", facts(compat("590.10"), gpu=Gpu("H200", 9, 0, product_class="datacenter"))) == []
    assert only("drv103", compat("570.10")).kind == "compat_libcuda_shadows_driver"
    assert run("drv103", facts(compat("590.10"))) == []
    assert isinstance(HEALTHY.driver_files, Known)
    assert only("drv104", but(driver_files=HEALTHY.driver_files.value[:2])).severity == "warning"
    wsl = but(container="wsl", driver_files=(DriverFile("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "", ""),))
    assert only("drv105", wsl, cache=()).severity == "error"
    assert only("drv105", wsl).predicted_error.startswith("OSError: libcuda.so:")
    assert run("drv105", facts(wsl, cache=(), variables={"LD_LIBRARY_PATH": "/usr/lib/wsl/lib"})) == []


def test_containers() -> None:
    assert only("ctr001", but(container="docker", driver_files=())).kind == "libcuda_missing_in_container"
    bare = Machine(container=Known("docker", "test"), driver_files=Known((), "test"))
    assert run("ctr001", facts(bare)) == [], "a container that shows no sign of a GPU"
    assert only("ctr001", bare, variables={"NVIDIA_VISIBLE_DEVICES": "all"}).subject == "libcuda.so.1"
    assert only("ctr002", but(container="lxc", toolkit_no_cgroups=False)).kind == "lxc_nested_cgroup_denied"
    assert run("ctr002", facts(but(container="lxc", toolkit_no_cgroups=True))) == []
    asked = but(cuda_requirement="cuda>=12.8 brand=tesla,driver>=535,driver<536 brand=nvidiartx,driver>=570,driver<571")
    assert only("ctr003", asked, cuda="12.4").predicted_error.endswith("cuda>=12.8")
    assert run("ctr003", facts(asked)) == []
    by_brand = but(cuda_requirement="cuda>=13.9 brand=nvidiartx,driver>=580,driver<581")
    assert run("ctr003", facts(by_brand)) == []
    assert only("ctr003", by_brand, gpu=GEFORCE).kind == "container_cuda_requirement_unmet"
    visible = {"CUDA_VISIBLE_DEVICES": "MIG-4ffa2e26-0f2b-55e5-a0b3-5d8e2f3c0c21"}
    assert only("ctr005", variables=visible, distributions={"vllm": "0.10.0"}).severity == "warning"
    assert run("ctr005", facts(variables=visible, distributions={"vllm": "0.33.0"})) == []


def test_collectives() -> None:
    assert only("net001", but(shared_memory=64 << 20)).subject == "/dev/shm"
    assert run("net001", facts(but(shared_memory=64 << 20), gpu=replace(PRO, count=1))) == []
    assert only("net002", but(limits=Limits(8 << 20, 1024), infiniband=("mlx5_0",))).severity == "error"
    assert run("net002", facts(but(limits=Limits(8 << 20, 1024)))) == []
    assert only("net003", distributions={"nvidia-nccl-cu12": "2.26.2"}).subject == "nvidia-nccl-cu12"
    assert run("net003", facts(distributions={"nvidia-nccl-cu12": "2.26.2"}, gpu=replace(GEFORCE, count=2))) == []
    assert only("net004", but(acs_redirect=("0000:00:01.0",))).severity == "warning"
    assert run("net004", facts(but(acs_redirect=("0000:00:01.0",)), variables={"NCCL_P2P_DISABLE": "1"})) == []
    nvlink = but(acs_redirect=("0000:00:01.0",), topology=Topology(("GPU0", "GPU1"), (("X", "NV18"), ("NV18", "X"))))
    assert run("net004", facts(nvlink)) == []
    assert only("net005", variables={"NCCL_BUFFSIZE": str(1 << 30)}).subject == "NCCL_BUFFSIZE"

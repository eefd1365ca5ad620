"""Parsers of what a machine says, against recorded answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bringup.collect.host import driver_of, gpus_of, observe, parse_machine, product_class, with_machine
from bringup.collect.hosts import linux, nvidia
from bringup.errors import UnreadableError
from bringup.facts import Driver, Facts, Known, Unknown

RECORDED = Path(__file__).parent.parent / "data/recorded/h200-probe.json"


@pytest.fixture(scope="module")
def h200() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


def test_a_real_h200(h200: dict[str, Any]) -> None:
    machine = parse_machine(h200)
    assert isinstance(machine.module, Known)
    assert (machine.module.value.release, machine.module.value.flavor) == ("580.159.04", "open")
    assert isinstance(machine.smi, Known)
    gpu = machine.smi.value[0]
    assert (gpu.name, gpu.compute_capability, gpu.memory >> 20, gpu.compute_mode) == (
        "NVIDIA H200",
        "9.0",
        143771,
        "Default",
    )
    assert (gpu.mig, gpu.ecc, gpu.ecc_uncorrectable, gpu.remap_pending) == ("Disabled", "Enabled", 0, False)
    assert isinstance(machine.driver_files, Known)
    first = next(one for one in machine.driver_files.value if one.soname == "libcuda.so.1")
    assert (first.path, first.release) == ("/usr/local/nvidia/lib64/libcuda.so.1", "580.159.04")
    assert isinstance(machine.devices, Known)
    assert "/dev/nvidia-uvm" in machine.devices.value
    assert machine.container == Known("docker", "/proc, /run")
    assert isinstance(machine.limits, Known)
    assert machine.limits.value.memlock == -1
    assert isinstance(machine.pci, Known)
    assert machine.pci.value[0].largest_bar == 256 << 30
    assert isinstance(machine.topology, Known)
    assert machine.topology.value.links == (("X",),)
    assert isinstance(machine.fabric_manager, Unknown), "systemctl is not there: unknown, not inactive"
    assert isinstance(machine.acs_redirect, Unknown)
    assert driver_of(machine, h200) == Known(Driver("580.159.04", "13.0"), "/proc/driver/nvidia/version")


def test_facts_keep_what_options_said(h200: dict[str, Any]) -> None:
    facts = with_machine(Facts(target="x", driver=Known(Driver("570.1", "12.8"), "--driver")), h200)
    assert facts.driver == Known(Driver("570.1", "12.8"), "--driver")
    assert isinstance(facts.gpus, Known)
    assert [(gpu.name, gpu.compute_capability, gpu.product_class) for gpu in facts.gpus.value] == [
        ("NVIDIA H200", "9.0", "datacenter")
    ]
    assert isinstance(facts.toolkits, Known)
    assert {kit.version("nvcc") for kit in facts.toolkits.value} == {"13.0.88"}


def test_this_machine_answers_within_seconds_and_encodes() -> None:
    observed = observe()
    assert observed["seconds"] < 20
    machine = parse_machine(json.loads(json.dumps(observed)))
    assert isinstance(machine.memory, Known)
    assert machine.memory.value > 1 << 28
    assert isinstance(gpus_of(machine), (Known, Unknown))


@pytest.mark.parametrize("answer", [{}, {"schema": "bringup.probe/0"}, {"schema": None}])
def test_what_is_no_answer_of_a_probe(answer: dict[str, Any]) -> None:
    with pytest.raises(UnreadableError):
        parse_machine(answer)


@pytest.mark.parametrize(
    "field", ["files", "commands", "limits", "devices", "pci", "drivers", "space", "folders", "marks"]
)
def test_an_answer_that_lacks_a_part_is_partly_unknown(h200: dict[str, Any], field: str) -> None:
    parse_machine({key: value for key, value in h200.items() if key != field})


def test_kernel_module_flavours() -> None:
    proprietary = (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\nGCC version: 12"
    )
    found = nvidia.kernel_module(proprietary)
    assert found is not None
    assert (found.release, found.flavor) == ("535.129.03", "proprietary")
    assert nvidia.kernel_module("nothing") is None


def test_topology_with_affinity_columns_and_adapters() -> None:
    text = (
        "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
        "GPU0\t X \tNODE\tPIX\t0-31\t0\t\tN/A\nGPU1\tNODE\t X \tSYS\t0-31\t0\t\tN/A\nNIC0\tPIX\tSYS\t X \n"
    )
    found = nvidia.topology(text)
    assert found is not None
    assert found.links == (("X", "NODE"), ("NODE", "X"))
    assert nvidia.topology("No devices were found") is None


def test_xids_and_releases_of_files() -> None:
    lines = [
        "[ 1.0] NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "NVRM: other",
    ]
    assert [(one.number, one.device) for one in nvidia.xids(lines)] == [(79, "0000:01:00")]
    found = nvidia.driver_files(
        [{"path": "/usr/local/cuda/compat/libcuda.so.1", "real": "/usr/local/cuda-13.0/compat/libcuda.so.580.65.06"}]
    )
    assert (found[0].release, found[0].compat) == ("580.65.06", True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro"),
        ("NVIDIA GeForce RTX 5090", "geforce"),
        ("NVIDIA H100 80GB HBM3", "datacenter"),
        ("NVIDIA L40S", "datacenter"),
        ("NVIDIA GB10", "gb10"),
        ("Orin (nvgpu)", "jetson"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-pro"),
        ("Tesla T4", "datacenter"),
        ("something", "unknown"),
    ],
)
def test_product_classes(name: str, expected: str) -> None:
    assert product_class(name) == expected


@pytest.mark.parametrize(
    ("files", "marks", "variables", "init", "expected"),
    [
        ({}, ("/.dockerenv",), {}, (), "docker"),
        ({}, (), {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, (), "kubernetes"),
        ({}, (), {}, ("container=lxc",), "lxc"),
        ({"/run/systemd/container": "lxc\n"}, (), {}, (), "lxc"),
        ({"/proc/1/cgroup": "12:devices:/lxc/200/ns\n"}, (), {}, (), "lxc"),
        ({}, ("/run/.containerenv",), {"container": "podman"}, (), "podman"),
        ({"/proc/version": "Linux version 5.15.90.1-microsoft-standard-WSL2"}, (), {}, (), "wsl"),
        ({"/proc/self/cgroup": "0::/user.slice\n"}, (), {}, (), "none"),
    ],
)
def test_containers(
    files: dict[str, str], marks: tuple[str, ...], variables: dict[str, str], init: tuple[str, ...], expected: str
) -> None:
    assert linux.container(files, marks, variables, init) == expected


def test_mounts_user_namespaces_and_flags() -> None:
    table = linux.mounts(
        "/dev/sda1 / ext4 rw 0 0\ntmpfs /tmp tmpfs rw,noexec 0 0\nnas:/home /home/a\\040b nfs4 rw 0 0\n"
    )
    assert [one.filesystem for path in ("/tmp/x", "/home/a b/c", "/tmpx") if (one := linux.mount_of(path, table))] == [
        "tmpfs",
        "nfs4",
        "ext4",
    ]
    assert linux.user_namespace("         0          0 4294967295\n") is False
    assert linux.user_namespace("         0     100000      65536\n") is True
    assert linux.user_namespace("") is None
    assert linux.toml_flag("[nvidia-container-cli]\n#no-cgroups = false\n", "no-cgroups") is None
    assert linux.toml_flag("no-cgroups = true\n", "no-cgroups") is True

"""Which PTX runs where, against the compiler that decides it: NVIDIA's ptxas, for every target and every architecture."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bringup.evaluate.coverage import verdict
from bringup.evaluate.drivers import PTX_ISA
from bringup.facts import DeviceCode, Driver
from bringup.gpus import parse_gpu

CUDA = "13.5"
PTXAS = "nvidia-cuda-nvcc==13.5.37"
ARCHITECTURES = ("75", "80", "86", "87", "89", "90", "100", "103", "107", "110", "120", "121")
SPECIFIC = {"90": "a", "100": "a", "103": "a", "107": "a", "110": "a", "120": "a", "121": "a"}
TARGETS = (
    *ARCHITECTURES,
    *(f"{arch}{suffix}" for arch in SPECIFIC for suffix in ("a", "f") if (arch, suffix) != ("90", "f")),
)


@pytest.fixture(scope="module")
def ptxas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvcc")
    command = ["uv", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), PTXAS]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.rglob("bin/ptxas"))


def compiles(ptxas: Path, folder: Path, target: str, arch: str, isa: str) -> bool:
    source = folder / "kernel.ptx"
    source.write_text(f".version {isa}\n.target sm_{target}\n.address_size 64\n.visible .entry k() {{ ret; }}\n")
    command = [str(ptxas), "-arch", f"sm_{arch}", str(source), "-o", str(folder / "kernel.cubin")]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.wheels
def test_ptx_of_every_target_on_every_architecture(ptxas: Path, tmp_path: Path) -> None:
    driver = Driver("640.10", CUDA)
    wrong = []
    for target in TARGETS:
        suffix = target[-1] if target[-1] in "af" else ""
        code = DeviceCode("ptx", int(target.rstrip("af")), suffix, "9.4")  # type: ignore[arg-type]
        for arch in ARCHITECTURES:
            # The GPU itself runs what its most specific architecture takes.
            real = compiles(ptxas, tmp_path, target, arch + SPECIFIC.get(arch, ""), "9.4")
            if (verdict((code,), parse_gpu(f"sm_{arch}"), driver).kind == "ptx") is not real:
                wrong.append((target, arch, real))
    assert wrong == []


@pytest.mark.wheels
def test_the_newest_ptx_isa_of_the_compiler(ptxas: Path, tmp_path: Path) -> None:
    isa = dict(PTX_ISA)[CUDA]
    major, minor = isa.split(".")
    assert compiles(ptxas, tmp_path, "100", "100", isa)
    assert not compiles(ptxas, tmp_path, "100", "100", f"{major}.{int(minor) + 1}")

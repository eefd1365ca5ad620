"""Toolkits, tools and caches: the probe against made-up folders, the parsers against what it brings."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from bringup.collect import probe
from bringup.collect.toolchain import (
    cccl_version,
    compiler_release,
    cudart_version,
    parse_caches,
    parse_toolkits,
    parse_tools,
    program_version,
)

NVCC = (
    b"\x7fELF\0compute_90a\0compute_120f\0not_compute_99\0Cuda compilation tools, release 13.0, V13.0.88\0--simt-only\0"
)


def make_toolkit(home: Path, cudart: str = "13000") -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "nvvm/bin").mkdir(parents=True)
    for path, data in (("bin/nvcc", NVCC), ("bin/ptxas", NVCC), ("nvvm/bin/cicc", NVCC.replace(b"--simt-only", b""))):
        (home / path).write_bytes(data)
    include = home / "include"
    (include / "crt").mkdir(parents=True)
    (include / "cccl/cuda/std/__cccl").mkdir(parents=True)
    (include / "cuda_runtime.h").write_text("")
    (include / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION  {cudart}\n")
    (include / "crt/host_runtime.h").write_text("#define __cudaLaunch(fun, isTileKernel) \\\n")
    (include / "crt/host_config.h").write_text(
        "#if __GNUC__ > 15\n#if (__clang_major__ < 16) || (__clang_major__ > 20)\n"
    )
    (include / "cccl/cuda/std/__cccl/version.h").write_text("#define CCCL_VERSION 3000001\n")
    (include / "cccl/cuda/std/type_traits").write_text("")
    (home / "lib").mkdir()
    (home / "lib/libcudart.so.13").write_bytes(b"")
    return home


def read(home: Path) -> object:
    return parse_toolkits({"toolkits": [probe.toolkit(str(home), ["asked"])]})[0]


def test_a_toolkit_is_read_from_its_own_bytes(tmp_path: Path) -> None:
    home = make_toolkit(tmp_path / "cuda")
    kit = parse_toolkits({"toolkits": [probe.toolkit(str(home), ["CUDA_HOME"])]})[0]
    assert kit.version("nvcc") == "13.0.88"
    assert kit.version("nvvm") == "13.0.88"
    assert kit.cudart == "13.0"
    assert kit.version("cccl") == "3.0.1"
    assert kit.launch_arguments == 2
    assert (kit.host_gcc_maximum, kit.host_clang_maximum) == (15, 20)
    assert kit.nvcc_knows == ("compute_120f", "compute_90a")
    assert kit.nvcc_says_simt_only
    assert not kit.nvvm_takes_simt_only
    assert kit.link_names == ("lib/libcudart.so.13",)
    assert "cuda/std/type_traits" in kit.headers
    assert "cublasLt.h" not in kit.headers


def test_a_script_in_place_of_nvcc_leads_to_the_real_one(tmp_path: Path) -> None:
    real = make_toolkit(tmp_path / "cuda")
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin/nvcc"
    script.write_text(f'#!/bin/sh\nexec {real}/bin/nvcc "$@"\n')
    script.chmod(0o755)
    homes = probe.toolkit_homes({"PATH": f"{tmp_path}/bin"}, "", [], [])
    assert homes[str(tmp_path)] == ["PATH"]
    assert homes[str(real)] == ["script"]
    kit = parse_toolkits({"toolkits": [probe.toolkit(str(tmp_path), ["PATH"])]})[0]
    assert kit.nvcc_is_script == f"{real}/bin/nvcc"
    assert kit.component("nvcc") is None


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\0" * 4096, os.urandom(4096), b"compute_" * 500])
def test_damaged_compilers_have_no_version(tmp_path: Path, data: bytes) -> None:
    home = make_toolkit(tmp_path / "cuda")
    (home / "bin/nvcc").write_bytes(data)
    kit = parse_toolkits({"toolkits": [probe.toolkit(str(home), ["asked"])]})[0]
    assert kit.version("nvcc") == ""


def test_a_compiler_that_may_not_be_read_is_no_part(tmp_path: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root may read everything")
    home = make_toolkit(tmp_path / "cuda")
    (home / "bin/nvcc").chmod(0)
    kit = parse_toolkits({"toolkits": [probe.toolkit(str(home), ["asked"])]})[0]
    assert kit.component("nvcc") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gcc (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright", "12.2.0"),
        ("gcc (Ubuntu 13.3.0-6ubuntu2~24.04.1) 13.3.0", "13.3.0"),
        ("g++ (GCC) 15.1.1 20250425 (Red Hat 15.1.1-1)", "15.1.1"),
        ("Debian clang version 14.0.6", "14.0.6"),
        ("1.13.2.git.kitware.jobserver-pipe-1", "1.13.2"),
        ("", ""),
    ],
)
def test_program_version(text: str, expected: str) -> None:
    assert program_version(text) == expected


def test_version_numbers() -> None:
    assert compiler_release("Cuda compilation tools, release 13.5, V13.5.37") == "13.5.37"
    assert compiler_release("Cuda compilation tools, release %d.%d") == ""
    assert [cudart_version(one) for one in ("13000", "12080", "12090", "13020", "", "x")] == [
        "13.0",
        "12.8",
        "12.9",
        "13.2",
        "",
        "",
    ]
    assert cccl_version("3000001") == "3.0.1"


def test_tools_keep_their_place_on_path(tmp_path: Path) -> None:
    for place in ("first", "second", "env/bin"):
        (tmp_path / place).mkdir(parents=True)
        program = tmp_path / place / "ninja"
        program.write_text("#!/bin/sh\necho 1.11.1\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    environ = {"PATH": f"{tmp_path}/first:{tmp_path}/second"}
    found = [one for one in parse_tools({"tools": probe.tools(environ, f"{tmp_path}/env", [])}) if one.name == "ninja"]
    assert [(one.path, one.on_path, one.version) for one in found] == [
        (f"{tmp_path}/first/ninja", 0, "1.11.1"),
        (f"{tmp_path}/second/ninja", 1, ""),
        (f"{tmp_path}/env/bin/ninja", -1, "1.11.1"),
    ]


def test_caches_say_who_decided_and_what_lies_there(tmp_path: Path) -> None:
    module = tmp_path / "ws/.cache/flashinfer/0.7.2/120f/cached_ops/page"
    module.mkdir(parents=True)
    (module / "page.so").write_bytes(b"")
    (module / "build.ninja").write_text("name = page\ncuda_home = /opt/cuda-13.0\n")
    environ = {"HOME": str(tmp_path), "FLASHINFER_WORKSPACE_BASE": f"{tmp_path}/ws", "USER": "me"}
    folders = {one.user: one for one in parse_caches({"caches": probe.caches(environ)}, [("/", "ext4", ("rw",))])}
    flashinfer = folders["flashinfer"]
    assert flashinfer.path == f"{tmp_path}/ws/.cache/flashinfer"
    assert flashinfer.decided_by == "FLASHINFER_WORKSPACE_BASE"
    assert flashinfer.libraries[0].cuda_home == "/opt/cuda-13.0"
    assert folders["triton"].path == f"{tmp_path}/.triton/cache"
    assert not folders["triton"].exists
    assert folders["triton"].base == str(tmp_path)
    assert folders["triton"].writable
    assert folders["inductor"].path == "/tmp/torchinductor_me"
    assert folders["triton"].filesystem == "ext4"

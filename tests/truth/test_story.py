"""A real cascade, replayed: six causes, each met only after the one before it was repaired, all seen at once before the first start.

An installed SGLang is copied by hard links and damaged as the machine of the story was: another torch, no NVRTC, no
CUDA_HOME, no ninja, an nvcc newer than the headers, no link names. After each repair exactly the rest is listed, and each
predicted message is compared with that of the real failing run. No GPU takes part.

BRINGUP_TRUTH_SGLANG: an environment with sglang; BRINGUP_TRUTH_TORCH: one with another torch of the same Python, both on the file
system of the temporary folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.truth

STORY = [
    "cuda_soname_missing",
    "extension_built_for_other_torch",
    "nvcc_absent_or_cuda_home_unset",
    "ninja_missing",
    "nvcc_vs_cuda_headers_mismatch",
    "toolkit_link_names_missing",
]
OF_THE_WRONG_TORCH = {"torchvision_vs_torch", "triton_version_vs_torch", "torchaudio_vs_torch"}
TOOLS = (
    "sh",
    "bash",
    "env",
    "which",
    "ls",
    "cat",
    "uname",
    "c++",
    "g++",
    "gcc",
    "cc",
    "as",
    "ld",
    "rm",
    "mkdir",
    "sed",
)


class Stage:
    """The damaged copy, and the variables that a start would have."""

    def __init__(self, folder: Path, source: Path, other: Path) -> None:
        self.folder, self.source = folder, source
        self.prefix = folder / "env"
        site = next(iter(sorted(source.glob("lib/python3*/site-packages"))))
        self.site = self.prefix / site.relative_to(source)
        self.site.parent.mkdir(parents=True)
        subprocess.run(["cp", "-al", str(site), str(self.site)], check=True)
        (self.prefix / "bin").mkdir()
        for python in (source / "bin").glob("python*"):
            shutil.copy2(python, self.prefix / "bin" / python.name, follow_symlinks=False)
        shutil.copy2(source / "pyvenv.cfg", self.prefix)
        self.real_site, self.home = site, self.site / "nvidia/cu13"
        tools = folder / "tools"
        tools.mkdir()
        for name in TOOLS:
            if found := shutil.which(name):
                (tools / name).symlink_to(found)
        self.variables = {"PATH": str(tools), "HOME": str(folder / "home")}
        (folder / "home").mkdir()
        self.swap(next(iter(sorted(other.glob("lib/python3*/site-packages")))), "torch", "torchgen", "functorch")
        self.remove(
            "nvidia_cuda_nvrtc", *(f"nvidia/cu13/lib/{one.name}" for one in (self.home / "lib").glob("libnvrtc*"))
        )
        self.remove("ninja", "ninja")

    def swap(self, site: Path, distribution: str, *folders: str) -> None:
        self.remove(distribution, distribution, *folders)
        for path in (*site.glob(f"{distribution}-*.dist-info"), *(site / one for one in (distribution, *folders))):
            if path.exists():
                subprocess.run(["cp", "-al", str(path), str(self.site)], check=True)

    def remove(self, distribution: str, *paths: str) -> None:
        for path in (*self.site.glob(f"{distribution}-*.dist-info"), *(self.site / one for one in paths)):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def hidden(self, argv: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
        """Run where /usr/local holds nothing, as on a machine without CUDA."""
        script = 'mount -t tmpfs none /usr/local && exec "$@"'
        environ = {**self.variables, **variables}
        command = [
            "unshare",
            "-m",
            "sh",
            "-c",
            script,
            "_",
            "env",
            "-i",
            *(f"{k}={v}" for k, v in environ.items()),
            *argv,
        ]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)

    def check(self) -> list[dict[str, Any]]:
        argv = [
            sys.executable,
            "-m",
            "bringup",
            "check",
            str(self.prefix),
            "--engine",
            "sglang",
            "--gpu",
            "rtx-pro-6000x8",
        ]
        done = self.hidden([*argv, "--driver", "580.95.05", "--format", "json"], PYTHONPATH=os.pathsep.join(sys.path))
        assert done.returncode in (0, 1), done.stderr
        report = json.loads(done.stdout)
        return [one for one in report["findings"] if one["severity"] == "error"]

    def python(self, code: str, **variables: str) -> str:
        done = self.hidden([str(self.prefix / "bin/python"), "-c", code], **variables)
        return done.stdout + done.stderr

    def flashinfer(self) -> str:
        code = "from flashinfer.jit.page import gen_page_module as g; print('BUILT', g().build_and_load())"
        return self.python(code, FLASHINFER_CUDA_ARCH_LIST="12.0f", LD_LIBRARY_PATH=str(self.folder / "stub"))

    def stub(self) -> str:
        """A libcuda whose every function says that there is no device, so that extensions that link it can be opened."""
        folder = self.folder / "stub"
        folder.mkdir(exist_ok=True)
        files = [
            *self.site.glob("sgl_kernel/**/*.so"),
            *self.site.glob("deep_gemm/*.so"),
            *self.site.glob("tvm_ffi/**/*.so"),
        ]
        named = subprocess.run(
            ["nm", "-D", "--undefined-only", *map(str, files)], capture_output=True, text=True, check=False
        ).stdout
        names = set(re.findall(r"\b(cu[A-Z]\w+)", named)) | {"cuInit", "cuDeviceGetCount", "cuGetProcAddress_v2"}
        names = {one for one in names if not one.startswith(("cublas", "cuBlas"))}
        source = "".join(f"int {one}(void){{return 100;}}\n" for one in sorted(names))
        command = [
            "gcc",
            "-shared",
            "-fPIC",
            "-x",
            "c",
            "-",
            "-Wl,-soname,libcuda.so.1",
            "-o",
            str(folder / "libcuda.so.1"),
        ]
        subprocess.run(command, input=source, text=True, check=True)
        return str(folder)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    source, other = os.environ.get("BRINGUP_TRUTH_SGLANG"), os.environ.get("BRINGUP_TRUTH_TORCH")
    if not source or not other:
        pytest.skip("BRINGUP_TRUTH_SGLANG and BRINGUP_TRUTH_TORCH name no environments")
    if os.getuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("hiding /usr/local needs root and unshare")
    return Stage(tmp_path_factory.mktemp("story"), Path(source), Path(other))


def kinds(findings: list[dict[str, Any]]) -> list[str]:
    return [one for one in dict.fromkeys(finding["kind"] for finding in findings) if one not in OF_THE_WRONG_TORCH]


def said(findings: list[dict[str, Any]], kind: str) -> str:
    return str(next(one["predicted_error"] for one in findings if one["kind"] == kind))


def test_the_story(stage: Stage) -> None:
    stub = stage.stub()
    found = stage.check()
    assert kinds(found) == STORY

    real = stage.python("import torch, sgl_kernel", LD_LIBRARY_PATH=stub)
    assert "libnvrtc.so.13: cannot open shared object file" in real
    assert "libnvrtc.so.13: cannot open shared object file" in said(found, "cuda_soname_missing")
    real = stage.python(
        "import torch, sgl_kernel", LD_LIBRARY_PATH=f"{stub}:{stage.real_site}/nvidia/cu13/lib", LD_BIND_NOW="1"
    )
    symbol = re.search(r"undefined symbol: (\S+)", real)
    assert symbol is not None, real
    assert symbol.group(1) in json.dumps(found)

    stage.swap(stage.real_site, "torch", "torchgen", "functorch")
    assert kinds(stage.check()) == [one for one in STORY if one != "extension_built_for_other_torch"]

    for path in (stage.real_site / "nvidia/cu13/lib").glob("libnvrtc*"):
        os.link(path, stage.home / "lib" / path.name)
    subprocess.run(
        ["cp", "-al", *map(str, stage.real_site.glob("nvidia_cuda_nvrtc-*.dist-info")), str(stage.site)], check=True
    )
    found = stage.check()
    assert kinds(found) == STORY[2:]
    assert stage.python("import torch, deep_gemm", LD_LIBRARY_PATH=stub).rstrip().endswith(said(found, STORY[2]))
    assert "Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist" in stage.flashinfer()

    stage.variables["CUDA_HOME"] = str(stage.home)
    found = stage.check()
    assert kinds(found) == STORY[3:]
    assert said(found, "ninja_missing") in stage.flashinfer()

    subprocess.run(
        [
            "cp",
            "-al",
            str(stage.real_site / "ninja"),
            *map(str, stage.real_site.glob("ninja-*.dist-info")),
            str(stage.site),
        ],
        check=True,
    )
    shutil.copy2(stage.source / "bin/ninja", stage.prefix / "bin/ninja")
    found = stage.check()
    assert kinds(found) == ["ninja_installed_but_not_on_path", *STORY[4:]]
    assert said(found, "ninja_installed_but_not_on_path") in stage.flashinfer()
    stage.variables["PATH"] = f"{stage.prefix}/bin:{stage.variables['PATH']}"
    found = stage.check()
    assert kinds(found) == STORY[4:]
    assert said(found, STORY[4]) in stage.flashinfer()

    remedy = next(one for one in found if one["kind"] == STORY[4])["remedies"][0]["commands"][0]
    spec = remedy.partition('"')[2].rstrip('"')
    subprocess.run(["uv", "pip", "install", "-q", "--python", str(stage.prefix / "bin/python"), spec], check=True)
    found = stage.check()
    assert kinds(found) == STORY[5:]
    real = stage.flashinfer()
    assert said(found, STORY[5]).removeprefix("/usr/bin/") in real

    (stage.home / "lib64").symlink_to("lib")
    (stage.home / "lib/libcudart.so").symlink_to("libcudart.so.13")
    (stage.home / "lib/stubs").mkdir()
    shutil.copy(f"{stub}/libcuda.so.1", stage.home / "lib/stubs/libcuda.so")
    assert kinds(stage.check()) == []
    assert "BUILT" in stage.flashinfer()

"""The rules about versions, tags and owners of files: each fires on its fault alone."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from bringup.evaluate.cuda_majors import majors_of
from bringup.evaluate.requirements import unmet_requirements
from bringup.evaluate.tags import fits, module_python, platform_gap
from bringup.facts import Host, Interpreter, LoadSite
from tests.evaluate.stacks import ask, commands, library, said, stack

HOST = Host("x86_64", libc="glibc 2.36")

# --- requirements -----------------------------------------------------------------------------------------------------


def test_a_requirement_that_is_not_met() -> None:
    facts = stack({"a": "1.0", "b": "2.0"}, requires={"a": ("b<2",)})
    (finding,) = ask("VER001", facts)
    assert said(finding) == "a 1.0 declares that it needs b<2 and b 2.0 is installed"
    assert finding.severity == "warning"
    assert commands(finding) == ["uv pip install 'b<2'"]


def test_a_requirement_that_is_absent() -> None:
    (finding,) = ask("VER001", stack({"a": "1.0"}, requires={"a": ("b",)}))
    assert "b is not installed" in said(finding)


@pytest.mark.parametrize(
    "requirement",
    [
        "b>=1",
        "b",
        "B",
        "c; extra == 'all'",
        "c; python_version < '3.9'",
        "c; sys_platform == 'win32'",
        "c; platform_machine == 'aarch64'",
        "b @ https://example.invalid/b.whl",
        "b>=2.0rc1",
        "this is no requirement",
    ],
)
def test_requirements_that_do_not_count(requirement: str) -> None:
    assert ask("VER001", stack({"a": "1.0", "b": "2.0"}, requires={"a": (requirement,)}, host=HOST)) == []


def test_markers_are_asked_of_the_stacks_python() -> None:
    requires = {"a": ("b; python_version >= '3.13'",)}
    assert ask("VER001", stack({"a": "1.0"}, requires=requires, python="3.11.7")) == []
    assert len(ask("VER001", stack({"a": "1.0"}, requires=requires, python="3.13.0"))) == 1


@pytest.mark.parametrize(
    ("rule", "owner", "requirement", "there", "message"),
    [
        ("VER002", "torchvision", "torch==2.9.1", "2.11.0", "operator torchvision::nms does not exist"),
        ("VER002", "torchaudio", "torch==2.9.1", "2.11.0", "Could not load this library"),
        ("VER003", "xformers", "torch>=2.10", "2.9.1", "xFormers can't load C++/CUDA extensions"),
        ("VER005", "vllm", "transformers>=5", "4.57.0", "cannot import name"),
        ("VER004", "torch", "triton==3.8.0", "3.5.1", ""),
        ("VER012", "xgrammar", "apache-tvm-ffi==0.1.11", "0.1.13", ""),
    ],
)
def test_known_pairs(rule: str, owner: str, requirement: str, there: str, message: str) -> None:
    name = re.split("[=<>]", requirement)[0]
    facts = stack({owner: "0.9", name: there}, requires={owner: (requirement,)})
    (finding,) = ask(rule, facts)
    assert finding.severity == "error"
    assert message in finding.predicted_error
    assert f"{owner} 0.9 needs {requirement}" in said(finding)
    assert f"{name} {there} is installed" in said(finding)
    assert f"uv pip install '{requirement}'" in commands(finding)
    # Said once, not again by the general rule; and silent where it fits.
    assert ask("VER001", facts) == []
    fitting = requirement.replace(">=", "==").split("==")[1]
    assert ask(rule, stack({owner: "0.9", name: fitting}, requires={owner: (requirement,)})) == []


def test_numpy_2_beside_a_module_for_numpy_1() -> None:
    names = {"old": "1.0", "numpy": "2.3.0"}
    module = library("old/_C.so", "old")
    (finding,) = ask("VER011", stack(names, (module,), requires={"old": ("numpy<2",)}))
    assert "old 1.0 needs numpy<2, and brings compiled modules" in said(finding)
    assert "NumPy 1.x cannot be run in\nNumPy 2.3.0" in finding.predicted_error
    assert "uv pip install 'numpy<2'" in commands(finding)
    assert ask("VER011", stack(names, (), requires={"old": ("numpy<2",)})) == []
    assert ask("VER011", stack({**names, "numpy": "1.26.4"}, (module,), requires={"old": ("numpy<2",)})) == []


# --- FlashInfer's companions ------------------------------------------------------------------------------------------


def test_flashinfer_refuses_another_cubin_release() -> None:
    (finding,) = ask("VER006", stack({"flashinfer-python": "0.6.3", "flashinfer-cubin": "0.6.1"}))
    assert (finding.severity, finding.stage, finding.fatal) == ("error", "import", True)
    assert finding.predicted_error == (
        "RuntimeError: flashinfer-cubin version (0.6.1) does not match flashinfer version (0.6.3). "
        "Please install the same version of both packages."
    )
    assert commands(finding) == ["uv pip install flashinfer-cubin==0.6.3", "uv pip uninstall flashinfer-cubin"]


def test_flashinfer_ignores_it_from_0_7_on() -> None:
    (finding,) = ask("VER006", stack({"flashinfer-python": "0.7.2.post1", "flashinfer-cubin": "0.7.2"}))
    assert (finding.severity, finding.stage, finding.fatal) == ("warning", "jit", False)


@pytest.mark.parametrize(
    ("companion", "version", "variables"),
    [("flashinfer-cubin", "0.6.3", {}), ("flashinfer-jit-cache", "0.6.3+cu130", {}), ("flashinfer-jit-cache", "0.6.3", {}),
     ("flashinfer-cubin", "0.6.1", {"FLASHINFER_DISABLE_VERSION_CHECK": "1"})],
)  # fmt: skip
def test_flashinfer_takes_equal_ones(companion: str, version: str, variables: dict[str, str]) -> None:
    assert ask("VER006", stack({"flashinfer-python": "0.6.3", companion: version}, variables=variables)) == []


def test_only_a_jit_cache_may_say_its_cuda() -> None:
    assert len(ask("VER006", stack({"flashinfer-python": "0.6.3", "flashinfer-cubin": "0.6.3+cu130"}))) == 1
    assert len(ask("VER006", stack({"flashinfer-python": "0.6.3", "flashinfer-jit-cache-sm120": "0.6.2+cu130"}))) == 1


# --- owners of files --------------------------------------------------------------------------------------------------


def test_two_distributions_own_a_file() -> None:
    path = "cuda/bindings/driver.cpython-311-x86_64-linux-gnu.so"
    (finding,) = ask("VER008", stack({}, shared={path: ("cuda-python", "cuda-bindings")}))
    assert (finding.kind, finding.severity) == ("two_distributions_own_a_file", "warning")
    assert "cuda-bindings and cuda-python both claim one file" in said(finding)
    (finding,) = ask("VER008", stack({}, shared={"build_backend.py": ("a", "b")}))
    assert finding.severity == "info"
    assert ask("VER008", stack({})) == []


def test_one_library_for_two_cuda_majors() -> None:
    names = {"torch": "2.11.0", "nvidia-cudnn-cu12": "9.10.2.21", "nvidia-cudnn-cu13": "9.19.0.56"}
    shared = {"nvidia/cudnn/lib/libcudnn.so.9": ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13")}
    facts = stack(names, shared=shared, cuda="13.0")
    (finding,) = ask("VER009", facts)
    assert (finding.kind, finding.severity, finding.subject) == (
        "two_cuda_majors_in_env",
        "warning",
        "nvidia-cudnn-cu12",
    )
    assert "both own nvidia/cudnn/lib/libcudnn.so.9" in said(finding)
    assert commands(finding) == [
        "uv pip uninstall nvidia-cudnn-cu12",
        "uv pip install --reinstall-package nvidia-cudnn-cu13 nvidia-cudnn-cu13==9.19.0.56",
    ]
    assert ask("VER008", facts) == []
    (finding,) = ask("VER009", stack(names, shared=shared, cuda="12.8"))
    assert finding.subject == "nvidia-cudnn-cu13"
    (finding,) = ask("VER009", stack({"nvidia-cublas": "13.1.0.3", "nvidia-cublas-cu12": "12.8.4.1"}))
    assert finding.severity == "info"
    assert ask("VER009", stack({"nvidia-cublas": "13.1.0.3", "nvidia-cutlass-dsl-libs-cu12": "4.8.0"})) == []


def test_majors_of() -> None:
    assert majors_of(("nvidia-nccl-cu12", "nvidia-nccl-cu13")) == (12, 13)
    assert majors_of(("nvidia-nccl-cu12", "nvidia-cudnn-cu13")) == ()
    assert majors_of(("cuda-python", "cuda-bindings")) == ()
    assert majors_of(()) == ()


# --- tags -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tag", "python", "free_threaded", "answer"),
    [
        ("cp311-cp311-manylinux_2_28_x86_64", "3.11.7", False, True),
        ("cp310-cp310-manylinux_2_28_x86_64", "3.11.7", False, False),
        ("cp310-abi3-manylinux2014_x86_64", "3.11.7", False, True),
        ("cp312-abi3-manylinux2014_x86_64", "3.11.7", False, False),
        ("cp310-abi3-manylinux2014_x86_64", "3.13.0", True, False),
        ("cp313-cp313t-manylinux_2_28_x86_64", "3.13.0", True, True),
        ("cp313-cp313t-manylinux_2_28_x86_64", "3.13.0", False, False),
        ("cp313-cp313-manylinux_2_28_x86_64", "3.13.0", True, False),
        ("py3-none-any", "3.11.7", False, True),
        ("py2.py3-none-any", "3.11.7", False, True),
        ("py2-none-any", "3.11.7", False, False),
        ("py312-none-any", "3.11.7", False, False),
        ("py39-none-manylinux_2_28_x86_64", "3.11.7", False, True),
        ("cp39.cp310.cp311-none-any", "3.11.7", False, True),
        ("pp310-pypy310_pp73-any", "3.11.7", False, True),
        ("nonsense", "3.11.7", False, True),
    ],
)
def test_fits(tag: str, python: str, free_threaded: bool, answer: bool) -> None:
    assert fits(tag, Interpreter(python, free_threaded=free_threaded)) is answer


def test_a_wheel_for_another_python() -> None:
    tags = {"a": ("cp310-cp310-manylinux_2_28_x86_64",)}
    (finding,) = ask("PY001", stack({"a": "1.0"}, tags=tags))
    assert finding.severity == "error"
    assert "a 1.0 is built for cp310-cp310-manylinux_2_28_x86_64" in said(finding)
    assert "the interpreter is Python 3.11.7" in said(finding)
    assert finding.predicted_error == "ModuleNotFoundError: No module named 'a'"
    assert any("--reinstall a" in command for command in commands(finding))
    assert ask("PY001", stack({"a": "1.0"}, tags=tags, python="3.10.13")) == []


def test_requires_python() -> None:
    (finding,) = ask("PY001", stack({"a": "1.0"}, requires_python={"a": ">=3.12"}))
    assert finding.severity == "warning"
    assert "a 1.0 needs Python >=3.12" in said(finding)
    assert ask("PY001", stack({"a": "1.0"}, requires_python={"a": "<3.15,>=3.8"})) == []


INFLLM = "sgl_kernel/infllm_ops.cpython-310-x86_64-linux-gnu.so"


def site(when: str = "import", guarded: bool = False) -> LoadSite:
    return LoadSite(INFLLM, "sgl_kernel.infllm", 7, "import", when, guarded, chain=("sgl_kernel",))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sites", "severity", "words"),
    [
        ((), "warning", "sglang-kernel loads it when a function of sgl_kernel.infllm_v2 is called"),
        ((site(),), "error", "importing sgl_kernel imports it"),
        ((site(guarded=True),), "warning", "imports it inside of try"),
        ((site(when="call"),), "warning", "imports it when a function is called"),
    ],
)
def test_a_module_named_for_another_python(sites: tuple[LoadSite, ...], severity: str, words: str) -> None:
    (finding,) = ask("PY002", stack({}, (library(INFLLM, "sglang-kernel"),), sites=sites))
    assert finding.severity == severity
    assert "is named for Python 3.10" in said(finding)
    assert words in said(finding)
    assert finding.predicted_error == "ModuleNotFoundError: No module named 'sgl_kernel.infllm_ops'"


def test_a_misnamed_module_that_nothing_imports() -> None:
    (finding,) = ask("PY002", stack({}, (library("_mscclpp.cpython-310-x86_64-linux-gnu.so", "sgl-kernel"),)))
    assert finding.severity == "info"
    (finding,) = ask("PY002", stack({}, (library("mine/_C.cpython-310-x86_64-linux-gnu.so", "mine"),)))
    assert finding.severity == "warning"
    assert "it matters only where something imports it" in said(finding)


def test_modules_that_fit() -> None:
    assert module_python("x.cpython-313t-x86_64-linux-gnu.so") == "3.13t"
    assert module_python("x.abi3.so") == module_python("libx.so.1") == ""
    both = (library("x/_C.cpython-310-x86_64-linux-gnu.so"), library("x/_C.cpython-311-x86_64-linux-gnu.so"))
    assert ask("PY002", stack({}, both)) == []
    assert ask("PY002", stack({}, both[:1], python="3.10.13")) == []
    assert len(ask("PY002", stack({}, both[1:], free_threaded=True))) == 1


@pytest.mark.parametrize(
    ("tag", "gap"),
    [
        ("py3-none-any", ""),
        ("cp311-cp311-manylinux_2_28_x86_64", ""),
        ("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", ""),
        ("cp311-cp311-manylinux_2_39_x86_64.manylinux_2_40_x86_64", "for glibc 2.39 or later"),
        ("cp311-cp311-manylinux_2_28_aarch64", "for aarch64 processors"),
        ("cp311-cp311-musllinux_1_2_x86_64", "for musl"),
        ("cp311-cp311-win_amd64", "for another system (win_amd64)"),
        ("cp311-cp311-linux_x86_64", ""),
        ("py3-none-manylinux1_x86_64", ""),
    ],
)
def test_platform_gap(tag: str, gap: str) -> None:
    assert platform_gap(tag, HOST) == gap


def test_wheels_for_another_platform() -> None:
    tags = {
        "a": ("cp311-cp311-manylinux_2_28_aarch64",),
        "b": ("cp311-cp311-manylinux_2_39_x86_64",),
        "c": ("py3-none-any",),
    }
    first, second = ask("PY003", stack({"a": "1", "b": "1", "c": "1"}, tags=tags, host=HOST))
    assert (first.subject, first.kind, first.severity) == ("a", "wheel_for_other_platform", "error")
    assert said(first) == "a 1 is built for aarch64 processors and this host has x86_64 on Linux"
    assert (second.subject, second.kind, second.severity) == ("b", "glibc_too_old", "warning")
    assert said(second) == "b 1 is built for glibc 2.39 or later and this host has glibc 2.36"
    assert platform_gap("cp311-cp311-manylinux_2_28_x86_64", Host("x86_64")) == ""
    assert platform_gap("cp311-cp311-manylinux_2_28_x86_64", Host("x86_64", libc="musl 1.2")) == "for glibc"


# --- really installed environments ------------------------------------------------------------------------------------


@pytest.mark.truth
def test_unmet_requirements_are_those_of_uv_pip_check() -> None:
    from bringup.collect.stack import environment_facts

    folders = [Path(one) for one in os.environ.get("BRINGUP_TRUTH_ENVS", "").split(os.pathsep) if one]
    if not folders:
        pytest.skip("BRINGUP_TRUTH_ENVS names no environment")
    for folder in folders:
        python = folder / "bin" / "python"
        done = subprocess.run(["uv", "pip", "check", "-p", str(python)], capture_output=True, text=True, check=False)
        theirs = set(re.findall(r"The package `([\w.-]+)` requires `([\w.-]+)", done.stdout + done.stderr))
        ours = {(one.owner.name, one.name) for one in unmet_requirements(environment_facts(folder))}
        assert ours == theirs, folder

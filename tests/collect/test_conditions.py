"""Conditions of a machine, made for real in a mount namespace: what is predicted against what really happens there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, sys
from bringup.collect.host import observe, with_machine
from bringup.evaluate.rules import fs001, fs002, jit002
from bringup.facts import Distribution, Facts, Goal, Known
stack = (Distribution("torch", "2.14.1", build=(("cuda", "13.0"),)), Distribution("triton", "3.8.0"),
         Distribution("flashinfer-python", "0.7.2"), Distribution("sglang", "0.5.23"))
facts = with_machine(Facts(target="t", distributions=Known(stack, "t"), goal=Goal("sglang")), observe())
found = [one for rule in (fs001, fs002, jit002) for one in rule.check(facts)]
print(json.dumps([(one.kind, one.subject, one.predicted_error) for one in found]))
"""


def here(tmp_path: Path, mount: str, command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command where ``tmp_path/home`` is a file system of its own, mounted with these options."""
    if os.getuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting needs root and unshare")
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(home), **variables}
    script = f'mount -t tmpfs -o {mount} none {home} && exec "$@"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "_", *command], capture_output=True, text=True, env=environ, check=False
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    return done


def predicted(tmp_path: Path, mount: str, **variables: str) -> dict[str, str]:
    done = here(tmp_path, mount, [sys.executable, "-c", SCRIPT], **variables)
    assert done.returncode == 0, done.stderr
    return {kind: error for kind, _, error in json.loads(done.stdout)}


def test_a_home_that_is_read_only(tmp_path: Path) -> None:
    found = predicted(tmp_path, "ro")
    assert set(found) == {"home_or_cache_not_writable"}
    real = here(tmp_path, "ro", ["mkdir", f"{tmp_path}/home/.triton"]).stderr
    assert "Read-only file system" in real
    assert "Read-only file system" in found["home_or_cache_not_writable"]


def test_a_home_that_forbids_execution(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc on this machine")
    found = predicted(tmp_path, "noexec")
    assert set(found) == {"noexec_or_map_failure"}
    library = f"{tmp_path}/home/x.so"
    compile_it = f"echo 'int f(void){{return 1;}}' | gcc -shared -fPIC -x c - -o {library}"
    open_it = f"{sys.executable} -c 'import ctypes; ctypes.CDLL(\"{library}\")'"
    real = here(tmp_path, "noexec", ["sh", "-c", f"{compile_it} && {open_it}"]).stderr
    assert found["noexec_or_map_failure"] in real


def test_a_home_with_nothing_wrong(tmp_path: Path) -> None:
    assert predicted(tmp_path, "mode=755") == {}


def test_a_stray_colon_in_cuda_home(tmp_path: Path) -> None:
    found = predicted(tmp_path, "mode=755", CUDA_HOME=":/usr/local/cuda")
    real = subprocess.run(
        ["/bin/sh", "-c", ":/usr/local/cuda/bin/nvcc --version"], capture_output=True, text=True, check=False
    )
    assert found["cuda_home_malformed"].split(": ", 2)[-1] in real.stderr

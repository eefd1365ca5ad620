"""``bringup launch``: start an engine's replicas, wait until they really answer, and keep them, detached from the terminal."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from bringup.errors import UnreadableError, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--engine", metavar="E", help="vllm or sglang")
    parser.add_argument("--model", metavar="DIR", help="a model's folder")
    parser.add_argument(
        "--python", metavar="EXE", help="the Python, or the environment, that has the engine (default: this one)"
    )
    parser.add_argument(
        "--replicas", default="auto", metavar="N|auto", help="how many (default: as many as the GPUs take, else 1)"
    )
    parser.add_argument(
        "--tp", type=int, default=1, metavar="N", help="GPUs per replica, tensor parallel (default: %(default)s)"
    )
    parser.add_argument("--devices", metavar="0,1,...", help="the GPUs to use (default: all that are visible)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=8000, metavar="BASE", help="replica N listens on BASE + N (default: %(default)s)"
    )
    parser.add_argument(
        "--served-name", metavar="NAME", help="the model's name for requests (default: its folder's name)"
    )
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="set for the engine; may be given often"
    )
    parser.add_argument(
        "--name", default="default", help="of this launch, for --status and --stop (default: %(default)s)"
    )
    parser.add_argument(
        "--ready-timeout", type=float, default=1800.0, metavar="S", help="seconds for a start (default: %(default)g)"
    )
    parser.add_argument(
        "--grace",
        type=float,
        default=30.0,
        metavar="S",
        help="seconds between SIGTERM and SIGKILL (default: %(default)g)",
    )
    parser.add_argument(
        "--health-port", type=int, default=0, metavar="N", help="for /health and /metrics (default: any free one)"
    )
    parser.add_argument("--no-wait", action="store_true", help="do not wait until the replicas are ready")
    parser.add_argument("--status", action="store_true", help="say what the launch of this name is doing")
    parser.add_argument(
        "--stop", action="store_true", help="end the launch of this name and everything that it started"
    )
    parser.add_argument("options", nargs="*", metavar="-- OPTION", help="options for the engine, after --")


def run(arguments: argparse.Namespace) -> int:
    """Launch, or look at, or stop a launch. Returns 0 where every replica is ready, 1 where one failed."""
    from bringup.serve.state import folder

    place = folder(arguments.name)
    if arguments.status:
        return _status(place)
    if arguments.stop:
        return _stop(place)
    return _launch(arguments, place)


def _launch(arguments: argparse.Namespace, place: Path) -> int:
    from bringup.serve.engines import Spec, engine
    from bringup.serve.model_folder import problems
    from bringup.serve.state import alive, write_spec

    if not arguments.engine or not arguments.model:
        raise UsageError("launch needs --engine and --model, or --status, or --stop")
    engine(arguments.engine)
    model = Path(arguments.model)
    if not model.is_dir():
        raise UnreadableError(arguments.model, "is not a folder; a model is launched from its folder")
    if wrong := problems(model):
        raise UnreadableError(arguments.model, "; ".join(wrong))
    python = _python(arguments.python)
    devices = tuple(arguments.devices.split(",")) if arguments.devices else _visible_devices()
    if arguments.tp < 1:
        raise UsageError(f"--tp {arguments.tp}: at least 1")
    replicas = _replicas(arguments.replicas, arguments.tp, devices)
    if alive(place):
        raise UsageError(f"a launch named {arguments.name} is at work already; --stop it, or give another --name")
    spec = Spec(
        engine=arguments.engine,
        model=str(model.absolute()),
        name=arguments.served_name or model.absolute().name,
        python=python,
        replicas=replicas,
        tp=arguments.tp,
        host=arguments.host,
        port=arguments.port,
        devices=devices,
        environment=_environment(arguments.env),
        options=tuple(arguments.options),
        ready_timeout=arguments.ready_timeout,
        grace=arguments.grace,
        health_port=arguments.health_port,
    )
    for number in range(replicas):
        _free(arguments.host, arguments.port + number)
    write_spec(place, spec)
    (place / "state.json").unlink(missing_ok=True)
    (place / "endpoints").unlink(missing_ok=True)
    with (place / "supervisor.log").open("ab") as log:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "bringup.serve.supervisor", str(place)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    if arguments.no_wait:
        return 0
    try:
        return _follow(place, supervisor)
    except KeyboardInterrupt:
        print("bringup: stopping what was started", file=sys.stderr)
        _stop(place)
        raise


def _python(text: str | None) -> str:
    path = Path(text or sys.executable)
    if path.is_dir():
        path = path / "bin" / "python"
    if not os.access(path, os.X_OK):
        raise UnreadableError(str(path), "is not a Python that can be run")
    # Not resolved: an environment is known by the place of its python, which is a link.
    return str(path.absolute())


def _visible_devices() -> tuple[str, ...]:
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return tuple(one.strip() for one in named.split(",") if one.strip())
    return tuple(sorted((path.name[6:] for path in Path("/dev").glob("nvidia[0-9]*")), key=int))


def _replicas(text: str, tp: int, devices: tuple[str, ...]) -> int:
    if text == "auto":
        count = len(devices) // tp if devices else 1
        if not count:
            raise UsageError(f"--tp {tp}: only {len(devices)} GPUs are visible")
        return count
    if not text.isdigit() or not int(text):
        raise UsageError(f"--replicas {text!r} is neither auto nor a number")
    if devices and int(text) * tp > len(devices):
        raise UsageError(f"{text} replicas of {tp} GPUs need {int(text) * tp}, {len(devices)} are visible")
    return int(text)


def _environment(texts: list[str]) -> tuple[tuple[str, str], ...]:
    for text in texts:
        if "=" not in text:
            raise UsageError(f"--env {text!r} is not NAME=VALUE")
    return tuple((text.partition("=")[0], text.partition("=")[2]) for text in texts)


def _free(host: str, port: int) -> None:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family[0], socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(family[4])
    except OSError as error:
        raise UnreadableError(f"{host}:{port}", f"cannot be listened on: {error.strerror or error}") from error


def _follow(place: Path, supervisor: subprocess.Popen[bytes]) -> int:
    from bringup.serve.state import read_state

    told: dict[int, str] = {}
    while True:
        time.sleep(0.2)
        state = read_state(place)
        if state is not None and state.pid == supervisor.pid:
            for one in state.replicas:
                line = _line(one)
                if told.get(one.number) != line:
                    told[one.number] = line
                    print(line, file=sys.stderr, flush=True)
            if state.ready:
                for one in state.replicas:
                    print(one.url)
                print(f"bringup: health and metrics at {state.health}, logs in {place}", file=sys.stderr)
                return 0
            if state.failed:
                _stop(place)
                return 1
        if supervisor.poll() is not None:
            raise UnreadableError(str(place / "supervisor.log"), f"the supervisor ended with {supervisor.returncode}")


def _line(one: object) -> str:
    from bringup.serve.state import ReplicaState

    assert isinstance(one, ReplicaState)
    text = f"replica {one.number} {one.phase}"
    if one.phase == "ready":
        text += f" after {one.ready_seconds:.1f} s at {one.url}"
    if one.restarts:
        text += f", restarted {one.restarts} times"
    if one.cause and one.phase != "ready":
        text += f": {one.cause} [{one.kind}]"
        if one.evidence:
            text += f"\n  {one.evidence}"
        text += f"\n  log: {one.log}"
    return text


def _status(place: Path) -> int:
    from bringup.serve.state import alive, read_state

    state = read_state(place)
    if state is None:
        print(f"no launch is known at {place}")
        return 1
    running = alive(place)
    print(f"supervisor {state.pid}, health and metrics at {state.health}" if running else "not running")
    for one in state.replicas:
        print(_line(one))
    return 0 if running and state.ready else 1


def _stop(place: Path) -> int:
    from bringup.serve.state import alive, read_state

    state = read_state(place)
    until = time.monotonic() + 120
    asked = False
    while alive(place):
        state = read_state(place) or state
        if not asked and state is not None:
            # The lock is held, so the number in the state is that of the process that holds it.
            os.kill(state.pid, signal.SIGTERM)
            asked = True
        if time.monotonic() > until:
            raise UnreadableError(str(place), "the supervisor did not end within 120 s")
        time.sleep(0.1)
    return 0

"""What a launch is doing, in files: read by ``--status``, by ``--stop`` and by a batch, written by the supervisor alone."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO, Literal

import msgspec
from msgspec import Struct

from bringup.errors import UnreadableError, UsageError
from bringup.serve.engines import Spec

Phase = Literal["starting", "ready", "waiting", "failed", "stopped"]


class ReplicaState(Struct, frozen=True):
    """One replica. ``ready_seconds``: what its last start took. ``cause``: why it ended last, '' where it never did."""

    number: int
    phase: Phase
    url: str
    log: str
    pid: int = 0
    restarts: int = 0
    ready_seconds: float = 0.0
    cause: str = ""
    kind: str = ""
    evidence: str = ""


class LaunchState(Struct, frozen=True):
    """All of it. ``health`` is the address of /health and /metrics. ``pid`` is the supervisor's."""

    pid: int
    health: str
    replicas: tuple[ReplicaState, ...]

    @property
    def ready(self) -> bool:
        """Every replica answers."""
        return all(one.phase == "ready" for one in self.replicas)

    @property
    def failed(self) -> bool:
        """Some replica will not come without a change."""
        return any(one.phase == "failed" for one in self.replicas)


def folder(name: str) -> Path:
    """Where a launch of that name keeps its files. Raises UsageError for a name that is no single path component."""
    if not name or "/" in name or name.startswith("."):
        raise UsageError(f"--name {name!r} is not a plain name")
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "bringup" / "launch" / name


def write_spec(place: Path, spec: Spec) -> None:
    """Keep what was asked for. The environment may hold secrets: nobody else may read it."""
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    (place / "spec.json").write_bytes(msgspec.json.encode(spec))
    (place / "spec.json").chmod(0o600)


def read_spec(place: Path) -> Spec:
    """What was asked for. Raises UnreadableError."""
    try:
        return msgspec.json.decode((place / "spec.json").read_bytes(), type=Spec)
    except (OSError, msgspec.DecodeError) as error:
        raise UnreadableError(str(place / "spec.json"), str(error)) from error


def write_state(place: Path, state: LaunchState) -> None:
    """Write the state, and the addresses of the replicas that answer, for ``batch --endpoints-file``. Each appears at once, whole."""
    urls = "".join(f"{one.url}\n" for one in state.replicas if one.phase == "ready")
    for name, data in (("state.json", msgspec.json.encode(state)), ("endpoints", urls.encode())):
        target = place / name
        if name == "endpoints" and target.exists() and target.read_bytes() == data:
            continue
        temporary = place / f".{name}.new"
        temporary.write_bytes(data)
        temporary.replace(target)


def read_state(place: Path) -> LaunchState | None:
    """The state as last written; None where there is none."""
    try:
        return msgspec.json.decode((place / "state.json").read_bytes(), type=LaunchState)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise UnreadableError(str(place / "state.json"), str(error)) from error


def take(place: Path) -> IO[bytes] | None:
    """The lock that a supervisor holds while it lives; None where another one has it."""
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = (place / "lock").open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


def alive(place: Path) -> bool:
    """Whether a supervisor is at work there."""
    if not (place / "lock").exists():
        return False
    held = take(place)
    if held is None:
        return True
    held.close()
    return False

"""Places elsewhere: an address becomes a prefix of arguments, and the probe goes there through standard input.

``ssh://user@host:port``, ``docker://NAME``, ``podman://NAME``, ``kubectl://NAMESPACE/POD[/CONTAINER]``, and nested ones:
``ssh://host/pct/200``, ``ssh://host/docker/NAME``, ``ssh://host/pct/200/docker/NAME``. Nothing is copied there, nothing is left.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from bringup.collect import probe
from bringup.errors import UnreadableError, UsageError

SSH = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=10")
MOST_BYTES = 2 << 30
_FIND_PYTHON = (
    'for p in "$@" python3 /usr/bin/python3 /usr/local/bin/python3 /usr/libexec/platform-python /opt/conda/bin/python3; do '
    'command -v "$p" >/dev/null 2>&1 && exec "$p" - "$REQUEST"; done; echo "no python3 here" >&2; exit 127'
)


class Hop(Struct, frozen=True):
    """One step towards a place: how to run a command there, and whether a shell takes it apart again on the way."""

    kind: str
    name: str
    argv: tuple[str, ...]
    shell: bool = False


def parse_place(address: str, ssh_options: Sequence[str] = ()) -> tuple[Hop, ...]:
    """The hops of an address, outermost first.

    Raises UsageError for a scheme that is not known, or a part that lacks its name.
    """
    scheme, separator, rest = address.partition("://")
    parts = [part for part in rest.split("/") if part]
    if not separator or not parts or any(part.startswith("-") for part in parts):
        raise UsageError(f"{address}: is no place; expected ssh://HOST, docker://NAME or kubectl://NAMESPACE/POD")
    hops: list[Hop] = []
    words = [scheme, *parts]
    while words:
        kind = words.pop(0)
        take = 2 if kind == "kubectl" else 1
        if len(words) < take:
            raise UsageError(f"{address}: {kind} needs {'a namespace and a pod' if take == 2 else 'a name'} after it")
        names = [words.pop(0) for _ in range(take)]
        if kind == "ssh":
            host, _, port = names[0].rpartition(":") if names[0].rpartition(":")[2].isdigit() else (names[0], "", "")
            hops.append(
                Hop("ssh", names[0], (*SSH, *ssh_options, *(("-p", port) if port else ()), host, "--"), shell=True)
            )
        elif kind in ("docker", "podman"):
            hops.append(Hop(kind, names[0], (kind, "exec", "-i", names[0])))
        elif kind == "pct":
            hops.append(Hop("pct", names[0], ("pct", "exec", names[0], "--")))
        elif kind == "lxc":
            hops.append(Hop("lxc", names[0], ("lxc-attach", "-n", names[0], "--")))
        elif kind == "kubectl":
            container = ("-c", words.pop(0)) if words and words[0] not in _KINDS else ()
            hops.append(
                Hop("kubectl", "/".join(names), ("kubectl", "exec", "-i", "-n", names[0], names[1], *container, "--"))
            )
        else:
            raise UsageError(f"{address}: does not know {kind!r}; expected {', '.join(sorted(_KINDS))}")
    return tuple(hops)


_KINDS = frozenset({"ssh", "docker", "podman", "pct", "lxc", "kubectl"})


def command_line(hops: Sequence[Hop], argv: Sequence[str]) -> list[str]:
    """The arguments that run ``argv`` at the end of the hops. What passes a shell on the way is quoted for it."""
    words = list(argv)
    for hop in reversed(hops):
        words = [*hop.argv, shlex.join(words)] if hop.shell else [*hop.argv, *words]
    return words


class Answer(Struct, frozen=True):
    """What the probe brought: its observations, and the stream of a mirrored environment (empty where none was asked)."""

    observed: dict[str, Any]
    stream: bytes


def probe_place(
    address: str,
    *,
    environment: str = "",
    mirror: bool = False,
    seconds: float = 120,
    ssh_options: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Answer:
    """Run the probe at a place. ``environment`` is the path of an environment there.

    Raises UsageError for an address that is none, UnreadableError where the place cannot be reached, refuses, has no Python,
    does not answer within ``seconds``, or answers something else.
    """
    hops = parse_place(address, ssh_options)
    request = json.dumps({"prefix": environment, "mirror": mirror})
    pythons = [f"{environment}/bin/python3"] if environment else []
    script = f"REQUEST={shlex.quote(request)}; export REQUEST; {_FIND_PYTHON}"
    argv = command_line(hops, ["sh", "-c", script, "sh", *pythons])
    source = Path(probe.__file__).read_bytes()
    output, errors, status = _run(address, argv, source, seconds, environ)
    head, newline, stream = output.partition(b"\n")
    if status == 0 and newline:
        try:
            observed = json.loads(head)
        except ValueError:
            observed = None
        if isinstance(observed, dict) and observed.get("schema") == probe.SCHEMA:
            return Answer(observed, stream)
        raise UnreadableError(address, f"answered something else than the probe: {_first(head)!r}")
    raise UnreadableError(address, _why(status, errors, hops))


def _run(
    address: str, argv: Sequence[str], source: bytes, seconds: float, environ: Mapping[str, str] | None
) -> tuple[bytes, str, int]:
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ) if environ is not None else None,
            start_new_session=True,
        )
    except OSError as error:
        raise UnreadableError(
            address, f"{argv[0]} cannot be started here: {(error.strerror or str(error)).lower()}"
        ) from error
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    out: list[bytes] = []
    err: list[bytes] = []
    threads = [
        threading.Thread(target=_feed, args=(process.stdin, source), daemon=True),
        threading.Thread(target=_drain, args=(process.stdout, out, MOST_BYTES), daemon=True),
        threading.Thread(target=_drain, args=(process.stderr, err, 1 << 20), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        _end(process)
        raise UnreadableError(address, f"did not answer within {seconds:g} s") from None
    except BaseException:
        _end(process)
        raise
    for thread in threads:
        thread.join(10)
    return b"".join(out), b"".join(err).decode("utf-8", "replace"), status


def _feed(pipe: IO[bytes], data: bytes) -> None:
    try:
        pipe.write(data)
        pipe.close()
    except OSError:
        pass  # the other end is gone; its status says why


def _drain(pipe: IO[bytes], into: list[bytes], most: int) -> None:
    total = 0
    while data := pipe.read(1 << 16):
        total += len(data)
        if total <= most:
            into.append(data)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(2)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        process.kill()
        process.wait()


_SAYINGS = (
    ("Host key verification failed", "its host key is not the known one, or not known yet"),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", "its host key is not the known one"),
    ("Permission denied", "refuses the login: no key that this user offers is accepted"),
    ("Could not resolve hostname", "its name cannot be resolved"),
    ("Connection refused", "refuses the connection: nothing listens on that port"),
    ("Connection timed out", "does not answer"),
    ("No route to host", "there is no route to it"),
    ("No such container", "there is no such container"),
    ("is not running", "the container is not running"),
    ("future feature annotations is not defined", "its python3 is older than 3.8, which the probe needs"),
    ("no python3 here", "has no python3, which the probe needs"),
)


def _why(status: int, errors: str, hops: Sequence[Hop]) -> str:
    said = next((reason for mark, reason in _SAYINGS if mark in errors), "")
    last = _first(errors.strip().splitlines()[-1].encode()) if errors.strip() else ""
    if said:
        return f"{said} ({last})" if last and "no python3" not in said else said
    where = f"the way there ({' -> '.join(hop.kind for hop in hops)})"
    return f"{where} ended with status {status}{': ' + last if last else ''}"


def _first(data: bytes) -> str:
    return data[:160].decode("utf-8", "replace").strip()

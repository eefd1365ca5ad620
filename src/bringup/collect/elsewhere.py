"""A stack elsewhere as facts: the probe's stream is unpacked into a sparse mirror, which is read like any environment.

The mirror holds the names, the metadata, the Python sources of packages with libraries, and of each library the parts that
its linking facts lie in; the rest of every file is a hole. It is removed as soon as it was read. Device code that lies in
files of its own (.cubin) is not sent, and stays unknown.
"""

from __future__ import annotations

import os
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from bringup.collect.dynamic_loader import parse_loader_cache
from bringup.collect.environment import read_roots
from bringup.collect.host import with_machine
from bringup.collect.interpreter import find_environment
from bringup.collect.metadata_asks import with_metadata_asks
from bringup.collect.system import read_system_libraries
from bringup.collect.target import probe_place
from bringup.errors import BringupError, UnreadableError
from bringup.facts import Facts, Host, Known, Unknown, Variable

_RECORD = struct.Struct("<IQI")
_RANGE = struct.Struct("<QQ")


def elsewhere_facts(
    address: str,
    *,
    environment: str = "",
    label: str = "",
    seconds: float = 300,
    ssh_options: Sequence[str] = (),
    extend: Callable[[Facts], Facts] | None = None,
) -> Facts:
    """Facts of an environment at a place. ``extend`` sees them while the mirror still exists (to read load sites).

    Raises UnreadableError where the place cannot be reached, or holds no environment.
    """
    answer = probe_place(address, environment=environment, mirror=True, seconds=seconds, ssh_options=ssh_options)
    place = answer.observed.get("environment") or {}
    if not place.get("roots"):
        raise UnreadableError(address, f"holds no Python environment at {place.get('prefix') or environment}")
    with tempfile.TemporaryDirectory(prefix="bringup-mirror-") as folder:
        top = os.path.realpath(folder)
        unpack(answer.stream, top, address)
        facts = with_metadata_asks(_read(answer.observed, top, str(place["prefix"]), label or address))
        if extend is not None:
            facts = extend(facts)
        data = msgspec.json.encode(facts)
    # Paths below the mirror are paths there. The folder's name is random, so that nothing else can look like it.
    facts = msgspec.json.decode(data.replace(top.encode() + b"/", b"/"), type=Facts)
    return with_machine(facts, answer.observed)


def _read(observed: dict[str, Any], top: str, prefix: str, label: str) -> Facts:
    environment = find_environment(Path(top + prefix))
    _, found = read_roots(environment.roots)
    machine = str(observed["uname"][4])
    variables = tuple(Variable(name, value) for name, value in observed.get("variables", {}).items())
    try:
        cache = parse_loader_cache(Path(f"{top}/etc/ld.so.cache").read_bytes(), machine)
    except OSError:
        cache = ()
    defaults = (
        f"/lib/{machine}-linux-gnu",
        f"/usr/lib/{machine}-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    )
    host = Host(
        machine=machine,
        libc=str(observed.get("libc", "")),
        loader_cache=tuple((soname, top + path) for soname, path in cache),
        default_dirs=tuple(top + one for one in defaults if os.path.isdir(top + one)),  # noqa: PTH112
        kernel=str(observed["uname"][2]),
        os=_pretty_name(str(observed.get("files", {}).get("/etc/os-release", {}).get("text", ""))),
    )
    library_path = next((one.value for one in variables if one.name == "LD_LIBRARY_PATH"), "")
    searched = [top + one for one in library_path.split(":") if one]
    interpreter = environment.interpreter
    executable = _inside(interpreter.executable, top) if interpreter is not None else ""
    if interpreter is not None:
        interpreter = replace(interpreter, executable=executable)
    system = read_system_libraries(found.libraries, host, searched, executable)
    return Facts(
        target=label,
        roots=environment.roots,
        host=Known(host, label),
        python=Known(interpreter, label) if interpreter is not None else Unknown("no interpreter was found there"),
        distributions=Known(found.distributions, label),
        shared_paths=Known(found.shared_paths, label),
        libraries=Known(found.libraries, label),
        system_libraries=Known(system, label),
        device_files=Unknown("device code in files of its own is not sent from elsewhere"),
        unreadable=Known(found.unreadable, label),
        variables=Known(variables, "environment of the probe there"),
    )


def _inside(path: str, top: str) -> str:
    return path if not path or path.startswith(top + "/") else top + path


def _pretty_name(text: str) -> str:
    for line in text.splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip().strip("\"'")
    return ""


def unpack(stream: bytes, top: str, subject: str) -> None:
    """Lay the files of a mirror below ``top``.

    Raises UnreadableError for a stream that is cut or damaged, or that names a path outside.
    """
    try:
        data = zlib.decompressobj().decompress(stream)
    except zlib.error as error:
        raise UnreadableError(subject, f"sent a damaged mirror: {error}") from error
    for kind, name, size, ranges in _records(data, subject):
        path = os.path.normpath(f"{top}/{name}")
        if not path.startswith(top + "/") or "\0" in name:
            raise UnreadableError(subject, f"sent a path outside of its mirror: {name!r}")
        parent = os.path.dirname(path)  # noqa: PTH120 - tens of thousands of files
        if os.path.realpath(parent) != parent and not os.path.realpath(parent).startswith(top + "/"):
            raise UnreadableError(subject, f"sent a path through a link that leads outside: {name!r}")
        os.makedirs(parent, exist_ok=True)  # noqa: PTH103
        if kind == b"L":
            target = bytes(ranges[0][1]).decode("utf-8", "surrogateescape") if ranges else ""
            if not os.path.lexists(path):
                os.symlink(top + target if target.startswith("/") else target, path)  # noqa: PTH211
                if size and os.path.normpath(f"{parent}/{target}").startswith(top + "/"):
                    os.makedirs(os.path.realpath(path), exist_ok=True)  # noqa: PTH103 - a folder's link
        elif not os.path.lexists(path):
            with open(path, "wb") as file:
                for offset, piece in ranges:
                    file.seek(offset)
                    file.write(piece)
                file.truncate(size)


def _records(data: bytes, subject: str) -> Iterator[tuple[bytes, str, int, list[tuple[int, memoryview]]]]:
    view, at = memoryview(data), 0
    while True:
        kind = bytes(view[at : at + 1])
        if kind == b"E":
            return
        try:
            length, size, count = _RECORD.unpack_from(view, at + 1)
            at += 1 + _RECORD.size
            name = bytes(view[at : at + length]).decode("utf-8", "surrogateescape")
            at += length
            ranges = []
            for _ in range(count):
                offset, piece = _RANGE.unpack_from(view, at)
                at += _RANGE.size
                if at + piece > len(view) or offset + piece > max(size, 4096) + (1 << 20):
                    raise struct.error("a range lies outside")
                ranges.append((offset, view[at : at + piece]))
                at += piece
        except struct.error as error:
            raise UnreadableError(subject, f"sent a mirror that is cut: {error}") from error
        if kind not in (b"F", b"L"):
            raise UnreadableError(subject, "sent a mirror with an unknown record")
        yield kind, name, size, ranges


def read_fleet(
    addresses: Sequence[str], read: Callable[[str], Facts], workers: int = 16
) -> tuple[tuple[str, Facts | BringupError], ...]:
    """Read many places side by side, in the order given. One that fails is its error, and never stops the others."""

    def one(address: str) -> Facts | BringupError:
        try:
            return read(address)
        except BringupError as error:
            return error

    if not addresses:
        return ()
    with ThreadPoolExecutor(max_workers=min(workers, len(addresses))) as pool:
        return tuple(zip(addresses, pool.map(one, addresses), strict=True))

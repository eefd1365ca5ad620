"""Reports that were made before: the rules are pure, so the same facts of the same bringup give the same report.

The key is made of everything that a report depends on, without reading an environment's libraries again: the folders'
fingerprint, the outline with its options, the state of the host's libraries, and the state of bringup's own files.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec
from msgspec.structs import replace

from bringup.collect.stack import library_path
from bringup.facts import Facts, Known, Unknown
from bringup.report import Report


def report_key(facts: Facts, fingerprint: str) -> str:
    """The key of the report about an outline (packages not read) whose folders have that fingerprint."""
    digest = hashlib.sha256(fingerprint.encode())
    digest.update(msgspec.msgpack.encode(_settled(facts)))
    digest.update(repr(_host_state(facts)).encode())
    digest.update(repr(_own_state()).encode())
    return f"report:{digest.hexdigest()}"


def encode(report: Report) -> bytes:
    """A report as it is kept."""
    return msgspec.msgpack.encode(report)


def decode(blob: bytes) -> Report | None:
    """A kept report; None where it is damaged."""
    try:
        return msgspec.msgpack.decode(blob, type=Report)
    except msgspec.DecodeError:
        return None


def _settled(facts: Facts) -> Facts:
    """The facts without what changes from moment to moment: free memory and free disk, which no rule reads."""
    machine, caches = facts.machine, facts.caches
    if isinstance(machine, Known):
        machine = Known(replace(machine.value, memory_available=Unknown("changes all the time")), machine.source)
    if isinstance(caches, Known):
        caches = Known(tuple(replace(one, free=-1) for one in caches.value), caches.source)
    return replace(facts, machine=machine, caches=caches)


def _host_state(facts: Facts) -> tuple[object, ...]:
    paths = [path for _, path in facts.host.value.loader_cache] if isinstance(facts.host, Known) else []
    paths += library_path(facts)
    if isinstance(facts.python, Known):
        paths.append(facts.python.value.executable)
    return tuple(_stamp(path) for path in paths)


def _own_state() -> tuple[object, ...]:
    found: list[object] = []
    folders = [str(Path(__file__).parent)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        folders.append(entry.path)
                else:
                    found.append(_stamp(entry.path))
    return tuple(sorted(map(repr, found)))


def _stamp(path: str) -> tuple[str, int, int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116 - hundreds of files at start-up
    except OSError:
        return path, -1, 0, 0
    return path, status.st_size, status.st_mtime_ns, status.st_ino

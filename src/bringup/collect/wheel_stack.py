"""Wheels that are judged as if they were installed together, without installing any."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache as remember
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from bringup.collect.cache import Cache
from bringup.collect.index import PinnedWheel, open_wheel, rank_of
from bringup.collect.platforms import platform_for, ranked_tags
from bringup.collect.remote import new_client, path_of
from bringup.collect.stack import module_name
from bringup.collect.wheel import WheelFacts, installed_path, read_members, read_wheel
from bringup.errors import MalformedWheelError
from bringup.facts import Facts, Interpreter, Known, SharedPath, Unknown

if TYPE_CHECKING:
    import httpx

ROOT = "site-packages"
"""Stands for the folder that the wheels would be installed into."""

_AT_ONCE = 4  # wheels read side by side: enough to hide round trips, few enough for an index to bear

NO_HOST = Unknown("wheels say nothing about the host that they will run on")


class StackOfWheels(Struct, frozen=True):
    """Facts of wheels, and where each distribution's wheel is, for what has to be read of it later."""

    facts: Facts
    sources: tuple[tuple[str, PinnedWheel], ...]
    bytes_read: int


def read_stack_of_wheels(
    wheels: Sequence[PinnedWheel],
    *,
    target: str,
    python: Interpreter,
    python_source: str,
    note: Callable[[str], None],
    cache: Cache,
) -> StackOfWheels:
    """Read every wheel, from the cache where it has been read before. ``note`` is told what is read.

    Raises MalformedWheelError for a damaged wheel, and IndexUnreachableError where one cannot be fetched.
    """
    client = remember(new_client)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        # The largest first: one that is started last would be waited for alone.
        largest = sorted(wheels, key=lambda wheel: -wheel.size)
        read = dict(zip(largest, pool.map(lambda wheel: _facts_of(wheel, client, cache, note), largest), strict=True))
    found = [read[wheel] for wheel in wheels]
    libraries = [library for one in found for library in one.libraries]
    machines = sorted({library.machine for library in libraries if not library.machine.startswith("em_")})
    facts = Facts(
        target=target,
        roots=(ROOT,),
        host=NO_HOST,
        python=Known(python, python_source),
        distributions=Known(tuple(one.distribution for one in found), "the wheels' metadata"),
        shared_paths=Known(_shared(found), "the wheels' RECORD files"),
        libraries=Known(tuple(libraries), f"the wheels ({', '.join(machines) or 'no shared library among them'})"),
        system_libraries=NO_HOST,
        device_files=Known(tuple(item for one in found for item in one.device_files), "the wheels"),
        unreadable=Known(tuple(item for one in found for item in one.unreadable), "the wheels"),
        variables=NO_HOST,
    )
    pairs = tuple((one.distribution.name, wheel) for one, wheel in zip(found, wheels, strict=True))
    return StackOfWheels(facts, pairs, sum(one.bytes_read for one in found))


def _facts_of(
    wheel: PinnedWheel, client: Callable[[], httpx.Client], cache: Cache, note: Callable[[str], None]
) -> WheelFacts:
    key = f"wheel:{ROOT}:{identity(wheel)}"
    blob = cache.get(key)
    if blob is not None:
        try:
            return replace(msgspec.msgpack.decode(blob, type=WheelFacts), bytes_read=0)
        except msgspec.DecodeError:
            pass  # damaged: read again
    note(f"reading {wheel.filename}{f' ({wheel.size / 1e6:.0f} MB)' if wheel.size else ''}")
    file = open_wheel(wheel, client)
    try:
        facts = read_wheel(file, name=wheel.filename, root=ROOT, source=wheel.filename)
    finally:
        file.close()
    cache.put(key, msgspec.msgpack.encode(facts))
    return facts


def identity(wheel: PinnedWheel) -> str:
    """What tells one wheel file from any other: its hash, or where the index gave none, its place and state."""
    if wheel.sha256:
        return wheel.sha256
    path = path_of(wheel.url)
    if path is None:
        return wheel.url
    try:
        status = path.stat()
    except OSError:
        return wheel.url
    return f"{path}:{status.st_size}:{status.st_mtime_ns}:{status.st_ino}"


def _shared(found: Sequence[WheelFacts]) -> tuple[SharedPath, ...]:
    """Libraries that two wheels would lay on the same path. Text files of namespace packages may well be the same."""
    owners: dict[str, list[str]] = {}
    for one in found:
        for library in one.libraries:
            owners.setdefault(library.path, []).append(one.distribution.name)
    return tuple(SharedPath(path, tuple(names)) for path, names in sorted(owners.items()) if len(names) > 1)


def wheel_sources(stack: StackOfWheels, owner: str) -> dict[str, Callable[[], bytes]]:
    """The Python files of one distribution, read from its wheel: dotted module name to its text."""
    wheel = dict(stack.sources).get(owner)
    if wheel is None:
        return {}
    client = remember(new_client)
    file = open_wheel(wheel, client)
    try:
        members = read_members(file, lambda name: name.endswith(".py"))
    finally:
        file.close()
    placed = {installed_path(name): text for name, text in members.items()}
    return {module_name(path): partial(bytes, text) for path, text in placed.items() if path is not None}


def local_wheels(paths: Sequence[Path]) -> tuple[PinnedWheel, ...]:
    """Wheel files of this machine, as the index would name them. Raises MalformedWheelError for a name that is none."""
    found = []
    for path in paths:
        try:
            name, version, _, _ = parse_wheel_filename(path.name)
        except InvalidWheelFilename as error:
            raise MalformedWheelError(str(path), str(error)) from None
        url = path.absolute().as_uri()
        found.append(PinnedWheel(str(name), str(version), path.name, url, size=path.stat().st_size))
    return tuple(found)


def interpreter_for(version: str) -> tuple[Interpreter, str]:
    """The Python that wheels are judged for: the one named, else that of bringup itself, and which of the two it is."""
    source = "--python"
    if not version:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        source = "the Python that bringup runs on, since none was named"
    short = "".join(version.split(".")[:2])
    return Interpreter(version=version, soabi=f"cpython-{short}-{machine()}-linux-gnu"), source


def machine() -> str:
    """The machine that wheels are chosen for: this one's, where it is one that wheels are made for."""
    here = platform.machine()
    return here if here in ("x86_64", "aarch64") else "x86_64"


def newest_of_each(paths: Sequence[Path], python: str) -> tuple[PinnedWheel, ...]:
    """Of a folder's wheels those that an installer would take: per distribution the newest, and of that the best tags.

    Where none of a distribution's wheels fits this Python and machine, its newest is judged all the same: the rule about
    tags then says what is wrong with it.
    """
    rank = ranked_tags(python, platform_for(machine(), libc()))
    by_name: dict[str, list[PinnedWheel]] = {}
    for wheel in local_wheels(paths):
        by_name.setdefault(wheel.name, []).append(wheel)
    chosen = []
    for found in by_name.values():
        fitting = [one for one in found if rank_of(one.filename, rank) is not None] or found
        newest = max(Version(one.version) for one in fitting)
        latest = [one for one in fitting if Version(one.version) == newest]
        chosen.append(
            min(latest, key=lambda one: order if (order := rank_of(one.filename, rank)) is not None else 10**6)
        )
    return tuple(chosen)


def libc() -> str:
    """This machine's libc as ``glibc 2.36``, '' where it is another one."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        return ""

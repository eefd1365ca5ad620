"""Libraries outside of the judged folders that a stack needs, found where the loader would look for them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from bringup.collect.elf import read_library
from bringup.errors import UnreadableError
from bringup.facts import Host, Library


def read_system_libraries(
    libraries: Sequence[Library], host: Host, library_path: Sequence[str], executable: str
) -> tuple[Library, ...]:
    """The closure of what ``libraries`` and the interpreter need from the host.

    ``library_path``: folders of LD_LIBRARY_PATH. Every candidate that the loader could meet is read, not the first one
    only, since which one is met depends on who asks. Libraries that cannot be read are left out: the loader would pass
    them over, too.
    """
    cache: dict[str, list[str]] = {}
    for soname, path in host.loader_cache:
        cache.setdefault(soname, []).append(path)
    found: dict[str, Library] = {}
    wanted: list[str] = []
    asked: set[str] = set()
    inside = {library.full_path for library in libraries}

    extra: dict[str, None] = {}

    def note(library: Library) -> None:
        # Also of the interpreter: one that was built shared finds its libpython by its own RUNPATH.
        extra.update(dict.fromkeys(_own_folders([library])))
        for name in library.needed:
            if name not in asked:
                asked.add(name)
                wanted.append(name)

    def add(path: str) -> None:
        if path in inside:
            return
        real = os.path.realpath(path)
        known = found.get(real)
        if known is None:
            known = _read(real)
            if known is None:
                return
            note(known)
        if path != real and path not in known.aliases:
            known = _with_alias(known, path)
        found[real] = known

    if executable:
        add(executable)
    for library in libraries:
        note(library)
    while wanted:
        name = wanted.pop()
        for path in _candidates(name, cache, library_path, host.default_dirs, tuple(extra)):
            add(path)
    return tuple(found[path] for path in sorted(found))


def _candidates(
    name: str,
    cache: dict[str, list[str]],
    library_path: Sequence[str],
    default_dirs: Sequence[str],
    extra: Sequence[str],
) -> Iterable[str]:
    if "/" in name:
        yield name
        return
    for folder in (*library_path, *extra):
        path = f"{folder}/{name}"
        if os.path.isfile(path):  # noqa: PTH113 - thousands of probes
            yield path
    yield from cache.get(name, ())
    for folder in default_dirs:
        path = f"{folder}/{name}"
        if os.path.isfile(path):  # noqa: PTH113
            yield path


def _own_folders(libraries: Sequence[Library]) -> tuple[str, ...]:
    """Absolute RPATH and RUNPATH folders, and those that ``$ORIGIN`` leads out of the judged folders (conda's lib)."""
    folders: dict[str, None] = {}
    for library in libraries:
        origin = os.path.dirname(library.full_path)  # noqa: PTH120
        for folder in {*library.rpath, *library.runpath}:
            path = os.path.normpath(folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin))
            if path.startswith("/") and not (library.root and path.startswith(library.root + "/")):
                folders[path] = None
    return tuple(folder for folder in folders if os.path.isdir(folder))  # noqa: PTH112


def _read(path: str) -> Library | None:
    try:
        return read_library(Path(path), path=path, root="", owner="", source=path, aliases=())
    except (UnreadableError, OSError):
        return None


def _with_alias(library: Library, alias: str) -> Library:
    from msgspec.structs import replace

    return replace(library, aliases=(*library.aliases, alias))

"""Walk an installed site-packages folder once: what lies there that matters, and what may be read again later.

A listing is remembered with each folder's mtime: a file that appears, vanishes or is renamed changes it, so a second walk
only asks for folders' mtimes. A file rewritten in place does not, which is why readers compare each file's own stamp.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct

_SKIPPED_FOLDERS = frozenset({"__pycache__"})
_DEVICE_SUFFIXES = (".cubin", ".fatbin", ".ptx")


class Folder(Struct, frozen=True, array_like=True):
    """One folder's listing. Names only; ``links`` are symlinks among ``libraries`` with what they lead to."""

    path: str
    mtime_ns: int
    folders: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    device_files: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    odd: tuple[str, ...] = ()
    """Libraries and folders whose name is not UTF-8, with its bytes escaped: no facts file could name them."""


class Tree(Struct, frozen=True, array_like=True):
    """All folders below a root, the root first."""

    root: str
    folders: tuple[Folder, ...]


def looks_like_library(name: str) -> bool:
    """``x.so``, ``x.so.1.2``, ``x.abi3.so``: what a dynamic loader or an import system could open."""
    if ".so" not in name:
        return False
    return name.endswith(".so") or name.rpartition(".so.")[2][:1].isdigit()


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def walk(root: str, known: Tree | None = None) -> Tree:
    """List ``root`` and all that is below it. Folders that ``known`` holds with an unchanged mtime are not listed again.

    A folder that cannot be read is an empty one: the rest still counts, and what needs it will say that it is missing.
    Symlinked folders are not followed.
    """
    remembered = {folder.path: folder for folder in known.folders} if known is not None else {}
    return Tree(root, tuple(_walk(root, remembered)))


def _walk(root: str, remembered: dict[str, Folder]) -> Iterator[Folder]:
    stack = [root]
    while stack:
        path = stack.pop()
        folder = remembered.get(path)
        try:
            mtime = os.stat(path).st_mtime_ns  # noqa: PTH116 - 10,000 folders: no pathlib objects
        except OSError:
            continue
        if folder is None or folder.mtime_ns != mtime:
            folder = _list(path, mtime)
        yield folder
        stack += [f"{path}/{name}" for name in folder.folders]


def _list(path: str, mtime_ns: int) -> Folder:
    folders: list[str] = []
    libraries: list[str] = []
    device_files: list[str] = []
    links: list[tuple[str, str]] = []
    odd: list[str] = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                name = entry.name
                if not _is_text(name):
                    if entry.is_dir(follow_symlinks=False) or looks_like_library(name):
                        odd.append(name.encode("utf-8", "surrogateescape").decode("ascii", "backslashreplace"))
                elif entry.is_dir(follow_symlinks=False):
                    if name not in _SKIPPED_FOLDERS:
                        folders.append(name)
                elif looks_like_library(name):
                    if entry.is_symlink():
                        links.append((name, os.path.realpath(entry.path)))
                    elif entry.is_file(follow_symlinks=False):
                        libraries.append(name)
                elif name.endswith(_DEVICE_SUFFIXES) and entry.is_file(follow_symlinks=False):
                    device_files.append(name)
    except OSError:
        return Folder(path, mtime_ns)
    return Folder(
        path,
        mtime_ns,
        tuple(sorted(folders)),
        tuple(sorted(libraries)),
        tuple(sorted(device_files)),
        tuple(sorted(links)),
        tuple(sorted(odd)),
    )

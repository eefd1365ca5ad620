"""Facts of an installed environment: its distributions, the files that each owns, and its libraries. Imports nothing of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from bringup.collect.elf import read_library
from bringup.collect.fatbin import read_device_file
from bringup.collect.metadata import read_distribution
from bringup.collect.parallel import map_on_cores
from bringup.collect.tree import Tree, walk
from bringup.errors import UnreadableError
from bringup.facts import DeviceCode, DeviceFiles, Distribution, Library, SharedPath, UnreadableFile


class LibraryRead(Struct, frozen=True):
    """What reading one file gave: a library, or why not; neither where the file is no shared object."""

    library: Library | None = None
    unreadable: UnreadableFile | None = None


class LibraryFile(Struct, frozen=True):
    """A file that is to be read, with all that the reader needs to know."""

    file: str
    path: str
    root: str
    owner: str
    aliases: tuple[str, ...]
    size: int
    stamp: str
    """Path, size, mtime and inode: unchanged, the file need not be read again."""


class RootFacts(Struct, frozen=True):
    """The facts of one or more site-packages folders."""

    distributions: tuple[Distribution, ...]
    shared_paths: tuple[SharedPath, ...]
    libraries: tuple[Library, ...]
    device_files: tuple[DeviceFiles, ...]
    unreadable: tuple[UnreadableFile, ...]


def read_roots(roots: Sequence[str]) -> RootFacts:
    """Read site-packages folders. Raises nothing for a damaged file in them: it is an `UnreadableFile`."""
    trees = [walk(root) for root in roots]
    infos = [info for tree in trees for info in _info_folders(tree)]
    distributions, owners, shared, broken = _distributions(infos)
    files = [file for tree in trees for file in _library_files(tree, owners)]
    reads = map_on_cores(read_one, files, lambda file: 40_000 + file.size**0.5, LibraryRead)
    devices, damaged = _device_files(trees, owners)
    return RootFacts(
        distributions=distributions,
        shared_paths=shared,
        libraries=tuple(one.library for one in reads if one.library is not None),
        device_files=devices,
        unreadable=(*broken, *(one.unreadable for one in reads if one.unreadable is not None), *damaged),
    )


def read_one(file: LibraryFile) -> LibraryRead:
    """Read one library file; a damaged one is a result, too."""
    try:
        library = read_library(
            Path(file.file), path=file.path, root=file.root, owner=file.owner, source=file.file, aliases=file.aliases
        )
    except UnreadableError as error:
        return LibraryRead(unreadable=UnreadableFile(file.path, file.owner, error.reason))
    except OSError as error:
        return LibraryRead(unreadable=UnreadableFile(file.path, file.owner, error.strerror or str(error)))
    return LibraryRead(library=library)


class Info(Struct, frozen=True):
    """A .dist-info folder and the site-packages folder that it describes."""

    root: str
    folder: str


def _info_folders(tree: Tree) -> list[Info]:
    top = tree.folders[0] if tree.folders else None
    names = top.folders if top is not None else ()
    return [Info(tree.root, name) for name in names if name.endswith(".dist-info")]


def _bytes(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _distributions(
    infos: Iterable[Info],
) -> tuple[tuple[Distribution, ...], dict[str, str], tuple[SharedPath, ...], tuple[UnreadableFile, ...]]:
    """Distributions, the owner of every full path, paths with several owners and different content, and damaged ones."""
    distributions: list[Distribution] = []
    owners: dict[str, str] = {}
    contents: dict[str, bytes] = {}
    shared: dict[str, list[str]] = {}
    broken: list[UnreadableFile] = []
    for info in infos:
        folder = f"{info.root}/{info.folder}"
        record = _bytes(f"{folder}/RECORD")
        try:
            distribution = read_distribution(folder, record)
        except UnreadableError as error:
            broken.append(UnreadableFile(f"{info.folder}/METADATA", info.folder.partition("-")[0], error.reason))
            continue
        distributions.append(distribution)
        for line in (record or b"").split(b"\n"):
            # A quoted path holds a comma; none of what is looked up here does.
            raw, comma, rest = line.partition(b",")
            if not comma:
                continue
            path = f"{info.root}/{raw.decode('utf-8', 'replace')}"
            first = owners.setdefault(path, distribution.name)
            if first == distribution.name:
                contents[path] = rest
            elif contents.get(path, b"").strip() != rest.strip():
                # Namespace packages share files of the same content; only different content is a conflict.
                shared.setdefault(path[len(info.root) + 1 :], [first]).append(distribution.name)
    pairs = tuple(SharedPath(path, tuple(dict.fromkeys(names))) for path, names in sorted(shared.items()))
    return tuple(distributions), owners, pairs, tuple(broken)


def _library_files(tree: Tree, owners: dict[str, str]) -> list[LibraryFile]:
    start = len(tree.root) + 1
    aliases: dict[str, list[str]] = {}
    outside: list[str] = []
    for folder in tree.folders:
        for name, real in folder.links:
            path = f"{folder.path}/{name}"
            if real.startswith(os.path.realpath(tree.root) + "/"):
                inside = tree.root + real[len(os.path.realpath(tree.root)) :]
                aliases.setdefault(inside, []).append(path)
            else:
                outside.append(path)
    files: list[LibraryFile] = []
    paths = [f"{folder.path}/{name}" for folder in tree.folders for name in folder.libraries]
    for path in (*paths, *outside):
        try:
            status = os.stat(path)  # noqa: PTH116 - many files: no pathlib objects
        except OSError:
            continue  # a dangling link: the loader finds nothing there, and nor does the model
        files.append(
            LibraryFile(
                file=path,
                path=path[start:],
                root=tree.root,
                owner=owners.get(path, ""),
                aliases=tuple(aliases.get(path, ())),
                size=status.st_size,
                stamp=f"{path}:{status.st_size}:{status.st_mtime_ns}:{status.st_ino}",
            )
        )
    return files


def _device_files(
    trees: Sequence[Tree], owners: dict[str, str]
) -> tuple[tuple[DeviceFiles, ...], tuple[UnreadableFile, ...]]:
    found: list[DeviceFiles] = []
    damaged: list[UnreadableFile] = []
    for tree in trees:
        start = len(tree.root) + 1
        for folder in tree.folders:
            counts: dict[DeviceCode, int] = {}
            owner = ""
            for name in folder.device_files:
                path = f"{folder.path}/{name}"
                owner = owner or owners.get(path, "")
                try:
                    data = _bytes(path)
                    code = read_device_file(data, path) if data is not None else ()
                except UnreadableError as error:
                    damaged.append(UnreadableFile(path[start:], owner, error.reason))
                    continue
                for one in code:
                    key = DeviceCode(one.kind, one.arch, one.suffix, one.ptx_isa)
                    counts[key] = counts.get(key, 0) + one.count
            if counts:
                code = tuple(DeviceCode(k.kind, k.arch, k.suffix, k.ptx_isa, n) for k, n in sorted(counts.items()))
                found.append(DeviceFiles(owner, folder.path[start:], len(folder.device_files), code))
    return tuple(found), tuple(damaged)

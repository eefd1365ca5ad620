"""Facts of an installed environment: its distributions, the files that each owns, and its libraries. Imports nothing of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bringup.collect.cache import Cache
from bringup.collect.elf import read_library
from bringup.collect.fatbin import read_device_file
from bringup.collect.metadata import BUILD_FILES, read_distribution
from bringup.collect.parallel import begin_on_cores
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
    aliases: tuple[str, ...]
    size: int


class RootFacts(Struct, frozen=True):
    """The facts of one or more site-packages folders."""

    distributions: tuple[Distribution, ...]
    shared_paths: tuple[SharedPath, ...]
    libraries: tuple[Library, ...]
    device_files: tuple[DeviceFiles, ...]
    unreadable: tuple[UnreadableFile, ...]


class Listing(Struct, frozen=True):
    """What the folders held when they were read: their listings, and the stamps of all files that were read."""

    trees: tuple[Tree, ...]
    stamps: tuple[tuple[str, int, int, int], ...]
    """Path, size, mtime in nanoseconds, inode; sizes of -1 for files that were not there."""


def read_roots(roots: Sequence[str], cache: Cache | None = None) -> tuple[str, RootFacts]:
    """Read site-packages folders. Raises nothing for a damaged file in them: it is an `UnreadableFile`.

    Returns the folders' fingerprint, too: the same one means the same facts.
    """
    cache = cache or Cache(None)
    known = _known_listing(cache, roots)
    if known is not None and _unchanged(known):
        fingerprint = _fingerprint(known)
        blob = cache.get(f"roots:{fingerprint}")
        if blob is not None:
            try:
                return fingerprint, msgspec.msgpack.decode(blob, type=RootFacts)
            except msgspec.DecodeError:
                pass  # damaged: read again
    return _read_anew(roots, known, cache)


def fingerprint_of(roots: Sequence[str], cache: Cache) -> str | None:
    """The folders' fingerprint where nothing has changed since they were last read; None where it has, or never were."""
    known = _known_listing(cache, roots)
    return _fingerprint(known) if known is not None and _unchanged(known) else None


def _read_anew(roots: Sequence[str], known: Listing | None, cache: Cache) -> tuple[str, RootFacts]:
    before = {tree.root: tree for tree in known.trees} if known is not None else {}
    trees = [walk(root, before.get(root)) for root in roots]
    infos = [info for tree in trees for info in _info_folders(tree)]
    files = [file for tree in trees for file in _library_files(tree)]
    # The libraries are begun on the other cores while the distributions, which own them, are read here.
    pending = begin_on_cores(read_one, files, lambda file: file.size, LibraryRead)
    distributions, owners, shared, broken = _distributions(infos)
    reads = [_owned(one, owners.get(file.file, "")) for one, file in zip(pending.results(), files, strict=True)]
    devices, damaged = _device_files(trees, owners)
    facts = RootFacts(
        distributions=distributions,
        shared_paths=shared,
        libraries=tuple(one.library for one in reads if one.library is not None),
        device_files=devices,
        unreadable=(*broken, *(one.unreadable for one in reads if one.unreadable is not None), *damaged, *_odd(trees)),
    )
    listing = Listing(tuple(trees), _stamps(trees, infos))
    fingerprint = _fingerprint(listing)
    cache.later(
        lambda: (
            cache.put(f"roots:{fingerprint}", msgspec.msgpack.encode(facts))
            and cache.put(_listing_key(roots), msgspec.msgpack.encode(listing))
        )
    )
    return fingerprint, facts


def _listing_key(roots: Sequence[str]) -> str:
    return "listing:" + "\0".join(roots)


def _known_listing(cache: Cache, roots: Sequence[str]) -> Listing | None:
    blob = cache.get(_listing_key(roots))
    if blob is None:
        return None
    try:
        return msgspec.msgpack.decode(blob, type=Listing)
    except msgspec.DecodeError:
        return None


def _unchanged(listing: Listing) -> bool:
    """Whether every folder and file is as it was. Only asks for their status."""
    stat = os.stat
    try:
        for tree in listing.trees:
            for folder in tree.folders:
                if stat(folder.path).st_mtime_ns != folder.mtime_ns:
                    return False
    except OSError:
        return False
    return all(_stamp(path) == (path, size, mtime, inode) for path, size, mtime, inode in listing.stamps)


def _stamp(path: str) -> tuple[str, int, int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands of files
    except OSError:
        return path, -1, 0, 0
    return path, status.st_size, status.st_mtime_ns, status.st_ino


_READ_OF_INFO = ("METADATA", "RECORD", "WHEEL", "direct_url.json", "INSTALLER")


def _stamps(trees: Sequence[Tree], infos: Sequence[Info]) -> tuple[tuple[str, int, int, int], ...]:
    paths = [f"{info.root}/{info.folder}/{name}" for info in infos for name in _READ_OF_INFO]
    for tree in trees:
        for folder in tree.folders:
            names = (*folder.libraries, *folder.device_files, *(name for name, _ in folder.links))
            paths += [f"{folder.path}/{name}" for name in names]
        paths += [f"{tree.root}/{file.path}" for files in BUILD_FILES.values() for file in files]
    return tuple(_stamp(path) for path in paths)


def _fingerprint(listing: Listing) -> str:
    return hashlib.sha256(msgspec.msgpack.encode(listing)).hexdigest()


def read_one(file: LibraryFile) -> LibraryRead:
    """Read one library file; a damaged one is a result, too."""
    try:
        library = read_library(Path(file.file), path=file.path, root=file.root, source=file.file, aliases=file.aliases)
    except UnreadableError as error:
        return LibraryRead(unreadable=UnreadableFile(file.path, "", error.reason))
    except OSError as error:
        return LibraryRead(unreadable=UnreadableFile(file.path, "", error.strerror or str(error)))
    return LibraryRead(library=library)


def _owned(read: LibraryRead, owner: str) -> LibraryRead:
    if not owner:
        return read
    if read.unreadable is not None:
        return LibraryRead(unreadable=replace(read.unreadable, owner=owner))
    return LibraryRead(replace(read.library, owner=owner)) if read.library is not None else read


class Info(Struct, frozen=True):
    """A .dist-info folder and the site-packages folder that it describes."""

    root: str
    folder: str


def _info_folders(tree: Tree) -> list[Info]:
    top = tree.folders[0] if tree.folders else None
    names = top.folders if top is not None else ()
    return [Info(tree.root, name) for name in names if name.endswith(".dist-info")]


def _bytes(path: str) -> bytes | None:
    if not os.path.isfile(path):  # noqa: PTH113 - a pipe of that name would be waited for
        return None
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
    records: dict[str, list[tuple[str, list[str]]]] = {}
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
        name = distribution.name
        distributions.append(distribution)
        # A quoted path holds a comma; none of what is looked up here does.
        own = [line for line in (record or b"").decode("utf-8", "replace").split("\n") if "," in line]
        records.setdefault(name, []).append((info.root, own))
        paths = [f"{info.root}/{line[: line.index(',')]}" for line in own]
        claimed = owners.keys() & paths
        if claimed:
            contents = {first: _contents(records[first]) for first in {owners[path] for path in claimed} - {name}}
            for line, path in zip(own, paths, strict=True):
                first = owners.get(path, name)
                # Namespace packages share files of the same content; only different content is a conflict.
                if first != name and contents[first].get(path, "").strip() != _split(line)[1].strip():
                    shared.setdefault(path[len(info.root) + 1 :], [first]).append(name)
            paths = [path for path in paths if path not in claimed]
        owners.update(dict.fromkeys(paths, name))
    pairs = tuple(SharedPath(path, tuple(dict.fromkeys(names))) for path, names in sorted(shared.items()))
    return tuple(distributions), owners, pairs, tuple(broken)


def _contents(records: list[tuple[str, list[str]]]) -> dict[str, str]:
    """Hash and size, as RECORD has them, by full path."""
    return {f"{root}/{path}": rest for root, lines in records for path, rest in map(_split, lines)}


def _split(line: str) -> tuple[str, str]:
    path, _, rest = line.partition(",")
    return path, rest


def _library_files(tree: Tree) -> list[LibraryFile]:
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
                aliases=tuple(aliases.get(path, ())),
                size=status.st_size,
            )
        )
    return files


def _odd(trees: Sequence[Tree]) -> list[UnreadableFile]:
    """What lies in the folders under names that are not UTF-8."""
    return [
        UnreadableFile(f"{folder.path}/{name}"[len(tree.root) + 1 :], "", "its name is not UTF-8")
        for tree in trees
        for folder in tree.folders
        for name in folder.odd
    ]


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

"""The facts of a wheel without installing it: from a local file, or from an index by range requests.

Only members that matter are read: metadata, shared libraries, programs, device code, files with build facts. Each library is
inflated as a stream into an unlinked temporary file and read there; nothing is extracted, nothing stays behind.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO

from msgspec import Struct
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from bringup.collect.archive import Member, Pieces, RandomAccess, Run, open_member, read_directory, runs
from bringup.collect.elf import library_from_buffer
from bringup.collect.fatbin import read_device_file
from bringup.collect.filebytes import Buffer
from bringup.collect.metadata import BUILD_FILES, distribution_from, record_paths
from bringup.collect.parallel import usable_cores
from bringup.collect.remote import pread_pieces
from bringup.collect.tree import looks_like_library
from bringup.errors import MalformedWheelError, UnreadableError
from bringup.facts import DeviceCode, DeviceFiles, Distribution, Library, UnreadableFile

_GAP = 512 << 10
"""Bytes that are read and dropped rather than asked around: about what travels in the time of one more request."""
_LONGEST_RUN = 32 << 20
_IN_MEMORY = 8 << 20
_SMALL = 32 << 20
"""The largest member that is ever held in memory as a whole: metadata and Python sources are far below."""
_DATA = re.compile(r"[^/]+\.data/([^/]+)/(.+)")
_ELF = b"\x7fELF"
DEVICE_SUFFIXES = (".cubin", ".fatbin", ".ptx")


class WheelFacts(Struct, frozen=True, eq=False):
    """What a wheel would bring into an environment. ``bytes_read``: what was read of it, in bytes."""

    distribution: Distribution
    libraries: tuple[Library, ...]
    programs: tuple[Library, ...]
    """ELF executables (ptxas, nvcc): no loader opens them as libraries."""
    device_files: tuple[DeviceFiles, ...]
    unreadable: tuple[UnreadableFile, ...]
    paths: tuple[str, ...]
    """All files, as they would lie below site-packages; scripts, headers and data for other folders left out."""
    bytes_read: int


class _Read(Struct, frozen=True):
    """What one member gave."""

    path: str
    library: Library | None = None
    code: tuple[DeviceCode, ...] | None = None
    unreadable: str = ""


class OpenWheel:
    """A wheel whose directory and metadata are read. ``file_name`` is checked against what METADATA says."""

    def __init__(self, file: RandomAccess, *, file_name: str, root: str, source: str) -> None:
        self.file = file
        self.root = root
        self.source = source
        self.members = read_directory(file)
        self._paths = {path: member for member in self.members if (path := installed_path(member.name)) is not None}
        info = self._info_folder()
        wanted = {f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD"}
        project = canonicalize_name(info.split("-", 1)[0])
        wanted.update(build.path for build in BUILD_FILES.get(project, ()))
        small = read_members(file, lambda name: (installed_path(name) or name) in wanted, self.members)
        by_path = {installed_path(name) or name: data for name, data in small.items()}
        metadata = by_path.get(f"{info}/METADATA")
        if metadata is None:
            raise MalformedWheelError(file.subject, f"holds no {info}/METADATA")
        record = by_path.get(f"{info}/RECORD")
        self.distribution = distribution_from(
            metadata,
            by_path.get(f"{info}/WHEEL"),
            record,
            read_file=by_path.get,
            paths=self._recorded(record),
            source=f"{source}: {info}/METADATA",
        )
        _check_name(file.subject, file_name, self.distribution)

    @property
    def paths(self) -> tuple[str, ...]:
        """Its files as they would lie below site-packages."""
        return tuple(sorted(self._paths))

    def _info_folder(self) -> str:
        folders = {path.partition("/")[0] for path in self._paths if path.partition("/")[0].endswith(".dist-info")}
        if len(folders) != 1:
            found = (
                "no .dist-info folder"
                if not folders
                else f"several .dist-info folders: {', '.join(sorted(folders)[:4])}"
            )
            raise MalformedWheelError(self.file.subject, f"holds {found}")
        return folders.pop()

    def _recorded(self, record: bytes | None) -> tuple[str, ...]:
        """RECORD's paths as they would be installed; the archive's own where it has no RECORD."""
        if record is None:
            return self.paths
        return tuple(path for name in record_paths(record) if (path := installed_path(name)) is not None)

    def work(self) -> tuple[Run, ...]:
        """The members to be read, as ranges."""
        wanted = [member for member in self.members if self._matters(member)]
        return runs(wanted, gap=_GAP, longest=_LONGEST_RUN)

    def _matters(self, member: Member) -> bool:
        path = installed_path(member.name)
        if path is None or not member.size:
            return False
        name = path.rpartition("/")[2]
        return looks_like_library(name) or name.endswith(DEVICE_SUFFIXES) or _may_be_program(path, member)

    def read(self, run: Run) -> tuple[_Read, ...]:
        """Read one range's members."""
        stream = self.file.stream(run.start, run.end - run.start)
        pieces = Pieces(self.file.subject, stream, run.start)
        return tuple([self._read_member(pieces, member) for member in run.members])

    def _read_member(self, pieces: Pieces, member: Member) -> _Read:
        path = installed_path(member.name) or member.name
        source = f"{self.source}: {member.name}"
        device = path.endswith(DEVICE_SUFFIXES)
        with _inflated(pieces, member, needs=b"" if device else _ELF) as buffer:
            if buffer is None:
                return _Read(path)
            try:
                if device:
                    return _Read(path, code=read_device_file(buffer, source))
                library = library_from_buffer(
                    buffer, path=path, root=self.root, owner=self.distribution.name, source=source
                )
                return _Read(path, library=library)
            except UnreadableError as error:
                return _Read(path, unreadable=error.reason)

    def facts(self, reads: Sequence[_Read], bytes_read: int) -> WheelFacts:
        """Put together what the members gave."""
        reads = sorted(reads, key=lambda one: one.path)
        owner = self.distribution.name
        libraries = [one.library for one in reads if one.library is not None]
        return WheelFacts(
            distribution=self.distribution,
            libraries=tuple(one for one in libraries if looks_like_library(one.file_name)),
            programs=tuple(one for one in libraries if not looks_like_library(one.file_name)),
            device_files=_device_files(reads, owner),
            unreadable=tuple(UnreadableFile(one.path, owner, one.unreadable) for one in reads if one.unreadable),
            paths=self.paths,
            bytes_read=bytes_read,
        )


def read_wheel(file: RandomAccess, *, name: str, root: str, source: str) -> WheelFacts:
    """Read one wheel on all cores. ``name`` is its file name, ``root`` the folder that it would be installed into.

    Raises MalformedWheelError for one that is damaged or hostile; a damaged library inside is an `UnreadableFile`.
    """
    wheel = OpenWheel(file, file_name=name, root=root, source=source)
    work = sorted(wheel.work(), key=lambda run: -run.weight)
    reads = [one for part in on_threads(wheel.read, work) for one in part]
    return wheel.facts(reads, getattr(file, "bytes_read", 0))


def on_threads(function: Callable[[Run], tuple[_Read, ...]], work: Sequence[Run]) -> Iterator[tuple[_Read, ...]]:
    """Inflating, checksums and files release the interpreter lock: threads use the cores, and share connections."""
    if len(work) < 2:
        yield from map(function, work)
        return
    with ThreadPoolExecutor(usable_cores() + 1) as pool:
        yield from pool.map(function, work)


def read_members(
    file: RandomAccess, predicate: Callable[[str], bool], members: Sequence[Member] | None = None
) -> dict[str, bytes]:
    """The content of those members whose name in the archive passes ``predicate``. For small ones: each lies in memory.

    Raises MalformedWheelError for a damaged one, or one larger than 32 MB.
    """
    chosen = [one for one in (read_directory(file) if members is None else members) if predicate(one.name)]
    found: dict[str, bytes] = {}
    for run in runs(chosen, gap=_GAP, longest=_LONGEST_RUN):
        pieces = Pieces(file.subject, file.stream(run.start, run.end - run.start), run.start)
        for member in run.members:
            if member.size > _SMALL:
                raise MalformedWheelError(
                    file.subject, f"{member.name} has {member.size} bytes, far too many for a text"
                )
            found[member.name] = b"".join(open_member(pieces, member))
    return found


def installed_path(name: str) -> str | None:
    """Where an installer puts a member, relative to site-packages; None where it goes elsewhere (scripts, headers)."""
    if ".data/" not in name:
        return name
    match = _DATA.fullmatch(name)
    if match is None:
        return name
    return match.group(2) if match.group(1) in ("purelib", "platlib") else None


def _may_be_program(path: str, member: Member) -> bool:
    """Executables are told by where they lie; whether they are ELF, their first bytes say."""
    folder, _, name = path.rpartition("/")
    return "." not in name and folder.rpartition("/")[2] == "bin" and member.size > 4096


def _check_name(subject: str, file_name: str, distribution: Distribution) -> None:
    try:
        name, version, _, _ = parse_wheel_filename(file_name)
    except InvalidWheelFilename as error:
        raise MalformedWheelError(subject, str(error)) from None
    if name != distribution.name:
        raise MalformedWheelError(
            subject, f"is {distribution.name} by its METADATA and {name} by its file name, which installers refuse"
        )
    from packaging.version import InvalidVersion, Version

    try:
        same = Version(distribution.version) == version
    except InvalidVersion:
        same = False
    if not same:
        raise MalformedWheelError(
            subject,
            f"is version {distribution.version} by its METADATA and {version} by its file name, which installers refuse",
        )


def _device_files(reads: Sequence[_Read], owner: str) -> tuple[DeviceFiles, ...]:
    counts: dict[str, dict[DeviceCode, int]] = {}
    files: dict[str, int] = {}
    for one in reads:
        if not one.path.endswith(DEVICE_SUFFIXES):
            continue
        folder = one.path.rpartition("/")[0]
        files[folder] = files.get(folder, 0) + 1
        for code in one.code or ():
            sums = counts.setdefault(folder, {})
            key = DeviceCode(code.kind, code.arch, code.suffix, code.ptx_isa)
            sums[key] = sums.get(key, 0) + code.count
    return tuple(
        DeviceFiles(
            owner,
            folder,
            files[folder],
            tuple(DeviceCode(key.kind, key.arch, key.suffix, key.ptx_isa, n) for key, n in sorted(sums.items())),
        )
        for folder, sums in sorted(counts.items())
    )


@contextmanager
def _inflated(pieces: Pieces, member: Member, needs: bytes) -> Iterator[Buffer | None]:
    """The member's content: in memory where it is small, else in an unlinked temporary file. None unless it starts with ``needs``."""
    stream = open_member(pieces, member)
    first = next(stream, b"")
    while len(first) < len(needs) and (more := next(stream, b"")):
        first += more
    if not first.startswith(needs):
        yield None
        return
    if member.size <= _IN_MEMORY:
        yield first + b"".join(stream)
        return
    _reserve(pieces.subject, member)
    with tempfile.TemporaryFile(prefix="bringup-", buffering=0) as file:
        try:
            _write(file, first)
            for piece in stream:
                _write(file, piece)
        except OSError as error:
            raise UnreadableError(
                pieces.subject, f"{member.name} cannot be inflated: {error.strerror or error}"
            ) from None
        yield _Spooled(file.fileno(), member.size)


class _Spooled:
    """A temporary file as a `Buffer`: read by position, as `FileBytes` does, since it has no name to open it by."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, where: slice, /) -> bytes:
        start, stop, _ = where.indices(self._size)
        return b"".join(pread_pieces(self._descriptor, "a temporary file", start, max(0, stop - start)))


def _write(file: IO[bytes], data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _reserve(subject: str, member: Member) -> None:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if free < member.size:
        raise UnreadableError(
            subject,
            f"{member.name} needs {member.size / 1e9:.1f} GB in {folder} for a moment, where {free / 1e9:.1f} GB are free "
            "(TMPDIR chooses another folder)",
        )

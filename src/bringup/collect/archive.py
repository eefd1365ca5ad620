"""The zip format, as far as wheels use it: the directory, and members inflated from one forward pass over a byte range.

Everything is checked before a byte is inflated: names that leave the folder, members that overlap or claim more than deflate
can hold, encryption, links. The standard library's reader seeks for each member, allows overlaps, and trusts declared sizes;
this one reads a wheel that lies behind HTTP as a few long ranges.

Format: PKWARE's APPNOTE 6.3.10 (sections 4.3.7, 4.3.12 to 4.3.16, 4.5.3), zip64 included.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Protocol

from msgspec import Struct

from bringup.errors import MalformedWheelError


def _inflater() -> tuple[Any, tuple[type[Exception], ...]]:
    """zlib, or what does the same more than twice as fast: inflating is what reading a wheel costs."""
    try:
        fast = import_module("isal.isal_zlib")
    except ImportError:  # no build of it for this platform
        return zlib, (zlib.error,)
    return fast, (zlib.error, fast.error)


_ZLIB, _DAMAGED = _inflater()

MAX_MEMBERS = 250_000
MAX_DIRECTORY = 64 << 20
MAX_MEMBER_SIZE = 8 << 30
"""Bytes that one member may inflate to. The largest library on an index so far has 2 GB."""
_SUSPICIOUS_RATIO = 200
_SUSPICIOUS_SIZE = 64 << 20
_DEFLATE_LIMIT = 1032
"""No deflate stream grows by more (zlib's own documentation)."""

_EOCD = struct.Struct("<4sHHHHIIH")
_LOCATOR = struct.Struct("<4sIQI")
_EOCD64 = struct.Struct("<4sQHHIIQQQQ")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _STRONGLY_ENCRYPTED = 0x1, 0x40
_LINK = 0o120000
_CHUNK = 1 << 20

TAIL = 256 << 10
"""Bytes at the end that are read at once: the end record, most directories, and often the metadata too."""


class RandomAccess(Protocol):
    """A file that is read at offsets: local or behind HTTP. ``subject`` names it in errors."""

    @property
    def subject(self) -> str: ...

    @property
    def size(self) -> int: ...

    def read_at(self, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes. Raises MalformedWheelError where they lie outside of the file."""
        ...

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        """The same bytes in pieces, with bounded memory."""
        ...


class Member(Struct, frozen=True):
    """One file in the archive. ``offset`` is that of its local header; sizes in bytes."""

    name: str
    method: int
    crc: int
    compressed: int
    size: int
    offset: int
    limit: int
    """Where the next member, or the directory, starts."""


def read_directory(file: RandomAccess) -> tuple[Member, ...]:
    """All members that are files, in the order of their offsets.

    Raises MalformedWheelError for anything that an installer would refuse, or that could harm who inflates it.
    """
    size = file.size
    tail_start = max(0, size - TAIL)
    tail = file.read_at(tail_start, size - tail_start)
    try:
        count, length, start, end = _end_record(file, tail, tail_start)
        if count > MAX_MEMBERS or length > MAX_DIRECTORY:
            raise _malformed(file, f"a directory of {count} members and {length} bytes is larger than any wheel's")
        if start + length > end:
            raise _malformed(file, "truncated: its directory lies outside of the file")
        data = tail[start - tail_start :][:length] if start >= tail_start else file.read_at(start, length)
        return _members(file, data, count, start)
    except (struct.error, OverflowError) as error:
        raise _malformed(file, f"a damaged directory: {error}") from None


def _malformed(file: RandomAccess, reason: str) -> MalformedWheelError:
    return MalformedWheelError(file.subject, reason)


def _end_record(file: RandomAccess, tail: bytes, tail_start: int) -> tuple[int, int, int, int]:
    """Members, size and offset of the directory, and the offset of the record behind it."""
    position = tail.rfind(b"PK\x05\x06")
    if position < 0 or position + _EOCD.size > len(tail):
        raise _malformed(file, "no zip archive, or a truncated one: its directory at the end is missing")
    _, disk, first_disk, _, count, length, start, _ = _EOCD.unpack_from(tail, position)
    end = tail_start + position
    locator = position - _LOCATOR.size
    if locator >= 0 and tail[locator : locator + 4] == b"PK\x06\x07":
        _, _, record, _ = _LOCATOR.unpack_from(tail, locator)
        if record + _EOCD64.size > end:
            raise _malformed(file, "truncated: its zip64 record lies outside of the file")
        fields = _EOCD64.unpack(file.read_at(record, _EOCD64.size))
        if fields[0] != b"PK\x06\x06":
            raise _malformed(file, "its zip64 record is damaged")
        disk, first_disk, count, length, start, end = fields[4], fields[5], fields[7], fields[8], fields[9], record
    if disk or first_disk:
        raise _malformed(file, "is one part of an archive on several disks")
    return count, length, start, end


def _members(file: RandomAccess, data: bytes, count: int, directory: int) -> tuple[Member, ...]:
    found: list[tuple[int, str, int, int, int, int]] = []
    names: set[str] = set()
    position = 0
    for _ in range(count):
        (
            magic, made_by, _, flags, method, _, _, crc, compressed, size, name_length, extra_length, comment_length,
            _, _, attributes, offset,
        ) = _CENTRAL.unpack_from(data, position)  # fmt: skip
        if magic != b"PK\x01\x02":
            raise _malformed(file, f"its directory is damaged at member {len(found) + 1} of {count}")
        position += _CENTRAL.size
        raw = data[position : position + name_length]
        extra = data[position + name_length : position + name_length + extra_length]
        position += name_length + extra_length + comment_length
        if position > len(data):
            raise _malformed(file, "its directory is truncated")
        if 0xFFFFFFFF in (compressed, size, offset):
            size, compressed, offset = _zip64(extra, size, compressed, offset)
        name = _name(file, raw, flags)
        if made_by >> 8 == 3 and (attributes >> 16) & 0o170000 == _LINK:
            raise _malformed(file, f"{name} is a symbolic link, which wheels must not hold")
        if name.endswith("/"):
            continue
        if name in names:
            raise _malformed(file, f"holds {name} twice")
        names.add(name)
        _check_member(file, name, flags, method, compressed, size)
        found.append((offset, name, method, crc, compressed, size))
    found.sort()
    members: list[Member] = []
    for index, (offset, name, method, crc, compressed, size) in enumerate(found):
        limit = found[index + 1][0] if index + 1 < len(found) else directory
        if offset + _LOCAL.size + len(name) + compressed > limit:
            raise _malformed(file, f"{name} overlaps what follows it")
        members.append(Member(name, method, crc, compressed, size, offset, limit))
    return tuple(members)


def _zip64(extra: bytes, size: int, compressed: int, offset: int) -> tuple[int, int, int]:
    """Sizes and offset, those that do not fit 32 bits taken from the zip64 extra field, where only they stand, in this order."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, position)
        position += 4
        if kind == 1:
            values = [size, compressed, offset]
            for index, value in enumerate(values):
                if value == 0xFFFFFFFF:
                    (values[index],) = struct.unpack_from("<Q", extra[: length + position], position)
                    position += 8
            return values[0], values[1], values[2]
        position += length
    return size, compressed, offset


def _name(file: RandomAccess, raw: bytes, flags: int) -> str:
    try:
        name = raw.decode("utf-8" if flags & 0x800 else "cp437")
    except UnicodeDecodeError:
        raise _malformed(file, f"a member's name is not UTF-8: {raw[:80]!r}") from None
    parts = name.split("/")
    if not name or "\0" in name or "\\" in name:
        raise _malformed(file, f"a member's name is not portable: {name[:80]!r}")
    if name.startswith("/") or ".." in parts or (len(parts[0]) == 2 and parts[0][1] == ":"):
        raise _malformed(file, f"a member would be written outside of its folder: {name[:200]!r}")
    return name


def _check_member(file: RandomAccess, name: str, flags: int, method: int, compressed: int, size: int) -> None:
    if flags & (_ENCRYPTED | _STRONGLY_ENCRYPTED):
        raise _malformed(file, f"{name} is encrypted")
    if method not in (_STORED, _DEFLATED):
        raise _malformed(file, f"{name} is compressed by method {method}, which installers of wheels do not read")
    if method == _STORED and compressed != size:
        raise _malformed(file, f"{name} is stored, and its two sizes differ")
    if size > MAX_MEMBER_SIZE:
        raise _malformed(file, f"{name} claims {size} bytes, more than any library has")
    if size > _DEFLATE_LIMIT * compressed + 64:
        raise _malformed(file, f"{name} claims {size} bytes out of {compressed}, more than deflate can hold")
    if size > _SUSPICIOUS_SIZE and size > _SUSPICIOUS_RATIO * compressed:
        raise _malformed(file, f"{name} would grow from {compressed} to {size} bytes, as only a zip bomb does")


# --- members, in one pass over a range ------------------------------------------------------------------------------------


class Run(Struct, frozen=True):
    """Members that are read as one range of bytes, in order; what lies between them is skipped."""

    members: tuple[Member, ...]

    @property
    def start(self) -> int:
        return self.members[0].offset

    @property
    def end(self) -> int:
        return self.members[-1].limit

    @property
    def weight(self) -> int:
        """Bytes to be inflated: what reading the run costs."""
        return sum(member.size for member in self.members)


def runs(members: Sequence[Member], *, gap: int, longest: int) -> tuple[Run, ...]:
    """Group members (sorted by offset): together where less than ``gap`` bytes lie between, up to ``longest`` bytes."""
    groups: list[list[Member]] = []
    for member in members:
        if groups and member.offset - groups[-1][-1].limit <= gap and member.limit - groups[-1][0].offset <= longest:
            groups[-1].append(member)
        else:
            groups.append([member])
    return tuple(Run(tuple(group)) for group in groups)


class Pieces:
    """A forward-only reader over a stream of byte pieces."""

    def __init__(self, subject: str, pieces: Iterator[bytes], position: int) -> None:
        self.subject = subject
        self._pieces = pieces
        self._rest = memoryview(b"")
        self.position = position

    def take(self, length: int) -> bytes:
        """Exactly ``length`` bytes."""
        return b"".join(self.chunks(length))

    def skip_to(self, position: int) -> None:
        """Go forward to an offset of the file."""
        for _ in self.chunks(position - self.position):
            pass

    def chunks(self, length: int) -> Iterator[memoryview]:
        """``length`` bytes as they come."""
        while length > 0:
            if not self._rest:
                piece = next(self._pieces, None)
                if piece is None:
                    raise MalformedWheelError(self.subject, "truncated: it ends within a member")
                self._rest = memoryview(piece)
            chunk, self._rest = self._rest[:length], self._rest[length:]
            length -= len(chunk)
            self.position += len(chunk)
            yield chunk


def open_member(pieces: Pieces, member: Member) -> Iterator[bytes]:
    """Inflate the next member of a run, in pieces of at most 1 MB, checking its size and CRC at the end.

    Stop iterating, and call ``pieces.skip_to`` with the next member's offset, to leave a member early.
    Raises MalformedWheelError for a damaged one.
    """

    def malformed(reason: str) -> MalformedWheelError:
        return MalformedWheelError(pieces.subject, f"{member.name} {reason}")

    pieces.skip_to(member.offset)
    magic, *_, name_length, extra_length = _LOCAL.unpack(pieces.take(_LOCAL.size))
    if magic != b"PK\x03\x04":
        raise malformed("is not where the directory says")
    name = pieces.take(name_length)
    if name.decode("utf-8", "replace") != member.name and name.decode("cp437") != member.name:
        raise malformed("has another name in its own header")
    pieces.take(extra_length)
    if pieces.position + member.compressed > member.limit:
        raise malformed("overlaps what follows it")
    size, crc = 0, 0
    for piece in _inflate(pieces, member):
        size += len(piece)
        if size > member.size:
            raise malformed(f"inflates to more than its {member.size} bytes")
        crc = _ZLIB.crc32(piece, crc)
        yield piece
    if size != member.size:
        raise malformed(f"inflates to {size} bytes instead of {member.size}")
    if crc != member.crc:
        raise malformed("is damaged: its CRC is wrong")


def _inflate(pieces: Pieces, member: Member) -> Iterator[bytes]:
    if member.method == _STORED:
        for chunk in pieces.chunks(member.compressed):
            yield bytes(chunk)
        return
    inflater = _ZLIB.decompressobj(-zlib.MAX_WBITS)
    try:
        for chunk in pieces.chunks(member.compressed):
            data: bytes | memoryview = chunk
            while data and not inflater.eof:
                piece = inflater.decompress(data, _CHUNK)
                data = inflater.unconsumed_tail
                if piece:
                    yield piece
        while not inflater.eof:
            piece = inflater.decompress(b"", _CHUNK)
            if not piece:
                break
            yield piece
    except _DAMAGED as error:
        raise MalformedWheelError(pieces.subject, f"{member.name} is damaged: {error}") from None

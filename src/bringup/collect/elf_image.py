"""The outer shape of an ELF file: bounds-checked reads, segments, sections, and where an address lies in the file.

Formats: the System V gABI. Limits are far above what any linker writes; they keep what a damaged count can cost small.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from bringup.collect.filebytes import Buffer
from bringup.errors import MalformedElfError

_PT_LOAD, _PT_DYNAMIC = 1, 2
_SHT_NOBITS, _SHT_DYNSYM = 8, 11
_MOST_SECTION_NAMES = 16 << 20
_MOST_DYNAMIC = 65_536
_MOST_NEEDED = 4096
_BLOCK = 8192
_SECTION = struct.Struct("<IIQQQQIIQQ")
_FATBIN, _RELOCATABLE_FATBIN = b".nv_fatbin", b"__nv_relfatbin"

DT_NEEDED = 1


class Range(NamedTuple):
    """A part of the file; ``address`` is where a loaded segment is mapped, 0 for a section."""

    offset: int
    size: int
    address: int = 0


class Image:
    """A 64-bit little-endian ELF file. Every read is checked against its size and raises MalformedElfError."""

    def __init__(self, buffer: Buffer, subject: str) -> None:
        self.buffer = buffer
        self.subject = subject
        self.size = len(buffer)
        self._block = b""
        self._block_start = 0
        self.loads: list[Range] = []
        self.dynamic: Range | None = None

    def malformed(self, reason: str) -> MalformedElfError:
        return MalformedElfError(self.subject, reason)

    def get(self, offset: int, size: int) -> bytes:
        """Bytes of the file. Small reads come from a block, since tables stand close together."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise self.malformed(f"truncated: {size} bytes at {offset} lie outside of the file of {self.size} bytes")
        start = offset - self._block_start
        if start >= 0 and start + size <= len(self._block):
            return self._block[start : start + size]
        if size > _BLOCK:
            data = bytes(self.buffer[offset : offset + size])
        else:
            self._block = bytes(self.buffer[offset : offset + _BLOCK])
            self._block_start = offset
            data = self._block[:size]
        if len(data) < size:
            raise self.malformed(f"truncated: it ended at {offset + len(data)} while it was read")
        return data

    def unpack(self, layout: struct.Struct, offset: int) -> tuple[int, ...]:
        return layout.unpack(self.get(offset, layout.size))

    def offset_of(self, address: int) -> int:
        """The file offset that is mapped at an address."""
        for load in self.loads:
            if 0 <= address - load.address < load.size:
                return load.offset + address - load.address
        raise self.malformed(f"address {address:#x} is in no loaded segment")

    def read_segments(self) -> None:
        """Find what is loaded, and the dynamic section, which the program headers name even in stripped files."""
        offset = self.unpack(struct.Struct("<Q"), 32)[0]
        entry_size, count = self.unpack(struct.Struct("<HH"), 54)
        if not count:
            return
        if entry_size != 56:
            raise self.malformed(f"program headers of {entry_size} bytes instead of 56")
        for kind, _, start, address, _, size, _, _ in struct.iter_unpack("<IIQQQQQQ", self.get(offset, 56 * count)):
            if kind == _PT_LOAD:
                self.loads.append(Range(start, size, address))
            elif kind == _PT_DYNAMIC and self.dynamic is None:
                self.dynamic = Range(start, size, address)


class Sections(NamedTuple):
    """What the section headers add to the program headers. ``present`` is False where they are stripped or damaged."""

    present: bool
    symbols: tuple[Range, ...] = ()
    fatbins: tuple[Range, ...] = ()


class _Headers(NamedTuple):
    headers: list[tuple[int, ...]]
    names: bytes

    def named(self, wanted: bytes) -> tuple[Range, ...]:
        """Sections of that name that have content in the file."""
        if wanted not in self.names:
            return ()
        return tuple(
            Range(one[4], one[5])
            for one in self.headers
            if one[1] != _SHT_NOBITS and self.names[one[0] : one[0] + len(wanted) + 1] == wanted + b"\0"
        )


def read_headers(image: Image) -> _Headers | None:
    """The section headers and their names. None where they do not fit the file: the loader does not look at them, either."""
    offset = image.unpack(struct.Struct("<Q"), 40)[0]
    entry_size, count, names_index = image.unpack(struct.Struct("<HHH"), 58)
    room = (image.size - offset) // _SECTION.size
    if not offset or entry_size != _SECTION.size or not 0 < count <= room or names_index >= count:
        return None
    headers = list(_SECTION.iter_unpack(image.get(offset, _SECTION.size * count)))
    names_at, names_size = headers[names_index][4:6]
    if names_size > _MOST_SECTION_NAMES or names_at + names_size > image.size:
        return None
    return _Headers(headers, image.get(names_at, names_size))


def read_sections(image: Image) -> Sections:
    """Where the section headers say that the dynamic symbols and the device code stand."""
    found = read_headers(image)
    if found is None:
        return Sections(present=False)
    symbols = tuple(Range(one[4], one[5]) for one in found.headers if one[1] == _SHT_DYNSYM)
    # Relocatable device code is the device linker's input: once linked, what is loaded stands in .nv_fatbin. Like
    # cuobjdump, take the executable sections, and the relocatable ones where there is no other.
    return Sections(True, symbols, found.named(_FATBIN) or found.named(_RELOCATABLE_FATBIN))


def read_dynamic(image: Image) -> tuple[dict[int, int], list[int]]:
    """The dynamic section: its tags (of a repeated tag the last, as in the loader), and DT_NEEDED in order."""
    tags: dict[int, int] = {}
    needed: list[int] = []
    if image.dynamic is None:
        return tags, needed
    start, size, _ = image.dynamic
    if start + size > image.size:
        raise image.malformed(f"truncated: its dynamic section of {size} bytes at {start} lies outside of the file")
    for tag, value in struct.iter_unpack("<qQ", image.get(start, min(size - size % 16, 16 * _MOST_DYNAMIC))):
        if tag == 0:
            break
        if tag == DT_NEEDED:
            needed.append(value)
        else:
            tags[tag] = value
    if len(needed) > _MOST_NEEDED:
        raise image.malformed(f"it needs {len(needed)} libraries, more than {_MOST_NEEDED}")
    return tags, needed

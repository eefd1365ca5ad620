"""Device code in fatbins and standalone files: which architectures, SASS or PTX, from the headers alone.

Format, decoded by compiling with every -gencode and compress mode and checked against cuobjdump. A container: u32 0xBA55ED50,
u16 version, u16 header size, u64 size of the entries behind the header. An entry: u16 kind (1 PTX, 2 SASS), u16, u32 header
size, u64 payload size, u32, u32, u16 minor, u16 major (for PTX: the PTX ISA), u32 architecture, u32, u32, u64 flags. The
payload, compressed or not, is never touched. Entries of other kinds (LTO-IR among them) need a linker first and are passed over.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable
from typing import Literal

from bringup.collect.elf_image import Image, read_headers, read_sections
from bringup.collect.filebytes import Buffer, find
from bringup.errors import MalformedFatbinError
from bringup.facts import DeviceCode

_MAGIC = 0xBA55ED50
_MAGIC_BYTES = struct.pack("<I", _MAGIC)
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQ")
_PTX, _SASS = 1, 2
_SUFFIX_A, _SUFFIX_F = 0x100000, 0x200000
_ELF_64_LITTLE = b"\x7fELF\2\1"
_EM_CUDA = struct.pack("<H", 190)
_ABI_WIDE_ARCH = 8

# The largest library of published wheels holds 6,000 entries of 40 kinds.
_MOST_ENTRIES = 1_000_000
_MOST_KINDS = 10_000
_FALSE_MAGIC = 10  # costs as much time as this many entries
_MOST_COMPAT = 1 << 16

Suffix = Literal["", "a", "f"]
_Key = tuple[Literal["sass", "ptx"], int, Suffix, str]
_SUFFIXES: dict[bytes, Suffix] = {b"": "", b"a": "a", b"f": "f"}


def device_code_of_sections(
    buffer: Buffer, sections: Iterable[tuple[int, int]], subject: str
) -> tuple[DeviceCode, ...]:
    """Device code of the fatbin sections at (offset, size), summed by kind, architecture, suffix and PTX ISA, and sorted.

    Raises MalformedFatbinError where a header leads outside of its section.
    """
    counts = _Counts(subject)
    for offset, size in sections:
        if offset < 0 or offset + size > len(buffer):
            raise counts.malformed(f"a fatbin section of {size} bytes at {offset} lies outside of the file")
        _add_section(buffer, offset, offset + size, counts)
    return counts.sorted()


def device_code_without_sections(buffer: Buffer, subject: str) -> tuple[DeviceCode, ...]:
    """Device code of a library whose section headers are stripped: every sound container that stands anywhere in it.

    The container's first bytes also occur in the code of the CUDA runtime, which compares with them: what is no sound
    container is passed over here.
    """
    counts = _Counts(subject)
    end = len(buffer)
    position = find(buffer, _MAGIC_BYTES, 0, end)
    while position >= 0:
        following = position + 1
        found = _Counts(subject)
        try:
            reached = _add_container(buffer, position, end, found)
            if found.entries:
                counts.add(found)
                following = reached
            else:
                counts.spend(_FALSE_MAGIC)
        except MalformedFatbinError:
            counts.spend(found.entries + _FALSE_MAGIC)
        position = find(buffer, _MAGIC_BYTES, following, end)
    return counts.sorted()


def read_device_file(data: Buffer, subject: str) -> tuple[DeviceCode, ...]:
    """Device code of a standalone .cubin, .fatbin or .ptx file, or of a host object (.o); empty where it is none of them.

    Raises MalformedElfError or MalformedFatbinError for a damaged one.
    """
    start = bytes(data[:20])
    if start[:4] == _MAGIC_BYTES:
        return device_code_of_sections(data, [(0, len(data))], subject)
    if start[:6] == _ELF_64_LITTLE:
        image = Image(data, subject)
        if start[18:20] == _EM_CUDA:
            return _cubin(image)
        return device_code_of_sections(data, [one[:2] for one in read_sections(image).fatbins], subject)
    return _ptx(bytes(data[:65536]))


class _Counts:
    """Entries by kind, architecture, suffix and PTX ISA; bounded, since a hostile file could make each one different."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.entries = 0
        self._found: Counter[_Key] = Counter()

    def malformed(self, reason: str) -> MalformedFatbinError:
        return MalformedFatbinError(self.subject, reason)

    def spend(self, entries: int) -> None:
        self.entries += entries
        if self.entries > _MOST_ENTRIES or len(self._found) > _MOST_KINDS:
            raise self.malformed(f"it holds more than {_MOST_ENTRIES} entries of device code, or {_MOST_KINDS} kinds")

    def note(self, key: _Key) -> None:
        self._found[key] += 1

    def add(self, other: _Counts) -> None:
        self._found.update(other._found)
        self.spend(other.entries)

    def sorted(self) -> tuple[DeviceCode, ...]:
        return tuple(sorted(DeviceCode(*key, n) for key, n in self._found.items()))


def _add_section(buffer: Buffer, position: int, end: int, counts: _Counts) -> None:
    """Containers one behind the other, each padded to 8 bytes by the linker."""
    while position + _CONTAINER.size <= end:
        if bytes(buffer[position : position + 4]) != _MAGIC_BYTES:
            position = find(buffer, _MAGIC_BYTES, position + 1, end)
            if position < 0:
                return
        position = _add_container(buffer, position, end, counts)
        position += -position % 8


def _add_container(buffer: Buffer, position: int, end: int, counts: _Counts) -> int:
    """Count a container's entries; returns where it ends."""
    head = bytes(buffer[position : min(position + _CONTAINER.size + _ENTRY.size, end)])
    if len(head) < _CONTAINER.size:
        raise counts.malformed(f"a fatbin at {position} is cut off")
    _, _, header, size = _CONTAINER.unpack_from(head)
    start: int = position + header
    stop: int = start + size
    if header < _CONTAINER.size or stop > end:
        raise counts.malformed(f"a fatbin of {size} bytes at {position} does not fit its section")
    # Container and first entry are read at once: most containers of a library hold few entries.
    entry = head[header : header + _ENTRY.size]
    while start + _ENTRY.size <= stop:
        if len(entry) < _ENTRY.size:
            entry = bytes(buffer[start : start + _ENTRY.size])
            if len(entry) < _ENTRY.size:
                raise counts.malformed(f"the file ended at {start + len(entry)} while it was read")
        kind, _, header, payload, _, _, minor, major, arch, _, _, flags = _ENTRY.unpack(entry)
        counts.spend(1)
        if header < _ENTRY.size or start + header + payload > stop:
            raise counts.malformed(f"an entry of {payload} bytes at {start} does not fit its fatbin")
        if kind in (_SASS, _PTX):
            suffix: Suffix = "a" if flags & _SUFFIX_A else "f" if flags & _SUFFIX_F else ""
            counts.note(("sass", arch, suffix, "") if kind == _SASS else ("ptx", arch, suffix, f"{major}.{minor}"))
        start += header + payload
        entry = b""
    return stop


_PTX_VERSION = re.compile(rb"^\s*\.version\s+(\d{1,4})\.(\d{1,4})\s", re.M)
_PTX_TARGET = re.compile(rb"^\s*\.target\s+(?:compute|sm)_(\d{1,4})([af]?)\b", re.M)


def _ptx(head: bytes) -> tuple[DeviceCode, ...]:
    version, target = _PTX_VERSION.search(head), _PTX_TARGET.search(head)
    if version is None or target is None:
        return ()
    isa = f"{int(version.group(1))}.{int(version.group(2))}"
    return (DeviceCode("ptx", int(target.group(1)), _SUFFIXES[target.group(2)], isa),)


# --- cubins -----------------------------------------------------------------------------------------------------------


def _cubin(image: Image) -> tuple[DeviceCode, ...]:
    """A cubin is an ELF file whose e_flags hold the architecture.

    Since ABI version 8 in bits 8 to 15, with the suffix ``a`` in bit 3 (CUDA 12.8 and 12.9) or as attribute 9 of section
    .nv.compat (CUDA 13); before, in the low byte, with the suffix in bit 11. The suffix ``f`` stands nowhere but in the note
    of ptxas' command line; where that is stripped, the plain architecture is said, as cuobjdump always does.
    """
    flags = image.unpack(struct.Struct("<I"), 48)[0]
    headers = read_headers(image)

    def content(name: bytes) -> bytes:
        found = headers.named(name) if headers is not None else ()
        return image.get(found[0].offset, min(found[0].size, _MOST_COMPAT)) if found else b""

    if image.get(8, 1)[0] >= _ABI_WIDE_ARCH:
        arch, specific = (flags >> 8) & 0xFF, bool(flags & 0x8) or _is_arch_specific(content(b".nv.compat"))
    else:
        arch, specific = flags & 0xFF, bool(flags & 0x800)
    suffix: Suffix = "a" if specific else ""
    if not specific and re.search(rb"-arch(?:=|\s+)sm_%df\b" % arch, content(b".note.nv.tkinfo")):
        suffix = "f"
    return (DeviceCode("sass", arch, suffix),)


def _is_arch_specific(compat: bytes) -> bool:
    """Attribute 9 of .nv.compat. Attributes: u8 format, u8 number, then u16 value, or for format 4 u16 size and payload."""
    position = 0
    while position + 4 <= len(compat):
        layout, number, value = struct.unpack_from("<BBH", compat, position)
        if layout == 2 and number == 9:
            return bool(value & 1)
        position += 4 + (value if layout == 4 else 0)
    return False

"""Device code in fatbins and standalone files: which architectures, SASS or PTX, from the headers alone.

Format, decoded by compiling with every -gencode and compress mode and checked against cuobjdump. A container: u32 0xBA55ED50,
u16 version, u16 header size, u64 size of the entries behind the header. An entry: u16 kind (1 PTX, 2 SASS), u16, u32 header
size, u64 payload size, u32, u32, u16 minor, u16 major (for PTX: the PTX ISA), u32 architecture, u32, u32, u64 flags. The
payload, compressed or not, is never touched.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

from bringup.errors import MalformedFatbinError
from bringup.facts import DeviceCode

_MAGIC = 0xBA55ED50
_MAGIC_BYTES = struct.pack("<I", _MAGIC)
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQ")
_PTX, _SASS = 1, 2
_SUFFIX_A, _SUFFIX_F = 0x100000, 0x200000
_EM_CUDA = 190

Buffer = bytes | mmap.mmap | memoryview
_Key = tuple[Literal["sass", "ptx"], int, Literal["", "a", "f"], str]


def device_code_of_sections(
    buffer: Buffer, sections: Iterable[tuple[int, int]], subject: str
) -> tuple[DeviceCode, ...]:
    """Device code of the fatbin sections at (offset, size), summed by kind, architecture, suffix and PTX ISA, and sorted.

    Raises MalformedFatbinError where a header leads outside of its section.
    """
    counts: Counter[_Key] = Counter()
    for offset, size in sections:
        if offset < 0 or offset + size > len(buffer):
            raise MalformedFatbinError(
                subject, f"a fatbin section of {size} bytes at {offset} lies outside of the file"
            )
        for key in _containers(buffer, offset, offset + size, subject):
            counts[key] += 1
    return _sorted(counts)


def read_device_file(data: Buffer, subject: str) -> tuple[DeviceCode, ...]:
    """Device code of a standalone .cubin, .fatbin or .ptx file; empty where it is none of them."""
    start = bytes(data[:4])
    if start == _MAGIC_BYTES:
        return device_code_of_sections(data, [(0, len(data))], subject)
    if start == b"\x7fELF":
        return _cubin(data, subject)
    return _ptx(bytes(data[:65536]))


def _sorted(counts: Counter[_Key]) -> tuple[DeviceCode, ...]:
    return tuple(sorted(DeviceCode(kind, arch, suffix, isa, n) for (kind, arch, suffix, isa), n in counts.items()))


def _containers(buffer: Buffer, start: int, end: int, subject: str) -> Iterator[_Key]:
    position = start
    while position + _CONTAINER.size <= end:
        magic, _, header, size = _CONTAINER.unpack_from(buffer, position)
        if magic != _MAGIC:
            # Linkers pad between containers; anything else than zeros is another format.
            position = _next_container(buffer, position, end)
            continue
        if header < _CONTAINER.size or position + header + size > end:
            raise MalformedFatbinError(subject, f"a fatbin of {size} bytes at {position} does not fit its section")
        yield from _entries(buffer, position + header, position + header + size, subject)
        position += header + size
        position += -position % 8


def _next_container(buffer: Buffer, position: int, end: int) -> int:
    if isinstance(buffer, memoryview):
        found = bytes(buffer[position + 1 : end]).find(_MAGIC_BYTES)
        return position + 1 + found if found >= 0 else end
    found = buffer.find(_MAGIC_BYTES, position + 1, end)
    return found if found >= 0 else end


def _entries(buffer: Buffer, start: int, end: int, subject: str) -> Iterator[_Key]:
    position = start
    while position + _ENTRY.size <= end:
        kind, _, header, payload, _, _, minor, major, arch, _, _, flags = _ENTRY.unpack_from(buffer, position)
        if header < _ENTRY.size or position + header + payload > end:
            raise MalformedFatbinError(subject, f"an entry of {payload} bytes at {position} does not fit its fatbin")
        suffix: Literal["", "a", "f"] = "a" if flags & _SUFFIX_A else "f" if flags & _SUFFIX_F else ""
        if kind == _SASS:
            yield "sass", arch, suffix, ""
        elif kind == _PTX:
            yield "ptx", arch, suffix, f"{major}.{minor}"
        position += header + payload


_PTX_VERSION = re.compile(rb"^\s*\.version\s+(\d+)\.(\d+)", re.M)
_PTX_TARGET = re.compile(rb"^\s*\.target\s+sm_(\d+)([af]?)", re.M)


def _ptx(head: bytes) -> tuple[DeviceCode, ...]:
    version, target = _PTX_VERSION.search(head), _PTX_TARGET.search(head)
    if version is None or target is None:
        return ()
    isa = f"{int(version.group(1))}.{int(version.group(2))}"
    suffix: Literal["", "a", "f"] = {b"a": "a", b"f": "f"}.get(target.group(2), "")  # type: ignore[assignment]
    return (DeviceCode("ptx", int(target.group(1)), suffix, isa),)


def _cubin(data: Buffer, subject: str) -> tuple[DeviceCode, ...]:
    """A cubin is an ELF file whose e_flags hold the architecture.

    Since ABI version 8 (CUDA 13) in bits 8 to 15, with the suffix ``a`` as attribute 9 of section .nv.compat; before, in the low
    byte, with the suffix in bit 11. A cubin for a family target (``f``) says the plain architecture, here as in cuobjdump.
    """
    if len(data) < 64:
        raise MalformedFatbinError(subject, "a cubin shorter than its header")
    if struct.unpack_from("<H", data, 18)[0] != _EM_CUDA:
        return ()
    flags = struct.unpack_from("<I", data, 48)[0]
    if bytes(data[8:9])[0] >= 8:
        arch, specific = (flags >> 8) & 0xFF, _is_arch_specific(_section(data, b".nv.compat"))
    else:
        arch, specific = flags & 0xFF, bool(flags & 0x800)
    return (DeviceCode("sass", arch, "a" if specific else ""),)


def _section(data: Buffer, wanted: bytes) -> bytes:
    """A section's bytes, empty where there is none of that name or where the headers do not fit the file."""
    offset = struct.unpack_from("<Q", data, 40)[0]
    entry, count, names_index = struct.unpack_from("<HHH", data, 58)
    if entry != 64 or names_index >= count or offset + 64 * count > len(data):
        return b""
    headers = list(struct.iter_unpack("<IIQQQQIIQQ", bytes(data[offset : offset + 64 * count])))
    names = bytes(data[headers[names_index][4] :][: headers[names_index][5]])
    for name, _, _, _, start, size, *_ in headers:
        if names[name : name + len(wanted) + 1] == wanted + b"\0" and start + size <= len(data):
            return bytes(data[start : start + size])
    return b""


def _is_arch_specific(compat: bytes) -> bool:
    """Attribute 9 of .nv.compat. Attributes: u8 format, u8 number, then u16 value, or for format 4 u16 size and payload."""
    position = 0
    while position + 4 <= len(compat):
        layout, number, value = struct.unpack_from("<BBH", compat, position)
        if layout == 2 and number == 9:
            return bool(value & 1)
        position += 4 + (value if layout == 4 else 0)
    return False

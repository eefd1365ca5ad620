"""Where the numbers of an ELF file and of its fatbins stand, for aimed damage. Only for sound files."""

from __future__ import annotations

import struct

from tests.fuzz.mutate import Field

_MAGIC = struct.pack("<I", 0xBA55ED50)


def _layout(offset: int, widths: str) -> list[Field]:
    fields = []
    for width in map(int, widths):
        fields.append(Field(offset, width))
        offset += width
    return fields


def fields_of(data: bytes) -> list[Field]:
    """Every number of the headers, of the dynamic section, of its tables' beginnings, and of the fatbins' headers."""
    return (elf_fields(data) if data[:4] == b"\x7fELF" else []) + fatbin_fields(data)


def fatbin_fields(data: bytes) -> list[Field]:
    fields: list[Field] = []
    at = data.find(_MAGIC)
    while at >= 0:
        fields += _layout(at, "4228")
        size = struct.unpack_from("<Q", data, at + 8)[0]
        entry, end = at + 16, min(at + 16 + size, len(data))
        while entry + 64 <= end:
            fields += _layout(entry, "224844224448")
            header, payload = struct.unpack_from("<IQ", data, entry + 4)
            entry += max(64, header + payload)
        at = data.find(_MAGIC, at + 4)
    return fields


def elf_fields(data: bytes) -> list[Field]:
    fields = _layout(4, "111") + _layout(16, "2248884222222")
    program_headers, section_headers = struct.unpack_from("<QQ", data, 32)
    segments, sections = struct.unpack_from("<H", data, 56)[0], struct.unpack_from("<H", data, 60)[0]
    dynamic = 0
    for start in range(program_headers, program_headers + 56 * segments, 56):
        fields += _layout(start, "44888888")
        kind, _, offset = struct.unpack_from("<IIQ", data, start)
        if kind == 2:
            dynamic = offset
    for start in range(section_headers, section_headers + 64 * sections, 64):
        fields += _layout(start, "4488884488")
    starts = []
    while dynamic:
        fields += _layout(dynamic, "88") * 3  # what the loader's model hangs on is aimed at more often
        tag, value = struct.unpack_from("<QQ", data, dynamic)
        if tag == 0:
            break
        # In the fixtures the tables stand in the first segment, where addresses are offsets.
        starts += [value] if tag in (4, 6, 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFE) else []
        dynamic += 16
    for start in starts:
        if start + 128 <= len(data):
            fields += _layout(start, "4" * 16) + _layout(start, "2" * 32)
    return fields

"""Dynamic-linking facts of one ELF file: an own reader over mmap, every offset checked against the file.

Reading a stack must cost no more than reading its headers: general libraries build an object a symbol. This one slices whole
columns out of the symbol table and joins names, and touches only the pages of the headers, the dynamic section, the symbol and
version tables, and the fatbins' headers.

Formats: the System V gABI and its x86-64 and AArch64 supplements; symbol versions as in the LSB (``.gnu.version*``).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from itertools import accumulate, compress
from operator import add, and_, or_
from pathlib import Path
from typing import NamedTuple, cast

from bringup.collect.fatbin import device_code_of_sections
from bringup.errors import MalformedElfError
from bringup.facts import DeviceCode, Library

_MACHINES = {62: "x86_64", 183: "aarch64"}
_ET_EXEC, _ET_DYN = 2, 3
_PT_LOAD, _PT_DYNAMIC = 1, 2
_SHT_DYNSYM = 11
_SHN_UNDEF = 0
_LOCAL, _WEAK = 0, 2

_DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SONAME, _DT_RPATH = 1, 4, 5, 6, 10, 14, 15
_DT_SYMBOLIC, _DT_RUNPATH, _DT_FLAGS = 16, 29, 30
_DT_GNU_HASH, _DT_VERSYM, _DT_FLAGS_1 = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFB
_DT_VERDEF, _DT_VERDEFNUM, _DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF

_FLAGS = ((0x2, "symbolic"), (0x8, "now"))
_FLAGS_1 = ((0x1, "now"), (0x2, "global"), (0x8, "nodelete"), (0x800, "nodeflib"), (0x8000000, "pie"))

_FATBIN, _RELOCATABLE_FATBIN = b".nv_fatbin", b"__nv_relfatbin"

Buffer = bytes | mmap.mmap | memoryview


class _Segment(NamedTuple):
    kind: int
    offset: int
    address: int
    size: int


class _Section(NamedTuple):
    name: bytes
    kind: int
    offset: int
    size: int


def read_library(
    file: Path, *, path: str, root: str = "", owner: str = "", source: str = "", aliases: tuple[str, ...] = ()
) -> Library | None:
    """Read a file. None where it is no ELF shared object or executable; the other arguments go into `Library` as they are.

    Raises MalformedElfError for a damaged one, and OSError where it cannot be opened.
    """
    with open(file, "rb") as stream:
        if stream.read(4) != b"\x7fELF":
            return None
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as buffer:
            if hasattr(mmap, "MADV_RANDOM"):
                # Tables lie apart in large files: reading ahead would bring in machine code.
                buffer.madvise(mmap.MADV_RANDOM)
            return library_from_buffer(
                buffer, path=path, root=root, owner=owner, source=source or str(file), aliases=aliases
            )


def library_from_buffer(
    buffer: Buffer, *, path: str, root: str = "", owner: str = "", source: str = "", aliases: tuple[str, ...] = ()
) -> Library | None:
    """Read a library that lies in memory. See `read_library`."""
    reader = _Reader(buffer, source or path)
    if reader.get(0, 4) != b"\x7fELF":
        return None
    header = reader.get(0, 16)
    kind, machine = reader.unpack("<HH" if header[5] == 1 else ">HH", 16)
    if kind not in (_ET_EXEC, _ET_DYN):
        return None
    name = _MACHINES.get(machine, f"em_{machine}")
    if header[4] != 2 or header[5] != 1:
        # 32-bit or big-endian: no process of these stacks loads it, and nothing more of it is needed.
        return Library(
            path, root, owner, f"{name}_32" if header[4] == 1 else f"{name}_be", source=source, aliases=aliases
        )
    view = memoryview(buffer)
    try:
        return _read(reader, view, name, path, root, owner, source, aliases)
    except (struct.error, IndexError, OverflowError, UnicodeError) as error:
        raise reader.malformed(str(error)) from None
    finally:
        # mmap refuses to close while a view is exported.
        view.release()


class _Reader:
    """Bounds-checked access to the file, and the translation of addresses to offsets."""

    def __init__(self, buffer: Buffer, subject: str) -> None:
        self.buffer = buffer
        self.subject = subject
        self.size = len(buffer)
        self.loads: list[_Segment] = []

    def malformed(self, reason: str) -> MalformedElfError:
        return MalformedElfError(self.subject, reason)

    def get(self, offset: int, size: int) -> bytes:
        if offset < 0 or size < 0 or offset + size > self.size:
            raise self.malformed(f"truncated: {size} bytes at {offset} lie outside of the file of {self.size} bytes")
        return bytes(self.buffer[offset : offset + size])

    def unpack(self, layout: str, offset: int) -> tuple[int, ...]:
        size = struct.calcsize(layout)
        return struct.unpack(layout, self.get(offset, size))

    def offset_of(self, address: int) -> int:
        """The file offset that is mapped at an address."""
        for segment in self.loads:
            if segment.address <= address < segment.address + segment.size:
                return segment.offset + address - segment.address
        raise self.malformed(f"address {address:#x} is in no loaded segment")


def _read(
    reader: _Reader,
    view: memoryview,
    machine: str,
    path: str,
    root: str,
    owner: str,
    source: str,
    aliases: tuple[str, ...],
) -> Library:
    phoff, shoff = reader.unpack("<QQ", 32)
    phentsize, phnum, shentsize, shnum, shstrndx = reader.unpack("<HHHHH", 54)
    segments = _segments(reader, phoff, phentsize, phnum)
    reader.loads = [one for one in segments if one.kind == _PT_LOAD]
    sections = _sections(reader, shoff, shentsize, shnum, shstrndx)
    fatbins = [(one.offset, one.size) for one in sections if one.name == _FATBIN]
    if not fatbins:
        # Relocatable device code: once linked, it stands in .nv_fatbin, and the rest is for a further link only.
        fatbins = [(one.offset, one.size) for one in sections if one.name == _RELOCATABLE_FATBIN]
    code: tuple[DeviceCode, ...] = device_code_of_sections(reader.buffer, fatbins, reader.subject) if fatbins else ()
    dynamic = next((one for one in segments if one.kind == _PT_DYNAMIC), None)
    if dynamic is None:
        return Library(path, root, owner, machine, device_code=code, aliases=aliases, size=reader.size, source=source)
    tags, needed = _dynamic(reader, dynamic)
    strings = _strings(reader, tags)
    string = _string_reader(reader, strings)
    versions, version_needs = _version_needs(reader, tags, string)
    definitions = _version_definitions(reader, tags, string, versions)
    count = _symbol_count(reader, tags, sections)
    imports, weak, exports = _symbols(reader, view, tags, count, strings, string, versions)
    return Library(
        path=path,
        root=root,
        owner=owner,
        machine=machine,
        soname=string(tags[_DT_SONAME]) if _DT_SONAME in tags else "",
        needed=tuple(string(offset) for offset in needed),
        rpath=_folders(string(tags[_DT_RPATH])) if _DT_RPATH in tags else (),
        runpath=_folders(string(tags[_DT_RUNPATH])) if _DT_RUNPATH in tags else (),
        version_needs=version_needs,
        version_definitions=definitions,
        imports=imports,
        weak_imports=weak,
        exports=exports,
        flags=_flags(tags),
        device_code=code,
        aliases=aliases,
        size=reader.size,
        source=source,
    )


def _segments(reader: _Reader, offset: int, entry_size: int, count: int) -> list[_Segment]:
    if count and entry_size != 56:
        raise reader.malformed(f"program headers of {entry_size} bytes instead of 56")
    table = reader.get(offset, 56 * count) if count else b""
    found = []
    for kind, _, start, address, _, size, _, _ in struct.iter_unpack("<IIQQQQQQ", table):
        found.append(_Segment(kind, start, address, size))
    return found


def _sections(reader: _Reader, offset: int, entry_size: int, count: int, names_index: int) -> list[_Section]:
    """Section headers; none where they are stripped. A table that does not fit the file counts as stripped, as for ld.so."""
    if not offset or entry_size != 64 or offset + 64 > reader.size:
        return []
    if count == 0:  # more than 65,279 sections: the first header holds the count
        count = reader.unpack("<Q", offset + 32)[0]
    if names_index == 0xFFFF:
        names_index = reader.unpack("<I", offset + 40)[0]
    if count > (reader.size - offset) // 64 or names_index >= count:
        return []
    table = reader.get(offset, 64 * count)
    headers = list(struct.iter_unpack("<IIQQQQIIQQ", table))
    names_offset, names_size = headers[names_index][4], headers[names_index][5]
    if names_offset + names_size > reader.size:
        return []
    names = reader.get(names_offset, names_size)
    found = []
    for name, kind, _, _, start, size, *_ in headers:
        end = names.find(b"\0", name)
        found.append(_Section(names[name:end] if end >= 0 else b"", kind, start, size))
    return found


def _dynamic(reader: _Reader, segment: _Segment) -> tuple[dict[int, int], list[int]]:
    table = reader.get(segment.offset, segment.size - segment.size % 16)
    tags: dict[int, int] = {}
    needed: list[int] = []
    for tag, value in struct.iter_unpack("<qQ", table):
        if tag == 0:
            break
        if tag == _DT_NEEDED:
            needed.append(value)
        else:
            tags.setdefault(tag, value)
    return tags, needed


def _strings(reader: _Reader, tags: dict[int, int]) -> bytes:
    if _DT_STRTAB not in tags or _DT_STRSZ not in tags:
        raise reader.malformed("the dynamic section names no string table")
    return reader.get(reader.offset_of(tags[_DT_STRTAB]), tags[_DT_STRSZ])


def _string_reader(reader: _Reader, strings: bytes) -> Callable[[int], str]:
    def string(offset: int) -> str:
        end = strings.find(b"\0", offset)
        if not 0 <= offset < len(strings) or end < 0:
            raise reader.malformed(f"string {offset} lies outside of the string table")
        return strings[offset:end].decode("utf-8", "replace")

    return string


def _folders(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(":") if part)


def _flags(tags: dict[int, int]) -> tuple[str, ...]:
    found = [name for bit, name in _FLAGS if tags.get(_DT_FLAGS, 0) & bit]
    found += [name for bit, name in _FLAGS_1 if tags.get(_DT_FLAGS_1, 0) & bit]
    if _DT_SYMBOLIC in tags:
        found.append("symbolic")
    return tuple(sorted(set(found)))


def _version_needs(
    reader: _Reader, tags: dict[int, int], string: Callable[[int], str]
) -> tuple[dict[int, str], tuple[tuple[str, tuple[str, ...]], ...]]:
    """Version names by index, and per needed soname those that must exist (weak ones need not)."""
    names: dict[int, str] = {}
    needs: list[tuple[str, tuple[str, ...]]] = []
    if _DT_VERNEED not in tags:
        return names, ()
    offset = reader.offset_of(tags[_DT_VERNEED])
    for _ in range(min(tags.get(_DT_VERNEEDNUM, 0), reader.size // 16)):
        _, count, file, first, following = reader.unpack("<HHIII", offset)
        asked: list[str] = []
        entry = offset + first
        for _ in range(count):
            _, flags, index, name, step = reader.unpack("<IHHII", entry)
            names[index & 0x7FFF] = string(name)
            if not flags & 2:
                asked.append(string(name))
            if not step:
                break
            entry += step
        needs.append((string(file), tuple(asked)))
        if not following:
            break
        offset += following
    return names, tuple(needs)


def _version_definitions(
    reader: _Reader, tags: dict[int, int], string: Callable[[int], str], names: dict[int, str]
) -> tuple[str, ...]:
    """Versions that the library defines, its base version first; adds their names by index to ``names``."""
    found: list[str] = []
    if _DT_VERDEF not in tags:
        return ()
    offset = reader.offset_of(tags[_DT_VERDEF])
    for _ in range(min(tags.get(_DT_VERDEFNUM, 0), reader.size // 20)):
        _, flags, index, _, _, first, following = reader.unpack("<HHHHIII", offset)
        name = string(reader.unpack("<I", offset + first)[0])
        found.append(name)
        if not flags & 1:  # the base version names the file itself; symbols of it are unversioned
            names[index & 0x7FFF] = name
        if not following:
            break
        offset += following
    return tuple(found)


def _symbol_count(reader: _Reader, tags: dict[int, int], sections: list[_Section]) -> int:
    """Entries of the dynamic symbol table: nothing in the dynamic section says it, except the hash tables."""
    if _DT_SYMTAB not in tags:
        return 0
    start = reader.offset_of(tags[_DT_SYMTAB])
    for section in sections:
        if section.kind == _SHT_DYNSYM and section.offset == start:
            return min(section.size, reader.size - start) // 24
    if _DT_HASH in tags:
        return min(reader.unpack("<II", reader.offset_of(tags[_DT_HASH]))[1], (reader.size - start) // 24)
    if _DT_GNU_HASH in tags:
        return min(_gnu_hash_count(reader, reader.offset_of(tags[_DT_GNU_HASH])), (reader.size - start) // 24)
    return 0


def _gnu_hash_count(reader: _Reader, offset: int) -> int:
    buckets, first, bloom, _ = reader.unpack("<IIII", offset)
    table = offset + 16 + 8 * bloom
    if buckets > reader.size // 4:
        raise reader.malformed("a hash table larger than the file")
    last = max(struct.unpack(f"<{buckets}I", reader.get(table, 4 * buckets)), default=0)
    if last < first:
        return first
    chain = table + 4 * buckets + 4 * (last - first)
    while not reader.unpack("<I", chain)[0] & 1:
        chain += 4
        last += 1
    return last + 1


def _symbols(
    reader: _Reader,
    view: memoryview,
    tags: dict[int, int],
    count: int,
    strings: bytes,
    string: Callable[[int], str],
    versions: dict[int, str],
) -> tuple[str, str, str]:
    """Strong references, weak references and definitions, each newline-joined in the notation of `Library`."""
    if count <= 1:
        return "", "", ""
    start = reader.offset_of(tags[_DT_SYMTAB])
    if start + 24 * count > reader.size:
        raise reader.malformed("the symbol table lies outside of the file")
    table = view[start : start + 24 * count]
    numbers = table.cast("I")[::6].tolist()
    info = bytes(table[4::24])
    other = bytes(table[5::24])
    sections = table.cast("H")[3::12].tolist()
    undefined = bytes(map(_SHN_UNDEF.__eq__, sections))

    whole = _names_by_offset(strings)
    looked_up = list(map(whole.get, numbers))
    if None in looked_up:  # names that are the tail of another one
        looked_up = [string(number) if text is None else text for number, text in zip(numbers, looked_up, strict=True)]
    found = cast("list[str]", looked_up)
    indexes = _version_indexes(reader, tags, count) if versions else None
    if indexes is not None:
        suffixes = _suffixes(versions, indexes)
        found = list(map(add, found, map(suffixes.__getitem__, zip(undefined, indexes, strict=True))))
    is_strong, is_weak = info.translate(_STRONG), info.translate(_WEAK_BINDING)
    is_defined = bytes(
        map(and_, map(or_, is_strong, is_weak), map(and_, undefined.translate(_NOT), other.translate(_VISIBLE)))
    )
    imports = compress(found, map(and_, undefined, is_strong))
    weak_imports = compress(found, map(and_, undefined, is_weak))
    exports = compress(found, is_defined)
    return "\n".join(filter(None, imports)), "\n".join(filter(None, weak_imports)), "\n".join(filter(None, exports))


# A symbol's info: binding in the upper four bits, type in the lower. Sections and file names (3, 4) are no symbols.
_STRONG = bytes(int(i >> 4 not in (_LOCAL, _WEAK) and i & 15 not in (3, 4)) for i in range(256))
_WEAK_BINDING = bytes(int(i >> 4 == _WEAK and i & 15 not in (3, 4)) for i in range(256))
_VISIBLE = bytes(int(i & 3 in (0, 3)) for i in range(256))  # default and protected; not internal and hidden
_NOT = bytes(int(i == 0) for i in range(256))


def _suffixes(versions: dict[int, str], indexes: tuple[int, ...]) -> dict[tuple[int, int], str]:
    """What stands behind a name, by (undefined, version index): nothing, ``@VERSION`` or ``@@VERSION``."""
    found: dict[tuple[int, int], str] = {}
    for index in set(indexes):
        version = versions.get(index & 0x7FFF) if index & 0x7FFF > 1 else None
        found[1, index] = f"@{version}" if version is not None else ""
        found[0, index] = "" if version is None else f"@{version}" if index & 0x8000 else f"@@{version}"
    return found


def _names_by_offset(strings: bytes) -> dict[int, str]:
    """Every whole string of the table by its offset."""
    parts = strings.decode("latin-1").split("\0")
    # Each string's offset: the lengths of those before it, and a terminator each. All in C: there are 100,000 of them.
    offsets = map(add, accumulate(map(len, parts), initial=0), range(len(parts)))
    if not strings.isascii():
        parts = [part.encode("latin-1").decode("utf-8", "replace") for part in parts]
    # A name with a line break cannot be: it would make two of one in the joined notation.
    return dict(zip(offsets, (part.replace("\n", "?") for part in parts) if b"\n" in strings else parts, strict=False))


def _version_indexes(reader: _Reader, tags: dict[int, int], count: int) -> tuple[int, ...] | None:
    if _DT_VERSYM not in tags:
        return None
    data = reader.get(reader.offset_of(tags[_DT_VERSYM]), 2 * count)
    return struct.unpack(f"<{count}H", data)

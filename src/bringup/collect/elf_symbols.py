"""Dynamic symbols of an ELF file, as columns: 500,000 of them a stack, and no statement that runs once a symbol.

A column of the symbol table is a slice with a stride; conditions are tables of 256 bytes for ``bytes.translate``, joined by ``&``
of whole columns as numbers; names are picked by `itertools.compress`.

Formats: the System V gABI, the GNU hash table, symbol versions as in the LSB (``.gnu.version*``).
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable
from itertools import accumulate, compress, repeat
from operator import add

from bringup.collect.elf_image import Image, Sections

DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_STRSZ, DT_PLTRELSZ, DT_JMPREL = 4, 5, 6, 7, 8, 10, 2, 23
DT_GNU_HASH, DT_VERSYM, DT_VERDEF, DT_VERNEED = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFE
_VER_FLG_BASE, _VER_FLG_WEAK = 1, 2
_HIDDEN = 0x8000
_UNVERSIONED = 1  # of version indexes, 0 and 1 say local and global

# The largest tables among published wheels hold 26 MB of names (libcusparseLt) and 136,000 symbols (libtriton).
_MOST_STRING_BYTES = 48 << 20
_MOST_STRINGS = 600_000
_MOST_SYMBOLS = 600_000
_MOST_NAME_BYTES = 64 << 20
_MOST_VERSIONS = 32_768
_LONGEST_VERSION = 1024
_LONGEST_PATH = 65_536
_CHUNK = 65_536

# A symbol's info: binding in the upper four bits (1 GLOBAL, 2 WEAK, 10 GNU_UNIQUE), type in the lower (3 a section, 4 a file name).
_STRONG_BIT, _WEAK_BIT = 1, 2
_BINDING = bytes(
    0 if info & 15 in (3, 4) else {1: _STRONG_BIT, 10: _STRONG_BIT, 2: _WEAK_BIT}.get(info >> 4, 0)
    for info in range(256)
)
_BOTH = _STRONG_BIT | _WEAK_BIT
_VISIBLE = bytes(
    _BOTH if other & 3 in (0, 3) else 0 for other in range(256)
)  # default, protected; not internal, hidden
_UNDEFINED = bytes(_BOTH if section == 0 else 0 for section in range(256))
_DEFINED = bytes(_BOTH if section else 0 for section in range(256))
_IS_STRONG = bytes(int(bits == _STRONG_BIT) for bits in range(256))
_IS_WEAK = bytes(int(bits == _WEAK_BIT) for bits in range(256))
_IS_ODD = bytes(number & 1 for number in range(256))


class Strings:
    """The dynamic string table."""

    def __init__(self, image: Image, tags: dict[int, int]) -> None:
        if DT_STRTAB not in tags or DT_STRSZ not in tags:
            raise image.malformed("its dynamic section names no string table")
        size = tags[DT_STRSZ]
        if size > _MOST_STRING_BYTES:
            raise image.malformed(f"a string table of {size} bytes is larger than any linker's")
        self._image = image
        self.table = image.get(image.offset_of(tags[DT_STRTAB]), size)
        self._whole: dict[int, str] | None = None
        self._left = min(4 * size + _CHUNK, _MOST_NAME_BYTES)

    def one(self, offset: int, longest: int = _LONGEST_PATH) -> str:
        """A single string."""
        end = self.table.find(b"\0", offset, offset + longest + 1)
        if end < 0:
            raise self._image.malformed(f"string {offset} is longer than {longest} bytes or lies outside of its table")
        return self.table[offset:end].decode("utf-8", "replace").replace("\n", "?")

    def many(self, offsets: Iterable[int]) -> list[str]:
        """Strings in the order of ``offsets``."""
        if self._whole is None:
            if self.table.count(0) > _MOST_STRINGS:
                raise self._image.malformed("its string table holds more names than any linker's")
            self._whole = _by_offset(self.table)
        wanted = list(offsets)
        looked_up = list(map(self._whole.get, wanted))
        # Names may share their tails: what no string starts with is looked for on its own.
        found = (
            [text if text is not None else self._tail(offset) for text, offset in zip(looked_up, wanted, strict=True)]
            if None in looked_up
            else looked_up
        )
        self._spend(sum(map(len, found)))  # type: ignore[arg-type]
        return found  # type: ignore[return-value]

    def _tail(self, offset: int) -> str:
        end = self.table.find(b"\0", offset)
        if end < 0:
            raise self._image.malformed(f"string {offset} lies outside of its table")
        self._spend(end - offset)
        return self.table[offset:end].decode("utf-8", "replace").replace("\n", "?")

    def _spend(self, length: int) -> None:
        # Overlapping names could make gigabytes of a small table.
        self._left -= length
        if self._left < 0:
            raise self._image.malformed("its symbols' names overlap more than any linker's")


def _by_offset(table: bytes) -> dict[int, str]:
    """Every whole string of the table by its offset."""
    parts = table.decode("latin-1").split("\0")
    # A string's offset: the lengths of those before it, and a terminator each.
    offsets = accumulate(map(add, map(len, parts), repeat(1)), initial=0)
    if not table.isascii():
        parts = [part if part.isascii() else part.encode("latin-1").decode("utf-8", "replace") for part in parts]
    if b"\n" in table:  # would make two names of one in the joined notation
        parts = [part.replace("\n", "?") for part in parts]
    found = dict(zip(offsets, parts, strict=False))
    if table and table[-1]:
        found.popitem()  # the last one is cut off
    return found


class Versions:
    """Symbol versions: names by index, what is asked of others, what is defined here."""

    def __init__(self) -> None:
        self.needed_names: dict[int, str] = {}
        self.defined_names: dict[int, str] = {}
        self.needs: list[tuple[str, tuple[str, ...]]] = []
        self.definitions: list[str] = []


def read_versions(image: Image, tags: dict[int, int], strings: Strings) -> Versions:
    """Walk the version chains. Weak needs (VER_FLG_WEAK) name their symbols but are not required of the library."""
    versions = Versions()
    left = _MOST_VERSIONS
    need, need_entry = struct.Struct("<HHIII"), struct.Struct("<IHHII")
    offset = image.offset_of(tags[DT_VERNEED]) if DT_VERNEED in tags else -1
    while offset >= 0:
        _, count, file, first, following = image.unpack(need, offset)
        asked: list[str] = []
        entry = offset + first
        for _ in range(count):
            left = _spend_version(image, left)
            _, flags, index, name, step = image.unpack(need_entry, entry)
            text = strings.one(name, _LONGEST_VERSION)
            versions.needed_names[index & ~_HIDDEN] = text
            if not flags & _VER_FLG_WEAK:
                asked.append(text)
            if not step:
                break
            entry += step
        left = _spend_version(image, left)
        versions.needs.append((strings.one(file, _LONGEST_VERSION), tuple(asked)))
        offset = offset + following if following else -1
    definition = struct.Struct("<HHHHIII")
    offset = image.offset_of(tags[DT_VERDEF]) if DT_VERDEF in tags else -1
    while offset >= 0:
        left = _spend_version(image, left)
        _, flags, index, _, _, first, following = image.unpack(definition, offset)
        text = strings.one(image.unpack(struct.Struct("<I"), offset + first)[0], _LONGEST_VERSION)
        versions.definitions.append(text)
        if not flags & _VER_FLG_BASE:  # the base version names the file itself; its symbols are unversioned
            versions.defined_names[index & ~_HIDDEN] = text
        offset = offset + following if following else -1
    return versions


def _spend_version(image: Image, left: int) -> int:
    if not left:
        raise image.malformed(f"it names more than {_MOST_VERSIONS} symbol versions")
    return left - 1


def read_symbols(
    image: Image, tags: dict[int, int], sections: Sections, strings: Strings, versions: Versions
) -> tuple[str, str, str]:
    """Strong references, weak references and definitions, each newline-joined in the notation of `Library`."""
    count = _count(image, tags, sections)
    if count <= 1:
        return "", "", ""
    if count > _MOST_SYMBOLS:
        raise image.malformed(f"a table of {count} symbols is larger than any linker's")
    table = image.get(image.offset_of(tags[DT_SYMTAB]), 24 * count)
    binding = int.from_bytes(table[4::24].translate(_BINDING), "little")
    visible = int.from_bytes(table[5::24].translate(_VISIBLE), "little")
    # st_shndx is two bytes wide, and 0 where undefined.
    section = (int.from_bytes(table[6::24], "little") | int.from_bytes(table[7::24], "little")).to_bytes(
        count, "little"
    )
    undefined = int.from_bytes(section.translate(_UNDEFINED), "little") & binding
    defined = int.from_bytes(section.translate(_DEFINED), "little") & binding & visible
    references = undefined.to_bytes(count, "little")

    numbers = memoryview(table).cast("I")[::6].tolist()
    indexes: list[int] = []
    if DT_VERSYM in tags and (versions.needed_names or versions.defined_names):
        indexes = memoryview(image.get(image.offset_of(tags[DT_VERSYM]), 2 * count)).cast("H").tolist()
    reference_suffixes = _Suffixes({0: "", _UNVERSIONED: ""})
    definition_suffixes = _Suffixes(reference_suffixes)
    for index, name in (versions.needed_names | versions.defined_names).items():
        if index > _UNVERSIONED:
            reference_suffixes[index] = reference_suffixes[index | _HIDDEN] = f"@{name}"
            # A definition under a version of another library (a copy in an executable) is not that version's default.
            definition_suffixes[index] = f"@@{name}" if index in versions.defined_names else f"@{name}"
            definition_suffixes[index | _HIDDEN] = f"@{name}"

    def joined(mask: bytes, suffixes: _Suffixes) -> str:
        names: Iterable[str] = strings.many(compress(numbers, mask))
        column = list(compress(indexes, mask))
        if max(column, default=0) > _UNVERSIONED:
            names = map(add, names, map(suffixes.__getitem__, column))
        return "\n".join(filter(None, names))

    return (
        joined(references.translate(_IS_STRONG), reference_suffixes),
        joined(references.translate(_IS_WEAK), reference_suffixes),
        joined(defined.to_bytes(count, "little"), definition_suffixes),
    )


class _Suffixes(dict[int, str]):
    """What stands behind a name, by version index: nothing for indexes without a version."""

    def __missing__(self, index: int) -> str:
        return ""


def _count(image: Image, tags: dict[int, int], sections: Sections) -> int:
    """Entries of the dynamic symbol table. No tag says it: section headers do, or DT_HASH, or the end of the last GNU hash chain."""
    if DT_SYMTAB not in tags:
        return 0
    start = image.offset_of(tags[DT_SYMTAB])
    room = (image.size - start) // 24
    for section in sections.symbols:
        if section.offset == start:
            return min(section.size // 24, room)
    if DT_HASH in tags:
        return min(image.unpack(struct.Struct("<II"), image.offset_of(tags[DT_HASH]))[1], room)
    count = 0
    if DT_GNU_HASH in tags:
        count = _gnu_hash_count(image, image.offset_of(tags[DT_GNU_HASH]))
    # References stand in no GNU hash table, and an empty one says nothing: relocations name them.
    for table, size in ((DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)):
        if table in tags and size in tags:
            count = max(count, _most_relocated(image, image.offset_of(tags[table]), tags[size]) + 1)
    return min(count, room)


def _gnu_hash_count(image: Image, offset: int) -> int:
    buckets, first, bloom, _ = image.unpack(struct.Struct("<IIII"), offset)
    table = offset + 16 + 8 * bloom
    chains = table + 4 * buckets
    if chains > image.size:
        raise image.malformed("its symbol hash table lies outside of the file")
    last = 0
    for start in range(table, chains, _CHUNK):
        last = max(last, *array("I", image.get(start, min(_CHUNK, chains - start))), 0)
    if last < first:
        return first
    # The chain ends with an odd hash value.
    position = chains + 4 * (last - first)
    limit = min(image.size, position + 4 * _MOST_SYMBOLS)
    while position + 4 <= limit:
        chunk = image.get(position, min(_CHUNK, (limit - position) // 4 * 4))
        end = chunk[::4].translate(_IS_ODD).find(1)
        if end >= 0:
            return first + (position - chains) // 4 + end + 1
        position += len(chunk)
    raise image.malformed("its symbol hash table does not end")


def _most_relocated(image: Image, offset: int, size: int) -> int:
    most = 0
    if offset + size > image.size:
        raise image.malformed("its relocations lie outside of the file")
    step = 24 * (_CHUNK // 24)
    for start in range(offset, offset + size - size % 24, step):
        infos = array("Q", image.get(start, min(step, offset + size - size % 24 - start)))[1::3]
        most = max(most, max(infos) >> 32)
    return most

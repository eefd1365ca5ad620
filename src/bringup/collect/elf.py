"""Dynamic-linking facts of one ELF file: an own reader, every offset checked against the file.

Reading a stack must cost no more than reading its headers: general libraries build an object a symbol. This one slices whole
columns out of the symbol table (elf_symbols.py), and touches only the headers, the dynamic section, the symbol and version
tables, and the fatbins' headers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from bringup.collect.elf_image import Image, Sections, read_dynamic, read_sections
from bringup.collect.elf_symbols import Strings, read_symbols, read_versions
from bringup.collect.fatbin import device_code_of_sections, device_code_without_sections
from bringup.collect.filebytes import Buffer, FileBytes
from bringup.errors import UnreadableError
from bringup.facts import DeviceCode, Library

_MACHINES = {62: "x86_64", 183: "aarch64"}
_ET_EXEC, _ET_DYN = 2, 3
_CLASS_64, _LITTLE_ENDIAN = 2, 1

_DT_SONAME, _DT_RPATH, _DT_SYMBOLIC, _DT_RUNPATH, _DT_FLAGS, _DT_FLAGS_1 = 14, 15, 16, 29, 30, 0x6FFFFFFB
_FLAGS = ((0x2, "symbolic"), (0x8, "now"), (0x10, "static_tls"))
_FLAGS_1 = (
    (0x1, "now"),
    (0x2, "global"),
    (0x8, "nodelete"),
    (0x40, "noopen"),
    (0x800, "nodeflib"),
    (0x800_0000, "pie"),
)


def read_library(
    file: Path, *, path: str, root: str = "", owner: str = "", source: str = "", aliases: tuple[str, ...] = ()
) -> Library | None:
    """Read a file. None where it is no ELF shared object or executable; the other arguments go into `Library` as they are.

    Raises MalformedElfError or MalformedFatbinError for a damaged one, UnreadableError where it cannot be read at all.
    """
    try:
        with FileBytes(file) as data:
            return library_from_buffer(
                data, path=path, root=root, owner=owner, source=source or str(file), aliases=aliases
            )
    except OSError as error:
        raise UnreadableError(source or str(file), (error.strerror or str(error)).lower()) from error


def library_from_buffer(
    buffer: Buffer, *, path: str, root: str = "", owner: str = "", source: str = "", aliases: tuple[str, ...] = ()
) -> Library | None:
    """Read a library that lies in memory. See `read_library`."""
    if bytes(buffer[:4]) != b"\x7fELF":
        return None
    image = Image(buffer, source or path)
    header = image.get(0, 20)
    order: Literal["little", "big"] = "little" if header[5] == _LITTLE_ENDIAN else "big"
    if int.from_bytes(header[16:18], order) not in (_ET_EXEC, _ET_DYN):
        return None
    number = int.from_bytes(header[18:20], order)
    if header[4] != _CLASS_64 or header[5] != _LITTLE_ENDIAN:
        # No process of these stacks loads it: its machine says so, and nothing more of it is needed. (x32 and aarch64_be
        # share their number with a machine that they are not.)
        return Library(path, root, owner, f"em_{number}", aliases=aliases, size=image.size, source=source)
    image.read_segments()
    code = _device_code(image, sections := read_sections(image))
    tags, needed = read_dynamic(image)
    machine = _MACHINES.get(number, f"em_{number}")
    if not tags and not needed:
        # A static executable, or the debug information of a library, kept apart from it.
        return Library(path, root, owner, machine, device_code=code, aliases=aliases, size=image.size, source=source)
    strings = Strings(image, tags)
    versions = read_versions(image, tags, strings)
    imports, weak_imports, exports = read_symbols(image, tags, sections, strings, versions)
    return Library(
        path=path,
        root=root,
        owner=owner,
        machine=machine,
        soname=strings.one(tags[_DT_SONAME]) if _DT_SONAME in tags else "",
        needed=tuple(strings.one(offset) for offset in needed),
        rpath=_folders(strings.one(tags[_DT_RPATH])) if _DT_RPATH in tags else (),
        runpath=_folders(strings.one(tags[_DT_RUNPATH])) if _DT_RUNPATH in tags else (),
        version_needs=tuple(versions.needs),
        version_definitions=tuple(versions.definitions),
        imports=imports,
        weak_imports=weak_imports,
        exports=exports,
        flags=_flags(tags),
        device_code=code,
        aliases=aliases,
        size=image.size,
        source=source,
    )


def _device_code(image: Image, sections: Sections) -> tuple[DeviceCode, ...]:
    if not sections.present:
        return device_code_without_sections(image.buffer, image.subject)
    if not sections.fatbins:
        return ()
    return device_code_of_sections(image.buffer, [one[:2] for one in sections.fatbins], image.subject)


def _folders(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(":") if part)


def _flags(tags: dict[int, int]) -> tuple[str, ...]:
    found = {name for bit, name in _FLAGS if tags.get(_DT_FLAGS, 0) & bit}
    found |= {name for bit, name in _FLAGS_1 if tags.get(_DT_FLAGS_1, 0) & bit}
    if _DT_SYMBOLIC in tags:
        found.add("symbolic")
    return tuple(sorted(found))

"""The same facts by other people's readers: pyelftools for ELF files, NVIDIA's cuobjdump for device code."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection

from bringup.facts import DeviceCode, Library, names

Facts = dict[str, Any]
Code = Counter[tuple[str, str]]


def facts_by_pyelftools(file: Path) -> Facts:
    """The fields of `Library` that come from the dynamic section, read by section headers, symbols as sorted lists."""
    with open(file, "rb") as stream:
        elf = ELFFile(stream)
        facts: Facts = {
            "soname": "", "needed": [], "rpath": "", "runpath": "", "version_needs": [], "version_definitions": [],
            "imports": [], "weak_imports": [], "exports": [],
        }  # fmt: skip
        sections = list(elf.iter_sections())
        for section in sections:
            if isinstance(section, DynamicSection):
                for tag in section.iter_tags():
                    match tag.entry.d_tag:
                        case "DT_NEEDED":
                            facts["needed"].append(tag.needed)
                        case "DT_SONAME":
                            facts["soname"] = tag.soname
                        case "DT_RPATH":
                            facts["rpath"] = tag.rpath
                        case "DT_RUNPATH":
                            facts["runpath"] = tag.runpath
        needed_names: dict[int, str] = {}
        defined_names: dict[int, str] = {}
        for section in sections:
            if isinstance(section, GNUVerNeedSection):
                for need, versions in section.iter_versions():
                    asked = []
                    for version in versions:
                        needed_names[version["vna_other"] & 0x7FFF] = version.name
                        if not version["vna_flags"] & 2:
                            asked.append(version.name)
                    facts["version_needs"].append((need.name, asked))
            if isinstance(section, GNUVerDefSection):
                for definition, versions in section.iter_versions():
                    name = next(iter(versions)).name
                    facts["version_definitions"].append(name)
                    if not definition["vd_flags"] & 1:
                        defined_names[definition["vd_ndx"] & 0x7FFF] = name
        indexes = next((s for s in sections if isinstance(s, GNUVerSymSection)), None)
        table = next((s for s in sections if isinstance(s, SymbolTableSection) and s["sh_type"] == "SHT_DYNSYM"), None)
        for number, symbol in enumerate(table.iter_symbols() if table is not None else ()):
            field = _field(symbol)
            if not symbol.name or not field:
                continue
            suffix = ""
            index = indexes.get_symbol(number)["ndx"] if indexes is not None else 1
            if isinstance(index, int):
                plain = index & 0x7FFF
                version = defined_names.get(plain) or needed_names.get(plain)
                if version:
                    default = field == "exports" and not index & 0x8000 and plain in defined_names
                    suffix = f"@@{version}" if default else f"@{version}"
            facts[field].append(symbol.name + suffix)
        for field in ("imports", "weak_imports", "exports"):
            facts[field].sort()
        return facts


def _field(symbol: Any) -> str:
    binding, kind = symbol["st_info"]["bind"], symbol["st_info"]["type"]
    # pyelftools calls binding 10 STB_LOOS; GNU_UNIQUE is what it means on Linux.
    if kind in ("STT_SECTION", "STT_FILE") or binding not in ("STB_GLOBAL", "STB_WEAK", "STB_LOOS", "STB_GNU_UNIQUE"):
        return ""
    if symbol["st_shndx"] == "SHN_UNDEF":
        return "weak_imports" if binding == "STB_WEAK" else "imports"
    return "exports" if symbol["st_other"]["visibility"] in ("STV_DEFAULT", "STV_PROTECTED") else ""


def facts_of(library: Library) -> Facts:
    """A `Library` in the shape of `facts_by_pyelftools`."""
    return {
        "soname": library.soname,
        "needed": list(library.needed),
        "rpath": ":".join(library.rpath),
        "runpath": ":".join(library.runpath),
        "version_needs": [(soname, list(versions)) for soname, versions in library.version_needs],
        "version_definitions": list(library.version_definitions),
        "imports": sorted(names(library.imports)),
        "weak_imports": sorted(names(library.weak_imports)),
        "exports": sorted(names(library.exports)),
    }


def differences(mine: Facts, theirs: Facts) -> list[str]:
    """The fields that differ, each with the first values that only one side has."""
    said = []
    for field, theirs_value in theirs.items():
        mine_value = mine[field]
        if field in ("rpath", "runpath"):
            theirs_value = ":".join(part for part in theirs_value.split(":") if part)
        if mine_value == theirs_value:
            continue
        if isinstance(mine_value, list):
            only_mine = [one for one in mine_value if one not in theirs_value][:3]
            only_theirs = [one for one in theirs_value if one not in mine_value][:3]
            said.append(f"{field}: only here {only_mine}, only there {only_theirs}")
        else:
            said.append(f"{field}: {mine_value!r} here, {theirs_value!r} there")
    return said


@functools.cache
def cuobjdump_program() -> Path | None:
    """The program of the wheel nvidia-cuda-cuobjdump, None where it is not installed."""
    for folder in map(Path, sys.path):
        for found in folder.glob("nvidia/cu*/bin/cuobjdump"):
            return found
        for found in folder.glob("nvidia/cuda_cuobjdump/bin/cuobjdump"):
            return found
    return None


_ENTRY = re.compile(r"^Fatbin (elf|ptx) code:\n=+\narch = (?:sm|compute)_(\d+[af]?)$", re.M)
_LISTED = re.compile(r"\.sm_(\d+[af]?)\.(cubin|ptx)$", re.M)


def _cuobjdump(*arguments: str) -> str:
    program = cuobjdump_program()
    assert program is not None
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, errors="replace").stdout


def code_by_cuobjdump(file: Path) -> Code:
    """Entries by (kind, architecture with suffix), from the headers that cuobjdump prints without options."""
    kinds = {"elf": "sass", "ptx": "ptx"}
    return Counter((kinds[kind], arch) for kind, arch in _ENTRY.findall(_cuobjdump(str(file))))


def code_listed_by_cuobjdump(file: Path) -> Code:
    """The same from ``--list-elf`` and ``--list-ptx``, which name a family's SASS (but not its PTX) without the suffix."""
    found: Code = Counter()
    for option, kind, ending in (("--list-elf", "sass", "cubin"), ("--list-ptx", "ptx", "ptx")):
        for arch, extension in _LISTED.findall(_cuobjdump(option, str(file))):
            assert extension == ending
            found[kind, arch] += 1
    return found


def code_of(code: tuple[DeviceCode, ...], *, family_suffix: bool = True) -> Code:
    """Our entries in the shape of `code_by_cuobjdump`, or of `code_listed_by_cuobjdump` without the family's suffix."""
    found: Code = Counter()
    for one in code:
        suffix = "" if (one.kind, one.suffix) == ("sass", "f") and not family_suffix else one.suffix
        found[one.kind, f"{one.arch}{suffix}"] += one.count
    return found


def shared_objects(folder: Path) -> Iterator[Path]:
    """Files of a folder tree, links left out, that begin like an ELF file and are named like a library."""
    for file in sorted(folder.rglob("*.so*")):
        if file.is_file() and not file.is_symlink():
            with open(file, "rb") as stream:
                if stream.read(4) == b"\x7fELF":
                    yield file

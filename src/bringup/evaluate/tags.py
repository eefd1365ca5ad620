"""Whether wheel tags and extension file names fit an interpreter and a host."""

from __future__ import annotations

import re
from functools import lru_cache

from packaging.tags import Tag, parse_tag

from bringup.facts import Host, Interpreter

_CPYTHON = re.compile(r"cp(\d)(\d+)$")
_PY = re.compile(r"py(\d)(\d*)$")


def fits(text: str, python: Interpreter) -> bool:
    """Whether a tag (``cp310-abi3-manylinux_2_28_x86_64``, compressed sets too) fits the interpreter's version and ABI.

    The platform is not judged. An interpreter or ABI that is not CPython's counts as fitting: nothing is known about it.
    """
    return python.implementation != "cpython" or any(_fits(tag, python) for tag in _tags(text)) or not _tags(text)


def _fits(tag: Tag, python: Interpreter) -> bool:
    own = _own(python)
    pure = _PY.match(tag.interpreter)
    if pure is not None:
        return int(pure.group(1)) == own[0] and (not pure.group(2) or (own[0], int(pure.group(2))) <= own)
    match = _CPYTHON.match(tag.interpreter)
    if match is None:
        return not tag.interpreter.startswith("cp")
    wanted = (int(match.group(1)), int(match.group(2)))
    if tag.abi == "abi3":
        return wanted <= own and not python.free_threaded
    if tag.abi == "none":
        return wanted == own
    return wanted == own and tag.abi.endswith("t") == python.free_threaded


def platform_gap(text: str, host: Host) -> str:
    """Why the platform of a tag does not fit the host, as the end of a clause; '' where it fits or nothing is known.

    A set of platforms (``manylinux_2_17_x86_64.manylinux2014_x86_64``) fits where any of it does.
    """
    reasons = [_platform_gap(tag.platform, host) for tag in _tags(text)]
    return "" if not reasons or "" in reasons else reasons[0]


_LEGACY = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
"""Source: PEP 513, 571, 599."""

_LINUX = re.compile(r"(?:(manylinux1|manylinux2010|manylinux2014)|(many|musl)linux_(\d+)_(\d+)|linux)_(\w+)$")


def _platform_gap(platform: str, host: Host) -> str:
    if platform == "any":
        return ""
    match = _LINUX.match(platform)
    if match is None:
        return f"for another system ({platform})"
    legacy, kind, major, minor, machine = match.groups()
    if machine != host.machine and host.machine:
        return f"for {machine} processors"
    libc, _, version = host.libc.partition(" ")
    if not version or platform.startswith("linux_"):
        return ""
    if (kind == "musl") != (libc == "musl"):
        return f"for {'musl' if kind == 'musl' else 'glibc'}"
    needed = _LEGACY[legacy] if legacy else (int(major), int(minor))
    have = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    return f"for {libc} {needed[0]}.{needed[1]} or later" if have and have < needed else ""


@lru_cache(maxsize=4096)
def _tags(text: str) -> tuple[Tag, ...]:
    return tuple(sorted(parse_tag(text), key=str)) if text.count("-") == 2 else ()


_MODULE = re.compile(r"\.cpython-(\d)(\d+)(t?)-[\w-]+\.so$")


def module_python(file_name: str) -> str:
    """The Python in an extension module's file name: ``3.10``, ``3.13t``; '' for ``.abi3.so`` and plain ``.so``."""
    match = _MODULE.search(file_name)
    return f"{match.group(1)}.{match.group(2)}{match.group(3)}" if match else ""


def own_python(python: Interpreter) -> str:
    """The interpreter in the same notation."""
    return ".".join(str(part) for part in _own(python)) + ("t" if python.free_threaded else "")


def _own(python: Interpreter) -> tuple[int, int]:
    major, minor = [*python.version.split("."), "0"][:2]
    return int(major), int(minor)

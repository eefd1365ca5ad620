"""Whether wheel tags and extension file names fit an interpreter."""

from __future__ import annotations

import re

from bringup.facts import Interpreter

_CPYTHON = re.compile(r"cp(\d)(\d+)$")


def fits(tag: str, python: Interpreter) -> bool:
    """Whether a tag (``cp310-abi3-manylinux_2_28_x86_64``) fits the interpreter's version and ABI. The platform is not judged.

    An interpreter or ABI that is not CPython's counts as fitting: nothing is known about it.
    """
    parts = tag.split("-")
    if len(parts) < 3:
        return True
    version, abi = parts[0], parts[1]
    own = tuple(int(part) for part in python.version.split(".")[:2])
    if version.startswith("py"):
        major = version[2:3]
        return major in ("", "3") and (len(version) <= 3 or (3, int(version[3:] or 0)) <= own)
    match = _CPYTHON.match(version)
    if match is None:
        return not version.startswith("cp")
    wanted = (int(match.group(1)), int(match.group(2)))
    if abi == "abi3":
        return wanted <= own and not python.free_threaded
    if abi == "none":
        return wanted == own
    return wanted == own and abi.endswith("t") == python.free_threaded


_MODULE = re.compile(r"\.cpython-(\d)(\d+)(t?)-[\w-]+\.so$")


def module_python(file_name: str) -> tuple[int, int] | None:
    """The Python version in an extension module's file name; None for ``.abi3.so`` and plain ``.so``."""
    match = _MODULE.search(file_name)
    return (int(match.group(1)), int(match.group(2))) if match else None

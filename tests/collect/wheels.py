"""Wheels made in tests: real zip archives with real libraries of this machine in them, and ways to damage them."""

from __future__ import annotations

import random
import sysconfig
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.utils import canonicalize_name


def real_library() -> bytes:
    """A small shared object that is on every machine with CPython: an extension module of its standard library."""
    folder = Path(sysconfig.get_path("stdlib")) / "lib-dynload"
    smallest = min(folder.glob("*.so"), key=lambda path: path.stat().st_size)
    return smallest.read_bytes()


def make_wheel(
    folder: Path,
    name: str = "demo",
    version: str = "1.0",
    *,
    files: Mapping[str, bytes] = {},
    requires: Iterable[str] = (),
    tag: str = "py3-none-any",
    record: bool = True,
    metadata: bytes | None = None,
    compression: int = zipfile.ZIP_DEFLATED,
) -> Path:
    """Write a wheel and return its path."""
    base = f"{canonicalize_name(name).replace('-', '_')}-{version}"
    path = folder / f"{base}-{tag}.whl"
    info = f"{base}.dist-info"
    headers = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    headers += [f"Requires-Dist: {text}" for text in requires]
    contents = dict(files)
    contents[f"{info}/METADATA"] = metadata if metadata is not None else ("\n".join(headers) + "\n").encode()
    contents[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    if record:
        lines = [f"{one},," for one in contents] + [f"{info}/RECORD,,"]
        contents[f"{info}/RECORD"] = ("\n".join(lines) + "\n").encode()
    with zipfile.ZipFile(path, "w", compression) as archive:
        for member, data in contents.items():
            archive.writestr(member, data)
    return path


def mutate(data: bytes, seed: int) -> bytes:
    """A damaged copy, the same for the same seed: bits flipped, a span cut, repeated, zeroed, or numbers made extreme."""
    chance = random.Random(seed)
    damaged = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        if not damaged:
            break
        # Half of all damage goes to the directory, where a zip archive's structure lies.
        start = 0 if chance.random() < 0.5 else max(0, len(damaged) - 1500)
        position = chance.randrange(start, len(damaged))
        length = min(chance.choice((1, 2, 4, 8, 64, 1024)), len(damaged) - position)
        kind = chance.randrange(6)
        if kind == 0:
            damaged[position] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del damaged[position : position + length]
        elif kind == 2:
            damaged[position:position] = damaged[position : position + length]
        elif kind == 3:
            damaged[position : position + length] = bytes(length)
        elif kind == 4:
            damaged[position : position + length] = b"\xff" * length
        else:
            del damaged[position:]
    return bytes(damaged)

"""What the dynamic loader of this machine knows: ld.so.cache, default folders, libc.

The cache's format is glibc's `sysdeps/generic/dl-cache.h`: the magic ``glibc-ld.so.cache1.1``, a count, then entries of
24 bytes (flags, soname offset, path offset, OS version, hwcap), offsets counted from the magic. An older cache of another
format may stand before it.
"""

from __future__ import annotations

import os
import platform
import struct
from pathlib import Path

from bringup.facts import Host

_MAGIC = b"glibc-ld.so.cache1.1"
_FLAGS = {"x86_64": 0x0303, "aarch64": 0x0A03}  # FLAG_ELF_LIBC6 with the 64-bit ABI of each machine
_HWCAP_EXTENSION = 1 << 62  # glibc-hwcaps subfolders (x86-64-v3): only the plain entries hold on every processor


def parse_loader_cache(data: bytes, machine: str) -> tuple[tuple[str, str], ...]:
    """(soname, path) pairs of one machine class, in the cache's order; empty where the bytes are no such cache."""
    start = data.find(_MAGIC)
    if start < 0:
        return ()
    data = data[start:]
    if len(data) < 48:
        return ()
    count = struct.unpack_from("<I", data, 20)[0]
    count = min(count, (len(data) - 48) // 24)
    wanted = _FLAGS.get(machine)
    found: list[tuple[str, str]] = []
    for position in range(count):
        flags, key, value, _, hwcap = struct.unpack_from("<iIIIQ", data, 48 + 24 * position)
        if flags == wanted and not hwcap:
            soname, path = _string(data, key), _string(data, value)
            if soname and path:
                found.append((soname, path))
    return tuple(found)


def _string(data: bytes, offset: int) -> str:
    end = data.find(b"\0", offset)
    return data[offset:end].decode("utf-8", "replace") if 0 <= offset < len(data) and end >= 0 else ""


def default_folders(machine: str) -> tuple[str, ...]:
    """Where the loader looks last, Debian's multiarch folders included where they exist."""
    candidates = (
        f"/lib/{machine}-linux-gnu",
        f"/usr/lib/{machine}-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    )
    return tuple(folder for folder in candidates if os.path.isdir(folder))  # noqa: PTH112 - start-up: no pathlib objects


def read_host() -> Host:
    """This machine's loader facts. A machine without ld.so.cache (musl) has an empty one."""
    machine = platform.machine()
    try:
        cache = parse_loader_cache(Path("/etc/ld.so.cache").read_bytes(), machine)
    except OSError:
        cache = ()
    return Host(
        machine=machine,
        libc=_libc(),
        loader_cache=cache,
        default_dirs=default_folders(machine),
        kernel=platform.release(),
        os=_os_release(),
    )


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        return ""


def _os_release() -> str:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        try:
            text = Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for line in text.splitlines():
            if line.startswith("PRETTY_NAME="):
                return line.partition("=")[2].strip().strip("\"'")
    return ""

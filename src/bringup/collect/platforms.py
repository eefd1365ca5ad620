"""Platforms as uv names them, and the wheel tags that an installer on them accepts, best first.

Sources: PEP 425, PEP 600 and its aliases (manylinux1, 2010, 2014); uv's list of ``--python-platform`` values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from packaging.tags import compatible_tags, cpython_tags

from bringup.errors import UsageError

LADDER = (17, 28, *range(31, 41))
"""Minor versions of glibc 2 for which uv has a platform, ascending."""
_ALIASES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
_PLATFORM = re.compile(r"(x86_64|aarch64)-(?:manylinux_2_(\d+)|manylinux2014|unknown-linux-gnu|linux)|linux")
_TAG = re.compile(r"manylinux_2_(\d+)_(x86_64|aarch64)")
_DEFAULT_GLIBC = 28


def platform_for(machine: str, libc: str) -> str:
    """The newest platform of uv that a host with this machine and libc (``glibc 2.36``) satisfies."""
    match = re.fullmatch(r"glibc 2\.(\d+).*", libc)
    minor = int(match.group(1)) if match else _DEFAULT_GLIBC
    return f"{machine}-manylinux_2_{max((one for one in LADDER if one <= minor), default=LADDER[0])}"


def next_platforms(platform: str, offered: Sequence[str]) -> str | None:
    """The oldest platform, newer than ``platform``, that takes one of the offered tags. None where no newer glibc helps."""
    machine, minor = _parts(platform)
    for tag in sorted(offered, key=lambda one: [int(part) for part in re.findall(r"\d+", one)]):
        match = _TAG.fullmatch(tag)
        if match and match.group(2) == machine and int(match.group(1)) > minor:
            wanted = next((one for one in LADDER if one >= int(match.group(1))), None)
            if wanted is not None:
                return f"{machine}-manylinux_2_{wanted}"
    return None


def _parts(platform: str) -> tuple[str, int]:
    match = _PLATFORM.fullmatch(platform)
    if match is None:
        raise UsageError(f"{platform!r} is no platform that is known here; x86_64-manylinux_2_28 is one")
    if match.group(2):
        return match.group(1), int(match.group(2))
    return match.group(1) or "x86_64", 17 if "2014" in platform else _DEFAULT_GLIBC


@lru_cache(maxsize=16)
def ranked_tags(python: str, platform: str) -> Mapping[str, int]:
    """Wheel tags (``cp311-abi3-manylinux_2_28_x86_64``) that CPython ``python`` on ``platform`` accepts, 0 the best."""
    machine, minor = _parts(platform)
    major, _, rest = python.partition(".")
    try:
        version = (int(major), int(rest.partition(".")[0]))
    except ValueError:
        raise UsageError(f"{python!r} is no version of Python; 3.11 is one") from None
    platforms = list(_manylinux(machine, minor))
    interpreter = f"cp{version[0]}{version[1]}"
    tags = [
        *cpython_tags(version, abis=[interpreter], platforms=platforms),
        *compatible_tags(version, interpreter, platforms),
    ]
    ranks: dict[str, int] = {}
    for order, tag in enumerate(tags):
        ranks.setdefault(str(tag), order)
    return ranks


def _manylinux(machine: str, minor: int) -> Iterable[str]:
    for one in range(minor, 4, -1):
        yield f"manylinux_2_{one}_{machine}"
        if one in _ALIASES and (machine == "x86_64" or one == 17):
            yield f"{_ALIASES[one]}_{machine}"
    yield f"linux_{machine}"

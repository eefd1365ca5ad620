"""pylock.toml (PEP 751): exact files, and which of them an installer would take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct, ValidationError, convert
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from bringup.collect.platforms import ranked_tags
from bringup.collect.toml import read_toml
from bringup.errors import UnreadableError


class PinnedWheel(Struct, frozen=True):
    """One wheel file, exactly. ``size`` in bytes and ``sha256`` are empty where the index does not tell."""

    name: str
    version: str
    filename: str
    url: str
    sha256: str = ""
    size: int = 0
    upload_time: str = ""


class PinnedSource(Struct, frozen=True):
    """A distribution that has no wheel for this Python and platform: what building it would give is not known."""

    name: str
    version: str
    filename: str


class LockedFile(Struct, frozen=True):
    """A wheel or source distribution in pylock.toml (PEP 751)."""

    url: str = ""
    path: str = ""
    name: str = ""
    size: int = 0
    hashes: dict[str, str] = {}
    upload_time: str = ""

    @property
    def filename(self) -> str:
        return self.name or unquote(urlsplit(self.url or self.path).path).rpartition("/")[2]


class Package(Struct, frozen=True):
    """A package in pylock.toml."""

    name: str
    version: str = ""
    wheels: tuple[LockedFile, ...] = ()
    sdist: LockedFile | None = None
    archive: LockedFile | None = None


def packages_of(data: bytes, subject: str) -> tuple[Package, ...]:
    """The packages of a pylock.toml. Raises UnreadableError where it is none."""
    document = read_toml(data, subject)
    entries: Any = document.get("packages")
    if not isinstance(entries, list):
        raise UnreadableError(subject, "has no packages: no pylock.toml")
    try:
        return tuple(convert(_plain(entry), Package) for entry in entries)
    except ValidationError as error:
        raise UnreadableError(subject, f"is no pylock.toml: {error}") from None


def _plain(entry: Any) -> Any:
    """TOML's dates as text, and names with hyphens as fields."""
    if isinstance(entry, dict):
        return {key.replace("-", "_"): _plain(value) for key, value in entry.items()}
    if isinstance(entry, list):
        return [_plain(value) for value in entry]
    return entry.isoformat() if hasattr(entry, "isoformat") else entry


def choose_files(
    packages: Sequence[Package], python: str, platform: str
) -> tuple[tuple[PinnedWheel, ...], tuple[PinnedSource, ...]]:
    """Of each package's files the one that an installer would take."""
    rank = ranked_tags(python, platform)
    wheels: list[PinnedWheel] = []
    sources: list[PinnedSource] = []
    for package in packages:
        files = [*package.wheels, *([package.archive] if package.archive is not None else [])]
        fitting = [(order, file) for file in files if (order := rank_of(file.filename, rank)) is not None]
        if fitting:
            file = min(fitting, key=lambda one: one[0])[1]
            url = file.url or Path(file.path).absolute().as_uri()
            wheels.append(
                PinnedWheel(
                    canonicalize_name(package.name),
                    package.version,
                    file.filename,
                    url,
                    file.hashes.get("sha256", ""),
                    file.size,
                    file.upload_time,
                )
            )
        else:
            source = package.sdist.filename if package.sdist is not None else ""
            sources.append(PinnedSource(canonicalize_name(package.name), package.version, source))
    return tuple(wheels), tuple(sources)


def rank_of(filename: str, rank: Mapping[str, int]) -> int | None:
    """How well a wheel fits, 0 best; None where it does not, or is no wheel."""
    try:
        _, _, _, tags = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return None
    return min((rank[text] for tag in tags if (text := str(tag)) in rank), default=None)

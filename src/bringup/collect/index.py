"""The package index: which wheels a set of requirements means, without installing any. uv resolves, this reads its answer.

A check must also judge what cannot work. Where declared metadata conflicts, the resolver's own explanation is kept, and the
named requirements are pinned all the same, each with its own dependencies.
"""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct, convert
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from bringup.collect.platforms import next_platforms, ranked_tags
from bringup.collect.remote import LocalFile, RemoteFile, path_of, without_credentials
from bringup.collect.toml import read_toml
from bringup.errors import IndexUnreachableError, UnreadableError, UnresolvableError, UsageError

if TYPE_CHECKING:
    import httpx

_TIME_LIMIT = 600


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


class Resolution(Struct, frozen=True):
    """What an installer would install. ``conflicts``: the resolver's explanation where declared metadata contradicts it."""

    wheels: tuple[PinnedWheel, ...]
    sources: tuple[PinnedSource, ...] = ()
    notes: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    platform: str = ""


class Question(Struct, frozen=True):
    """All that the resolver is asked."""

    requirements: tuple[str, ...]
    python: str
    platform: str
    find_links: tuple[str, ...] = ()
    offline: bool = False
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    prerelease: bool = False
    prerelease_packages: tuple[str, ...] = ()
    index_url: str = ""
    no_deps: bool = False
    only_wheels: bool = True


def resolve(
    requirements: Sequence[str],
    *,
    python: str,
    platform: str,
    find_links: Sequence[Path] = (),
    offline: bool = False,
    constraints: Sequence[str] = (),
    overrides: Sequence[str] = (),
    prerelease: bool = False,
    index_url: str | None = None,
    no_deps: bool = False,
) -> Resolution:
    """Resolve requirements (PEP 508) to wheels. ``python`` as ``3.11``; ``platform`` as uv names it: ``x86_64-manylinux_2_28``.

    What had to be relaxed stands in ``notes`` and ``conflicts``, in this order of trying: a newer manylinux platform, where a
    package has wheels for such only; pre-releases of a package that is required as one; source distributions; the
    declared dependencies of the named requirements upon each other.
    Raises UsageError for what is no requirement, UnresolvableError with uv's explanation where nothing fits, and
    IndexUnreachableError where the index does not answer.
    """
    _check(requirements)
    question = Question(
        requirements=tuple(requirements),
        python=python,
        platform=platform,
        find_links=tuple(str(folder.absolute()) for folder in find_links),
        offline=offline,
        constraints=tuple(constraints),
        overrides=tuple(overrides),
        prerelease=prerelease,
        index_url=index_url if index_url is not None else pip_index_url(os.environ),
        no_deps=no_deps,
    )
    notes: list[str] = []
    try:
        found = _relaxed(question, notes)
        conflicts: tuple[str, ...] = ()
    except UnresolvableError as error:
        if len(requirements) < 2:
            raise
        conflicts = (error.reason,)
        found = _without_conflicts(question, notes, error)
    return Resolution(*_best(found, python), tuple(dict.fromkeys(notes)), conflicts, found.question.platform)


def _check(requirements: Sequence[str]) -> None:
    if not requirements:
        raise UsageError("no requirement is given")
    for text in requirements:
        _parse(text)


def _parse(text: str) -> Requirement:
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"{text!r} is no requirement: {first}") from None


# --- relaxing, one reason at a time ---------------------------------------------------------------------------------------


class _Answer(Struct, frozen=True):
    question: Question
    packages: tuple[_Package, ...]


_PLATFORMS = re.compile(r"Wheels are available for `([^`]+)` \(v?([^)]+)\) on the following platforms?: (.+)")
_PRERELEASE = re.compile(r"`?([A-Za-z0-9][A-Za-z0-9._-]*)`? was requested with a pre-release marker")
_PRERELEASES = re.compile(r"[Pp]re-releases are available for `?([A-Za-z0-9][A-Za-z0-9._-]*)`?")
_NO_WHEELS = re.compile(r"Wheels are required for `([^`]+)`")


def _relaxed(question: Question, notes: list[str]) -> _Answer:
    """Ask, and ask again where the refusal names a reason that does not speak against the stack."""
    said: list[str] = []
    for _ in range(8):
        try:
            answer = _ask(question)
        except UnresolvableError as error:
            relaxed = _relax(question, error.reason, said)
            if relaxed is None or relaxed == question:
                raise
            question = relaxed
            continue
        notes += said
        return answer
    return _ask(question)


def _relax(question: Question, reason: str, said: list[str]) -> Question | None:
    from msgspec.structs import replace

    for match in _PLATFORMS.finditer(reason):
        newer = next_platforms(question.platform, re.findall(r"`([^`]+)`", match.group(3)))
        if newer is not None:
            said.append(
                f"{match.group(1)} {match.group(2)} has wheels for {newer} and not for {question.platform}: "
                f"resolved for {newer}, whose systems have a newer glibc"
            )
            return replace(question, platform=newer)
    names = {canonicalize_name(one) for one in (*_PRERELEASE.findall(reason), *_PRERELEASES.findall(reason))}
    new = tuple(sorted(names - set(question.prerelease_packages)))
    if new and not question.prerelease:
        said.append(f"pre-releases are allowed for {', '.join(new)}, which is required as one")
        return replace(question, prerelease_packages=(*question.prerelease_packages, *new))
    missing = _NO_WHEELS.search(reason)
    if missing is not None and question.only_wheels:
        # What is taken as a source in the end is said there, by name.
        return replace(question, only_wheels=False)
    return None


def _without_conflicts(question: Question, notes: list[str], error: UnresolvableError) -> _Answer:
    """Pin what was named, whatever the named ones declare about each other; if that is not enough, one after the other."""
    from msgspec.structs import replace

    named = tuple(text for text in question.requirements if Requirement(text).specifier)
    overrides = _merged(question.overrides, named)
    try:
        answer = _relaxed(replace(question, overrides=overrides), notes)
    except UnresolvableError:
        pass
    else:
        notes.append("the requirements contradict each other by their metadata; each was taken as it was named")
        return answer
    pins: dict[str, _Package] = {}
    for text in question.requirements:
        fixed = tuple(f"{one.name}=={one.version}" for one in pins.values())
        try:
            answer = _relaxed(replace(question, requirements=(text,), overrides=_merged(fixed, overrides)), notes)
        except UnresolvableError as alone:
            raise UnresolvableError(error.subject, f"{alone.reason}\n\nand before that: {error.reason}") from None
        question = replace(
            question, platform=answer.question.platform, prerelease_packages=answer.question.prerelease_packages
        )
        for package in answer.packages:
            pins.setdefault(package.name, package)
    notes.append(
        "the requirements contradict each other by their metadata; each was taken as it was named, and what several "
        "of them depend on as the first of them wants it"
    )
    return _Answer(question, tuple(pins[name] for name in sorted(pins)))


def _merged(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    """Overrides, those of ``second`` before those of ``first`` where both speak of one distribution."""
    by_name = {canonicalize_name(Requirement(text).name): text for text in (*first, *second)}
    return tuple(by_name.values())


# --- uv -------------------------------------------------------------------------------------------------------------------


class _File(Struct, frozen=True):
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


class _Package(Struct, frozen=True):
    """A package in pylock.toml."""

    name: str
    version: str = ""
    wheels: tuple[_File, ...] = ()
    sdist: _File | None = None
    archive: _File | None = None


def _ask(question: Question) -> _Answer:
    with tempfile.TemporaryDirectory(prefix="bringup-") as folder:
        command = _command(question, Path(folder))
        environ = {**os.environ, "NO_COLOR": "1", "UV_NO_PROGRESS": "1"}
        try:
            done = subprocess.run(
                command,
                input="\n".join(question.requirements) + "\n",
                capture_output=True,
                text=True,
                timeout=_TIME_LIMIT,
                env=environ,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise IndexUnreachableError("uv", f"did not resolve within {_TIME_LIMIT} seconds") from None
        except OSError as error:
            raise UnreadableError(command[0], f"uv cannot be started: {error.strerror}") from None
    if done.returncode:
        reason = explanation(done.stderr)
        subject = " ".join(question.requirements)
        if "No solution found" in done.stderr:
            raise UnresolvableError(subject, reason)
        if _UNREACHABLE.search(done.stderr):
            raise IndexUnreachableError("package index", reason)
        raise UnresolvableError(subject, reason)
    return _Answer(question, packages_of(done.stdout.encode(), "uv's answer"))


_UNREACHABLE = re.compile(
    r"Failed to fetch|error sending request|Request failed|client error|connection refused|network connectivity|dns error",
    re.I,
)


def _command(question: Question, folder: Path) -> list[str]:
    command = [uv_binary(), "pip", "compile", "-", "--format", "pylock.toml"]
    command += ["--python", sys.executable, "--python-version", question.python]
    command += ["--python-platform", question.platform, "--no-header", "--no-python-downloads"]
    if question.only_wheels:
        command += ["--only-binary", ":all:"]
    for option, lines in (("--constraints", question.constraints), ("--overrides", question.overrides)):
        if lines:
            file = folder / f"{option.strip('-')}.txt"
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            command += [option, str(file)]
    for link in question.find_links:
        command += ["--find-links", link]
    if question.offline:
        command += ["--offline", "--no-index"] if question.find_links else ["--offline"]
    if question.index_url:
        command += ["--default-index", question.index_url]
    if question.prerelease:
        command += ["--prerelease", "allow"]
    for name in question.prerelease_packages:
        command += ["--prerelease-package", f"{name}=allow"]
    if question.no_deps:
        command.append("--no-deps")
    return command


def uv_binary() -> str:
    """uv's own binary, from its package. Raises UnreadableError where it is not there."""
    import uv

    try:
        return uv.find_uv_bin()
    except FileNotFoundError as error:
        raise UnreadableError("uv", f"its binary is missing: {error}") from None


_FRAME = re.compile(r"^[\s│×╰─▶├]*", re.M)


def explanation(stderr: str) -> str:
    """uv's explanation as plain text: no frame, no continuation columns, one sentence a line, hints last."""
    lines: list[str] = []
    for line in stderr.replace("\x1b", "").splitlines():
        text = _FRAME.sub("", line).strip()
        if not text or re.match(r"(?:Resolved \d|Prepared \d|warning:)", text):
            continue
        text = re.sub(r"^(?:error|cause|Caused by):\s*", "", text)
        starts = text.startswith(("Because ", "And because ", "hint: ", "No solution"))
        if lines and not starts:
            lines[-1] += f" {text}"
        else:
            lines.append(text)
    if len(lines) > 1 and lines[0].startswith("No solution found"):
        del lines[0]
    return "\n".join(without_secrets(line) for line in lines) or "uv gives no reason"


def without_secrets(text: str) -> str:
    """A text whose URLs have lost their credentials."""
    return re.sub(r"\bhttps?://[^\s`'\")]+", lambda match: without_credentials(match.group()), text)


def pip_index_url(environ: Mapping[str, str]) -> str:
    """The index that pip is configured for, where uv is not: uv reads its own settings, and none of pip's. '' for none."""
    if any(environ.get(name) for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX")):
        return ""
    if environ.get("PIP_INDEX_URL"):
        return environ["PIP_INDEX_URL"]
    home = environ.get("HOME", "")
    files = [
        environ.get("PIP_CONFIG_FILE", ""),
        f"{home}/.config/pip/pip.conf",
        f"{home}/.pip/pip.conf",
        "/etc/pip.conf",
    ]
    for file in files:
        parser = configparser.RawConfigParser()
        try:
            if file and parser.read(file, encoding="utf-8") and parser.has_option("global", "index-url"):
                return parser.get("global", "index-url")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # pip itself will complain of it
    return ""


# --- the lock file ----------------------------------------------------------------------------------------------------------


def packages_of(data: bytes, subject: str) -> tuple[_Package, ...]:
    """The packages of a pylock.toml. Raises UnreadableError where it is none."""
    from msgspec import ValidationError

    document = read_toml(data, subject)
    entries: Any = document.get("packages")
    if not isinstance(entries, list):
        raise UnreadableError(subject, "has no packages: no pylock.toml")
    try:
        return tuple(convert(_plain(entry), _Package) for entry in entries)
    except ValidationError as error:
        raise UnreadableError(subject, f"is no pylock.toml: {error}") from None


def _plain(entry: Any) -> Any:
    """TOML's dates as text, and names with hyphens as fields."""
    if isinstance(entry, dict):
        return {key.replace("-", "_"): _plain(value) for key, value in entry.items()}
    if isinstance(entry, list):
        return [_plain(value) for value in entry]
    return entry.isoformat() if hasattr(entry, "isoformat") else entry


def _best(answer: _Answer, python: str) -> tuple[tuple[PinnedWheel, ...], tuple[PinnedSource, ...]]:
    return choose_files(answer.packages, python, answer.question.platform)


def choose_files(
    packages: Sequence[_Package], python: str, platform: str
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


def open_wheel(pinned: PinnedWheel, client: Callable[[], httpx.Client]) -> LocalFile | RemoteFile:
    """The wheel's file, to be read at offsets; close it. Raises UnreadableError or IndexUnreachableError."""
    local = path_of(pinned.url)
    return LocalFile(local) if local is not None else RemoteFile(pinned.url, client(), size=pinned.size)

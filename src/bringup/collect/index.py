"""The package index: which wheels a set of requirements means, without installing any. uv resolves, this reads its answer.

A check must also judge what cannot work. Where declared metadata conflicts, the resolver's own explanation is kept, and the
named requirements are pinned all the same, each with its own dependencies.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bringup.collect.platforms import next_platforms
from bringup.collect.pylock import Package, PinnedSource, choose_files
from bringup.collect.pylock import PinnedWheel as PinnedWheel
from bringup.collect.pylock import rank_of as rank_of
from bringup.collect.remote import LocalFile, RemoteFile, path_of
from bringup.collect.resolver import Answer, Question, ask, pip_index_url
from bringup.errors import UnresolvableError, UsageError

if TYPE_CHECKING:
    import httpx


class Resolution(Struct, frozen=True):
    """What an installer would install. ``conflicts``: the resolver's explanation where declared metadata contradicts it."""

    wheels: tuple[PinnedWheel, ...]
    sources: tuple[PinnedSource, ...] = ()
    notes: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    platform: str = ""


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
    notes += _prereleases(found)
    return Resolution(
        *choose_files(found.packages, python, found.question.platform),
        tuple(dict.fromkeys(notes)),
        conflicts,
        found.question.platform,
    )


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


_PLATFORMS = re.compile(r"Wheels are available for `([^`]+)` \(v?([^)]+)\) on the following platforms?: (.+)")
_PRERELEASE = re.compile(r"was requested with a pre-release marker")
_NO_WHEELS = re.compile(r"Wheels are required for `([^`]+)`")


NEVER = "sys_platform == 'never'"
"""A marker that no platform meets: as an override, it leaves a package out wherever it is required."""


def _relaxed(question: Question, notes: list[str]) -> Answer:
    """Ask, and ask again where the refusal names a reason that does not speak against the stack."""
    said: list[str] = []
    for _ in range(16):
        try:
            answer = ask(question)
        except UnresolvableError as error:
            relaxed = _relax(question, error.reason, said)
            if relaxed is None or relaxed == question:
                raise
            question = relaxed
            continue
        notes += said
        return answer
    return ask(question)


def _relax(question: Question, reason: str, said: list[str]) -> Question | None:
    for match in _PLATFORMS.finditer(reason):
        newer = next_platforms(question.platform, re.findall(r"`([^`]+)`", match.group(3)))
        if newer is not None:
            said.append(
                f"{match.group(1)} {match.group(2)} has wheels for {newer} and not for {question.platform}: "
                f"resolved for {newer}, whose systems have a newer glibc"
            )
            return replace(question, platform=newer)
    if _PRERELEASE.search(reason) and not question.prerelease:
        return replace(question, prerelease=True)
    missing = _NO_WHEELS.search(reason)
    if missing is not None:
        # Resolving with its sources would run its build, which nobody asked for: it is left out instead, and that is said.
        name = missing.group(1)
        said.append(
            f"{name} has no usable wheel: left out, since building it would run its code; nothing is known of it"
        )
        return replace(question, overrides=_merged(question.overrides, (f"{name} ; {NEVER}",)))
    return None


def _without_conflicts(question: Question, notes: list[str], error: UnresolvableError) -> Answer:
    """Pin what was named, whatever the named ones declare about each other; if that is not enough, one after the other."""
    parsed = [(text, Requirement(text)) for text in question.requirements]
    named = tuple(text for text, one in parsed if one.specifier or one.url)
    overrides = _merged(question.overrides, named)
    try:
        answer = _relaxed(replace(question, overrides=overrides), notes)
    except UnresolvableError:
        pass
    else:
        notes.append("the requirements contradict each other by their metadata; each was taken as it was named")
        return answer
    pins: dict[str, Package] = {}
    for text in question.requirements:
        fixed = tuple(f"{one.name}=={one.version}" for one in pins.values())
        try:
            answer = _relaxed(replace(question, requirements=(text,), overrides=_merged(fixed, overrides)), notes)
        except UnresolvableError as alone:
            raise UnresolvableError(error.subject, f"{alone.reason}\n\nand before that: {error.reason}") from None
        question = replace(question, platform=answer.question.platform, prerelease=answer.question.prerelease)
        for package in answer.packages:
            pins.setdefault(package.name, package)
    notes.append(
        "the requirements contradict each other by their metadata; each was taken as it was named, and what several "
        "of them depend on as the first of them wants it"
    )
    return Answer(question, tuple(pins[name] for name in sorted(pins)))


def _prereleases(answer: Answer) -> Iterator[str]:
    """A note for each pre-release among the pins that nobody named."""
    named = {canonicalize_name(Requirement(text).name) for text in answer.question.requirements}
    for package in answer.packages:
        try:
            early = Version(package.version).is_prerelease
        except InvalidVersion:
            continue
        if early and canonicalize_name(package.name) not in named:
            yield f"{package.name} {package.version} is a pre-release, which the requirements ask for"


def _merged(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    """Overrides, those of ``second`` before those of ``first`` where both speak of one distribution."""
    by_name = {canonicalize_name(Requirement(text).name): text for text in (*first, *second)}
    return tuple(by_name.values())


def open_wheel(pinned: PinnedWheel, client: Callable[[], httpx.Client]) -> LocalFile | RemoteFile:
    """The wheel's file, to be read at offsets; close it. Raises UnreadableError or IndexUnreachableError."""
    local = path_of(pinned.url)
    return LocalFile(local) if local is not None else RemoteFile(pinned.url, client(), size=pinned.size)

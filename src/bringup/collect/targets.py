"""What a TARGET on the command line means: a pure parse, and one look at the folder that it names.

Nothing is read here beyond what tells the kinds apart; `bringup.pipeline` reads the target.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from bringup.errors import UnreadableError, UsageError

TargetKind = Literal["active", "environment", "wheels", "wheel_folder", "requirements", "facts", "elsewhere"]

RequirementsFormat = Literal["requirements", "pylock", "uv_lock", "pyproject", "dockerfile"]


class RequirementsFile(Struct, frozen=True):
    """A file that names what shall be installed, by absolute path, and how it is written."""

    path: str
    format: RequirementsFormat


class Target(Struct, frozen=True, kw_only=True):
    """What a command is about.

    ``environment``: ``path`` is an environment, a prefix or a site-packages folder. ``wheels``: ``wheels`` are judged as
    if they were installed together. ``wheel_folder``: ``path`` holds wheels. ``requirements``: ``requirements`` as written,
    with ``files`` and ``wheels``, all of them resolved together. ``facts``: ``path`` is a facts file. ``elsewhere``:
    ``place`` is the address without its query, ``environment`` the path in its ``?env=``. Paths are absolute.
    """

    kind: TargetKind
    label: str
    """As the user wrote it: what the report calls the target."""
    path: str = ""
    requirements: tuple[str, ...] = ()
    files: tuple[RequirementsFile, ...] = ()
    wheels: tuple[str, ...] = ()
    place: str = ""
    environment: str = ""


class ReadOptions(Struct, frozen=True, kw_only=True):
    """How a target is read. ``python`` as in ``3.11``, '' for the target's own; ``find_links`` are folders or URLs."""

    python: str = ""
    find_links: tuple[str, ...] = ()
    offline: bool = False
    index_url: str = ""


PLACES = ("ssh", "docker", "kubectl")
"""Schemes of places elsewhere."""

_FILES: tuple[tuple[str, RequirementsFormat], ...] = (
    (r"pylock(\.[^/]+)?\.toml", "pylock"),
    (r"uv\.lock", "uv_lock"),
    (r"pyproject\.toml", "pyproject"),
    (r"(?i:(Dockerfile|Containerfile)(\..+)?|.+\.(dockerfile|containerfile))", "dockerfile"),
    (r".+\.(txt|in)", "requirements"),
)
"""File names that hold requirements, first match wins. pylock: PEP 751; uv.lock: uv's own format."""


def parse_targets(arguments: Sequence[str]) -> Target:
    """The one target that the arguments name together: several are requirements, files of them, and wheels.

    Raises UsageError for what is no target or does not go together, UnreadableError for a path that does not exist.
    """
    if not arguments:
        return Target(kind="active", label="the active environment")
    for argument in arguments:
        if any("\ud800" <= char <= "\udfff" for char in argument):
            readable = os.fsencode(argument).decode("utf-8", "backslashreplace")
            raise UsageError(f"{readable}: is not UTF-8, in which reports and facts files are written")
    targets = [_parse(argument) for argument in arguments]
    if len(targets) == 1:
        return targets[0]
    label = " ".join(arguments)
    alone = next((one for one in targets if one.kind not in ("requirements", "wheels")), None)
    if alone is not None:
        raise UsageError(
            f"{alone.label} is a target of its own and cannot be judged together with others; only requirements, "
            "requirements files and wheels can"
        )
    wheels = tuple(path for one in targets for path in one.wheels)
    if all(one.kind == "wheels" for one in targets):
        return Target(kind="wheels", label=label, wheels=wheels)
    return Target(
        kind="requirements",
        label=label,
        requirements=tuple(text for one in targets for text in one.requirements),
        files=tuple(file for one in targets for file in one.files),
        wheels=wheels,
    )


def _parse(argument: str) -> Target:
    if not argument.strip():
        raise UsageError("a target is empty; leave it out for the active environment")
    scheme = argument.partition("://")[0] if "://" in argument else ""
    if scheme in PLACES:
        return _elsewhere(argument)
    if _looks_like_path(argument):
        return _path(argument)
    reason = _why_no_requirement(argument)
    if reason:
        if Path(argument).exists():
            return _path(argument)
        raise UsageError(f"{argument}: is neither a path that exists nor a requirement: {reason}")
    if re.fullmatch(r"[\w.-]+", argument) and _is_environment_or_wheels(Path(argument)):
        return _path(argument)  # a bare name is a requirement, unless it names an environment or wheels right here
    return Target(kind="requirements", label=argument, requirements=(argument,))


def _looks_like_path(argument: str) -> bool:
    if re.match(r"[\w.\[\],-]+\s*@\s*\S", argument):
        return False  # a direct reference: name @ https://...
    if argument.startswith((".", "/", "~")):
        return True
    name = argument.rpartition("/")[2]
    return name.endswith((".whl", ".json")) or any(re.fullmatch(pattern, name) for pattern, _ in _FILES)


def _why_no_requirement(argument: str) -> str:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        Requirement(argument)
    except InvalidRequirement as error:
        return str(error).splitlines()[0]
    return ""


def _is_environment_or_wheels(path: Path) -> bool:
    return path.is_dir() and ((path / "pyvenv.cfg").exists() or (path / "conda-meta").is_dir() or _holds_wheels(path))


def _holds_wheels(folder: Path) -> bool:
    try:
        return any(entry.name.endswith(".whl") for entry in os.scandir(folder))
    except OSError as error:
        raise UnreadableError(str(folder), error.strerror or str(error)) from None


def _path(argument: str) -> Target:
    expanded = os.path.expanduser(argument)  # noqa: PTH111 - keeps a ~ that names no user as it is
    path = os.path.abspath(expanded)  # noqa: PTH100 - symlinks stay as the user has them
    try:
        os.stat(path)  # noqa: PTH116
    except (OSError, ValueError) as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else getattr(error, "strerror", None)
        raise UnreadableError(argument, reason or str(error)) from None
    if Path(path).is_dir():
        kind: TargetKind = "wheel_folder" if _holds_wheels(Path(path)) else "environment"
        return Target(kind=kind, label=argument, path=path)
    if not Path(path).is_file():
        raise UnreadableError(argument, "is neither a folder nor a regular file")
    name = path.rpartition("/")[2]
    if name.endswith(".whl"):
        return Target(kind="wheels", label=argument, wheels=(path,))
    if name.endswith(".json"):
        return Target(kind="facts", label=argument, path=path)
    for pattern, form in _FILES:
        if re.fullmatch(pattern, name):
            return Target(kind="requirements", label=argument, files=(RequirementsFile(path, form),))
    raise UsageError(
        f"{argument}: is no target; expected an environment, a site-packages folder, a wheel, a folder of wheels, a "
        "requirements.txt, pylock.toml, uv.lock, pyproject.toml, Dockerfile, or a facts file (.json)"
    )


def _elsewhere(argument: str) -> Target:
    try:
        parts = urlsplit(argument)
    except ValueError as error:
        raise UsageError(f"{argument}: is no address: {error}") from None
    if not parts.netloc:
        raise UsageError(f"{argument}: names no host; write {parts.scheme}://NAME")
    query = parse_qs(parts.query, keep_blank_values=True)
    unknown = sorted(set(query) - {"env"})
    if unknown:
        raise UsageError(f"{argument}: does not know the option {unknown[0]}; only ?env=PATH is one")
    environment = query.get("env", [""])[-1]
    return Target(
        kind="elsewhere",
        label=argument,
        place=f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}",
        environment=environment,
    )

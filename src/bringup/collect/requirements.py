"""Requirements out of files: requirements.txt, pylock.toml, uv.lock, and the install lines of a Dockerfile.

Each requirement keeps the file and line that it stands on. What cannot be followed (a variable that nobody sets, a local
project) is a note, never silently left out.

Formats: pip's requirements file format; PEP 508; PEP 751 (pylock.toml); uv's lock file, version 1; Dockerfile reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from packaging.requirements import InvalidRequirement, Requirement

from bringup.collect.toml import read_toml
from bringup.errors import UnreadableError

_MOST_FILES = 100
_MOST_BYTES = 32 << 20


class Requested(Struct, frozen=True):
    """One requirement (PEP 508) with the place where it stands, ``requirements.txt:3``."""

    text: str
    source: str


class RequirementsFile(Struct, frozen=True):
    """All that a file asks for, its included files with it."""

    requirements: tuple[Requested, ...] = ()
    constraints: tuple[Requested, ...] = ()
    index_url: str = ""
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    prerelease: bool = False
    no_deps: bool = False
    """The file is a lock: it names everything that is to be installed."""
    notes: tuple[str, ...] = ()


def read_requirements(path: str | Path) -> tuple[str, ...]:
    """The requirements of a file, as PEP 508 texts. See `read_requirements_file`, which tells more."""
    return tuple(one.text for one in read_requirements_file(Path(path)).requirements)


def read_requirements_file(path: Path) -> RequirementsFile:
    """Read a file by its name: ``*.toml`` and ``uv.lock`` as locks, ``*Dockerfile*`` as one, anything else as requirements.

    Raises UnreadableError, naming file and line, where it cannot be read or a line is no requirement.
    """
    found = _Found()
    name = path.name.lower()
    if name == "uv.lock":
        _read_uv_lock(path, found)
    elif name.endswith(".toml"):
        _read_pylock(path, found)
    elif "dockerfile" in name or "containerfile" in name:
        _read_dockerfile(path, found)
    else:
        _read_text(path, found, constraint=False)
    return RequirementsFile(
        requirements=tuple(found.requirements),
        constraints=tuple(found.constraints),
        index_url=found.index_url,
        extra_index_urls=tuple(dict.fromkeys(found.extra_index_urls)),
        find_links=tuple(dict.fromkeys(found.find_links)),
        prerelease=found.prerelease,
        no_deps=found.no_deps,
        notes=tuple(found.notes),
    )


class _Found:
    def __init__(self) -> None:
        self.requirements: list[Requested] = []
        self.constraints: list[Requested] = []
        self.extra_index_urls: list[str] = []
        self.find_links: list[str] = []
        self.notes: list[str] = []
        self.index_url = ""
        self.prerelease = False
        self.no_deps = False
        self.files: set[Path] = set()

    def add(self, text: str, source: str, *, constraint: bool = False) -> None:
        try:
            Requirement(text)
        except InvalidRequirement as error:
            raise UnreadableError(source, f"{text!r} is no requirement: {str(error).splitlines()[0]}") from None
        (self.constraints if constraint else self.requirements).append(Requested(text, source))


def _read(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UnreadableError(str(path), error.strerror or str(error)) from None
    if len(data) > _MOST_BYTES:
        raise UnreadableError(str(path), f"is larger than {_MOST_BYTES >> 20} MB, which no list of requirements is")
    return data


def _text(path: Path) -> str:
    data = _read(path)
    if b"\0" in data:
        raise UnreadableError(str(path), "holds binary data instead of text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(str(path), f"is not UTF-8 at byte {error.start}") from None


# --- requirements.txt -------------------------------------------------------------------------------------------------------

_COMMENT = re.compile(r"(?:^|\s+)#.*$")
_HASH = re.compile(r"\s+--hash(?:=|\s+)\S+")
_PER_REQUIREMENT = re.compile(
    r"\s+--(?:global-option|config-settings|install-option|config-setting)(?:=|\s+)(?:\"[^\"]*\"|\S+)"
)
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_OPTION = re.compile(r"(-[A-Za-z]|--[a-z][a-z-]*)(?:\s*=\s*|\s+)?(.*)", re.S)
_FLAGS = frozenset({"--no-index", "--require-hashes", "--prefer-binary", "--pre", "--no-deps"})


def _read_text(path: Path, found: _Found, *, constraint: bool) -> None:
    path = path.absolute()
    key = path.resolve()
    if key in found.files:
        return  # included twice, or in a circle
    if len(found.files) >= _MOST_FILES:
        raise UnreadableError(str(path), f"more than {_MOST_FILES} files include each other")
    found.files.add(key)
    for line, text in _logical_lines(_text(path)):
        source = f"{path}:{line}"
        if text.startswith("-"):
            _option(text, path, source, found, constraint)
            continue
        _requirement(text, path.parent, source, found, constraint)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their number, continuations joined, comments and blank ones left out."""
    pending, start = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        start = start or number
        # As pip does it: a comment line ends a continuation, and a backslash inside of a comment continues nothing.
        line = _COMMENT.sub("", raw) if not pending or raw.lstrip().startswith("#") else raw
        if line.endswith("\\") and not raw.lstrip().startswith("#"):
            pending += line[:-1] + " "
            continue
        whole = _COMMENT.sub("", pending + line).strip()
        if whole:
            yield start, whole
        pending, start = "", 0
    if pending.strip():
        yield start, pending.strip()


def _option(text: str, path: Path, source: str, found: _Found, constraint: bool) -> None:
    match = _OPTION.fullmatch(text)
    name, value = (match.group(1), match.group(2).strip().strip("\"'")) if match else (text, "")
    if name in ("-r", "--requirement", "-c", "--constraint"):
        if "://" in value:
            found.notes.append(f"{source}: {value} lies elsewhere and is not fetched")
            return
        try:
            _read_text(path.parent / value, found, constraint=constraint or name in ("-c", "--constraint"))
        except UnreadableError as error:
            if error.subject == str((path.parent / value).absolute()):
                raise UnreadableError(source, f"includes {value}: {error.reason}") from None
            raise
    elif name in ("-i", "--index-url"):
        found.index_url = value
    elif name == "--extra-index-url":
        found.extra_index_urls.append(value)
    elif name in ("-f", "--find-links"):
        found.find_links.append(value if "://" in value else str(path.parent / value))
    elif name == "--pre":
        found.prerelease = True
    elif name in ("-e", "--editable"):
        found.notes.append(f"{source}: {value} is a project to be built; what it would bring is not known")
    elif name not in _FLAGS and name not in ("--trusted-host", "--only-binary", "--no-binary", "--use-feature"):
        found.notes.append(f"{source}: {name} is not followed")


def _requirement(text: str, folder: Path, source: str, found: _Found, constraint: bool) -> None:
    text = _PER_REQUIREMENT.sub("", _HASH.sub("", text)).strip()
    if _VARIABLE.search(text):
        found.notes.append(f"{source}: {text} depends on a variable of the environment and is left out")
        return
    local = text.partition(";")[0].strip()
    if local.endswith(".whl") and "@" not in local:
        url = local if "://" in local else (folder / local).absolute().as_uri()
        name = urlsplit(url).path.rpartition("/")[2].partition("-")[0]
        text = f"{name} @ {url}{text[len(local) :].replace(';', ' ;', 1)}"
    elif local.startswith((".", "/")) or "://" in local.partition("@")[0] or local.endswith((".tar.gz", ".zip")):
        found.notes.append(f"{source}: {local} is a project to be built; what it would bring is not known")
        return
    found.add(text, source, constraint=constraint)


# --- locks ------------------------------------------------------------------------------------------------------------------


def _entries(path: Path, table: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The entries of an array of tables, each with the line of its header."""
    text = _text(path)
    document = read_toml(text.encode(), str(path))
    entries = document.get(table)
    if not isinstance(entries, list):
        raise UnreadableError(str(path), f"has no [[{table}]]: no lock file")
    header = re.compile(rf"^[ \t]*\[\[[ \t]*{table}[ \t]*\]\]", re.M)
    lines = [text.count("\n", 0, match.start()) + 1 for match in header.finditer(text)]
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise UnreadableError(str(path), f"entry {index + 1} of {table} has no name")
        yield lines[index] if index < len(lines) else 1, entry


def _read_pylock(path: Path, found: _Found) -> None:
    found.no_deps = True
    for line, entry in _entries(path, "packages"):
        source = f"{path}:{line}"
        if entry.get("directory") or entry.get("vcs"):
            found.notes.append(f"{source}: {entry['name']} is a project to be built; what it would bring is not known")
            continue
        marker = entry.get("marker")
        version = entry.get("version")
        archive = entry.get("archive")
        if isinstance(archive, dict) and str(archive.get("url", archive.get("path", ""))):
            place = str(archive.get("url") or (path.parent / str(archive.get("path"))).absolute().as_uri())
            text = f"{entry['name']} @ {place}"
        else:
            text = f"{entry['name']}=={version}" if version else entry["name"]
        found.add(f"{text} ; {marker}" if marker else text, source)


def _read_uv_lock(path: Path, found: _Found) -> None:
    found.no_deps = True
    for line, entry in _entries(path, "package"):
        source = f"{path}:{line}"
        origin = entry.get("source", {})
        if not isinstance(origin, dict) or not origin.get("registry"):
            if not (isinstance(origin, dict) and (origin.get("virtual") or origin.get("editable"))):
                found.notes.append(f"{source}: {entry['name']} comes from no index and is left out")
            continue  # the project itself
        text = f"{entry['name']}=={entry.get('version', '')}"
        markers = entry.get("resolution-markers")
        if isinstance(markers, list) and markers:
            text += " ; " + " or ".join(f"({marker})" for marker in markers)
        found.add(text, source)


# --- Dockerfile -------------------------------------------------------------------------------------------------------------

_INSTALL = re.compile(r"(?:^|\s)(?:(?:\S*/)?pip[\d.]*|-m\s+pip|uv\s+pip|uv)\s+(?:install|add)(?=\s|$)")
_VALUED = frozenset(
    {
        "-t", "--target", "--prefix", "--root", "--timeout", "--retries", "--trusted-host", "--proxy", "--cert",
        "--client-cert", "--cache-dir", "--python", "-p", "--index-strategy", "--only-binary", "--no-binary", "--platform",
        "--python-version", "--abi", "--implementation", "--upgrade-strategy", "--progress-bar", "--log", "--src",
        "--torch-backend", "--index", "--default-index", "--prerelease", "--link-mode", "--config-settings", "--resolution",
        "--exclude-newer", "--override", "--overrides", "--build-constraint", "--extra", "--group", "--keyring-provider",
        "--python-platform", "--no-build-isolation-package", "--no-build-package", "--reinstall-package", "--exists-action",
        "-P", "--upgrade-package",
    }
)  # fmt: skip
_REDIRECTION = re.compile(r"\d*(?:>>?|<)(.*)")
_REFERENCE = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")


def _read_dockerfile(path: Path, found: _Found) -> None:
    values: dict[str, str] = {}
    for line, instruction, rest in _instructions(_text(path)):
        if instruction in ("ARG", "ENV"):
            _define(rest, values)
        elif instruction == "RUN":
            for command in _commands(rest):
                match = _INSTALL.search(command)
                if match:
                    _install_line(command[match.end() :], path, f"{path}:{line}", values, found)


def _instructions(text: str) -> Iterator[tuple[int, str, str]]:
    """Instructions with the line that they start on; continuation lines and here-documents joined."""
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        start = index
        whole = lines[index].strip()
        index += 1
        if not whole or whole.startswith("#"):
            continue
        while whole.endswith("\\") and index < len(lines):
            following = lines[index].strip()
            index += 1
            if not following.startswith("#"):  # comments and blank lines do not end a continuation
                whole = f"{whole[:-1]} {following}" if following else whole
        instruction, _, rest = whole.partition(" ")
        document = re.search(r"<<-?\s*[\"']?(\w+)[\"']?", rest)
        if instruction.upper() == "RUN" and document:
            body = []
            while index < len(lines) and lines[index].strip() != document.group(1):
                body.append(lines[index].strip())
                index += 1
            index += 1
            rest = re.sub(r"\\\n", " ", "\n".join(body))
        yield start + 1, instruction.upper(), rest


def _define(rest: str, values: dict[str, str]) -> None:
    words = _words(rest)
    if len(words) >= 2 and "=" not in words[0]:
        words = [f"{words[0]}={' '.join(words[1:])}"]  # the old form: ENV name value
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            values[name] = _REFERENCE.sub(lambda match: _value(match, values) or "", value)


def _value(match: re.Match[str], values: dict[str, str]) -> str | None:
    name = match.group(1) or match.group(3)
    return values.get(name, match.group(2))


def _words(text: str) -> list[str]:
    import shlex

    try:
        return shlex.split(text, comments=False)
    except ValueError:  # a quote that is not closed
        return text.split()


def _commands(text: str) -> list[str]:
    """A shell line at its operators, those inside of quotes left alone; and the words of the exec form as one command."""
    if text.lstrip().startswith("["):
        return [" ".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))]
    commands, current, quote = [], "", ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in ";&|\n":
            commands.append(current)
            current = ""
            continue
        current += char
    return [*commands, current]


def _install_line(text: str, path: Path, source: str, values: dict[str, str], found: _Found) -> None:
    words = iter(_words(text))
    for word in words:
        unknown = [m.group() for m in _REFERENCE.finditer(word) if _value(m, values) is None]
        if unknown:
            found.notes.append(
                f"{source}: {word} depends on {', '.join(unknown)}, which the file does not set; left out"
            )
            continue
        plain = _REFERENCE.sub(lambda match: _value(match, values) or "", word)
        if plain.startswith("-"):
            name, equals, value = plain.partition("=")
            if name in _VALUED:
                if not equals:
                    next(words, None)
            elif name in ("-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f",
                          "--find-links", "-e", "--editable"):  # fmt: skip
                argument = value if equals else next(words, "")
                _dockerfile_option(name, argument, path, source, found)
            elif name == "--pre":
                found.prerelease = True
        elif redirection := _REDIRECTION.fullmatch(plain):
            if not redirection.group(1):
                next(words, None)
        elif plain and plain not in (".", "pip", "setuptools", "wheel"):
            try:
                _requirement(plain, path.parent, source, found, constraint=False)
            except UnreadableError as error:
                found.notes.append(str(error))  # shell words are a guess at what is installed


def _dockerfile_option(name: str, argument: str, path: Path, source: str, found: _Found) -> None:
    """An option with a value. Files are paths inside of the image: looked for beside the Dockerfile, else a note."""
    if name in ("-r", "--requirement", "-c", "--constraint"):
        candidates = [path.parent / argument.lstrip("/"), path.parent / Path(argument).name]
        file = next((one for one in candidates if one.is_file()), None)
        if file is None:
            found.notes.append(f"{source}: {argument} is not beside the Dockerfile and is left out")
        else:
            _read_text(file, found, constraint=name in ("-c", "--constraint"))
        return
    _option(f"{name} {argument}", path, source, found, constraint=False)

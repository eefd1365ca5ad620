"""uv as the resolver: one question, one answer, its refusal in plain words. Nothing is installed."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from bringup.collect.pylock import Package, packages_of
from bringup.collect.remote import without_credentials
from bringup.errors import IndexUnreachableError, UnreadableError, UnresolvableError

_TIME_LIMIT = 600


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
    index_url: str = ""
    no_deps: bool = False


class Answer(Struct, frozen=True):
    question: Question
    packages: tuple[Package, ...]


def ask(question: Question) -> Answer:
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
    return Answer(question, packages_of(done.stdout.encode(), "uv's answer"))


_UNREACHABLE = re.compile(
    r"Failed to fetch|error sending request|Request failed|client error|connection refused|network connectivity|dns error",
    re.I,
)


def _command(question: Question, folder: Path) -> list[str]:
    command = [uv_binary(), "pip", "compile", "-", "--format", "pylock.toml"]
    command += ["--python", sys.executable, "--python-version", question.python]
    command += ["--python-platform", question.platform, "--no-header", "--no-python-downloads"]
    command += ["--only-binary", ":all:"]  # a source would be built, which runs its code
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

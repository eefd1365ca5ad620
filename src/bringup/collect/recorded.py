"""A facts file, written and read: any later step can run elsewhere, offline, with the same verdict."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec

from bringup.errors import UnreadableError
from bringup.facts import SCHEMA, Facts


class MalformedFactsError(UnreadableError):
    """A facts file that is no JSON, is damaged, or has another schema than this release reads."""


class _Head(msgspec.Struct):
    schema: str = ""


def encode_facts(facts: Facts) -> bytes:
    """The bytes of a facts file: JSON, one line."""
    return msgspec.json.encode(facts) + b"\n"


def decode_facts(data: bytes, name: str) -> Facts:
    """Facts from the bytes of a facts file. Raises MalformedFactsError, which names ``name``."""
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFactsError(name, f"is no facts file: {error}") from None
    if head.schema != SCHEMA:
        if head.schema.startswith("bringup.facts/"):
            reason = f"has the schema {head.schema}, this release reads {SCHEMA}; write it again with this release"
        else:
            reason = f'is no facts file: it has no "schema": "{SCHEMA}"'
        raise MalformedFactsError(name, reason)
    try:
        return msgspec.json.decode(data, type=Facts)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFactsError(name, f"is a damaged facts file: {error}") from None


def read_facts(path: Path) -> Facts:
    """Read a facts file. Raises UnreadableError where it cannot be read, MalformedFactsError where it makes no sense."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableError(str(path), error.strerror or str(error)) from None
    return decode_facts(data, str(path))


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it is either whole or as it was before. Raises UnreadableError where that is impossible.

    A path that is no regular file (``/dev/stdout``, a named pipe) is written to directly.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        target = Path(os.path.realpath(path))
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(mode)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UnreadableError(str(path), f"cannot be written: {error.strerror or error}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

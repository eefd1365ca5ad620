"""TOML, by the standard library, or before Python 3.11 by the package that it was taken from."""

from __future__ import annotations

import sys
from typing import Any

from bringup.errors import UnreadableError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]


def read_toml(data: bytes, subject: str) -> dict[str, Any]:
    """The document. Raises UnreadableError, naming ``subject``, where it is no TOML."""
    try:
        document: dict[str, Any] = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UnreadableError(subject, f"is no TOML: {error}") from None
    return document

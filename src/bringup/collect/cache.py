"""What was read once, by the stamp of what it was read from: flat files below the user's cache folder.

A cache is never an error: where it cannot be read or written, everything is read again. Entries are written whole and renamed,
so that processes side by side never see half of one. The folder is ``$BRINGUP_CACHE_DIR``, else ``$XDG_CACHE_HOME/bringup``,
else ``~/.cache/bringup``; ``BRINGUP_NO_CACHE=1`` does without.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bringup.collect.parallel import Beside

SCHEMA = 3
"""Raised whenever the encoding or the meaning of what is stored changes: older entries are then passed over."""

LIMIT = 2 << 30
"""Bytes that all entries together may take. The ones that were used least recently go first."""

Kind = TypeVar("Kind", bound="Cache")

_MAGIC = b"bringup-cache\n"


class Cache:
    """Blobs by key. ``folder`` None: nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    @classmethod
    def open(cls: type[Kind]) -> Kind:
        """The user's cache."""
        if os.environ.get("BRINGUP_NO_CACHE", "") not in ("", "0"):
            return cls(None)
        named = os.environ.get("BRINGUP_CACHE_DIR")
        if named:
            return cls(Path(named))
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - may stay "~"
        return cls(Path(base) / "bringup") if not base.startswith("~") else cls(None)

    def get(self, key: str) -> bytes | None:
        """The blob of that key; None where there is none, or where it is damaged."""
        if self.folder is None:
            return None
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        head = _head(key, max(0, len(data) - len(_head(key, 0))))
        if not data.startswith(head):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # used now: the least recently used go first
        return data[len(head) :]

    def put(self, key: str, blob: bytes) -> bool:
        """Keep a blob. False where that is not possible."""
        if self.folder is None:
            return False
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
                file.write(_head(key, len(blob)))
                file.write(blob)
            os.replace(file.name, path)  # noqa: PTH105
        except OSError:
            with contextlib.suppress(OSError, UnboundLocalError):
                os.unlink(file.name)  # noqa: PTH108
            return False
        self._evict()
        return True

    def later(self, store: Callable[[], bool]) -> None:
        """Do what puts blobs here: at once, or beside what follows (`CacheBeside`)."""
        store()

    def _path(self, key: str) -> Path:
        assert self.folder is not None, "callers have asked"
        name = hashlib.sha256(f"{SCHEMA}:{key}".encode()).hexdigest()[:40]
        return self.folder / f"facts-{SCHEMA}" / name

    def _evict(self) -> None:
        assert self.folder is not None, "callers have asked"
        entries: list[tuple[float, int, str]] = []
        try:
            with os.scandir(self.folder / f"facts-{SCHEMA}") as found:
                for entry in found:
                    status = entry.stat()
                    entries.append((status.st_mtime, status.st_size, entry.path))
        except OSError:
            return
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= LIMIT:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108
                total -= size


class CacheBeside(Cache):
    """A cache whose `later` has another process write; `settle` waits for it."""

    def __init__(self, folder: Path | None) -> None:
        super().__init__(folder)
        self._writing: list[Beside[bool]] = []

    def later(self, store: Callable[[], bool]) -> None:
        """See `Cache.later`."""
        if self.folder is not None:
            self._writing.append(Beside(store, bool))

    def settle(self) -> None:
        """Wait until everything is kept."""
        while self._writing:
            self._writing.pop().result()


def _head(key: str, size: int) -> bytes:
    """What stands before a blob: the key, against two keys of one name, and the length, against a file cut short."""
    return _MAGIC + hashlib.sha256(key.encode()).digest() + size.to_bytes(8, "little")

"""What has been done, in SQLite next to the output.

The journal is the only truth: a line is done when its row is committed, and the output counts up to the size that the same
transaction recorded. A kill between writing and committing leaves bytes behind that size; they are cut off at the next start
and the lines are asked again. The rows are committed only after the output's bytes are on disk, so a power failure cannot leave
a row without its answer either.

One thread uses a journal at a time. It holds SQLite's exclusive lock as long as it is open, which the system drops when the
process ends, however it ends.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

from bringup.errors import BringupError, UnreadableError

FORMAT = "bringup.batch/1"
UNSENDABLE = ("bad_line", "duplicate_custom_id")
"""Codes of lines that no endpoint ever sees."""

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS blocks (number INTEGER PRIMARY KEY, first INTEGER NOT NULL, lines INTEGER NOT NULL, digest BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS names (digest BLOB PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (seq INTEGER PRIMARY KEY, position INTEGER NOT NULL, length INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, latency_us INTEGER NOT NULL, attempts INTEGER NOT NULL,
    finished_ms INTEGER NOT NULL, endpoint INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS errors (seq INTEGER PRIMARY KEY, custom_id TEXT NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL,
    status INTEGER NOT NULL, body TEXT NOT NULL, attempts INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (number INTEGER PRIMARY KEY, began_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL);
"""


class AnswerRow(Struct, frozen=True, array_like=True):
    """A line that is done: where its answer lies in the output, and what it took. Times as named, tokens as the engine counted."""

    seq: int
    position: int
    length: int
    prompt_tokens: int
    completion_tokens: int
    latency_us: int
    attempts: int
    finished_ms: int
    endpoint: int


class ErrorRow(Struct, frozen=True, array_like=True):
    """A line that has no answer. ``body`` is what the engine said, '' for nothing."""

    seq: int
    custom_id: str
    code: str
    message: str
    status: int = 0
    body: str = ""
    attempts: int = 0


class InputChangedError(BringupError):
    """The input is not the one that the journal was begun with."""


class OutputInUseError(BringupError):
    """Another process writes the same output."""


class Journal:
    """The journal of one output. Raises OutputInUseError, UnreadableError, InputChangedError (other settings)."""

    def __init__(self, path: Path, settings: Sequence[tuple[str, str]] = ()) -> None:
        self.path = path
        try:
            self._db = sqlite3.connect(path, timeout=0.2, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("PRAGMA cache_size=-16384")
            self._db.execute("BEGIN EXCLUSIVE")
            self._db.executescript(_TABLES)  # commits; the lock stays, as the locking mode says
            self._db.execute("BEGIN")
            self._keep_settings((("format", FORMAT), *settings))
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise OutputInUseError(f"{path}: another process is working on this output") from error
            raise UnreadableError(str(path), str(error)) from error
        except sqlite3.DatabaseError as error:
            raise UnreadableError(str(path), f"is not a journal of bringup: {error}") from error

    def _keep_settings(self, settings: Iterable[tuple[str, str]]) -> None:
        known = dict(self._db.execute("SELECT name, value FROM meta"))
        for name, value in settings:
            if name not in known:
                self._db.execute("INSERT INTO meta VALUES (?, ?)", (name, value))
            elif known[name] != value:
                self._db.execute("ROLLBACK")
                raise InputChangedError(
                    f"{self.path}: was begun with {name} {known[name] or 'unset'!r}, now it is {value or 'unset'!r}; "
                    "use the same, another output, or --fresh to begin again"
                )

    # --- reading ------------------------------------------------------------------------------------------------------

    def meta(self, name: str, default: str = "") -> str:
        """A value that was kept under a name."""
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else default

    def rows(self, query: str, values: Sequence[int | str] = ()) -> sqlite3.Cursor:
        """Read with a query of the summary's own."""
        return self._db.execute(query, values)

    def number(self, query: str, values: Sequence[int | str] = ()) -> int:
        """The one whole number that a query gives, 0 for NULL."""
        row = self._db.execute(query, values).fetchone()
        return int(row[0] or 0) if row else 0

    def done(self, first: int, count: int) -> set[int]:
        """Which of the lines from ``first`` on are done, with an answer or with an error."""
        span = (first, first + count)
        found = {seq for (seq,) in self._db.execute("SELECT seq FROM answers WHERE seq >= ? AND seq < ?", span)}
        found.update(seq for (seq,) in self._db.execute("SELECT seq FROM errors WHERE seq >= ? AND seq < ?", span))
        return found

    # --- writing: everything between begin() and commit() is kept whole or not at all --------------------------------

    def begin(self) -> None:
        """Open a transaction if none is open."""
        if not self._db.in_transaction:
            self._db.execute("BEGIN")

    def commit(self) -> None:
        """Keep what was written since begin()."""
        if self._db.in_transaction:
            self._db.execute("COMMIT")

    def rollback(self) -> None:
        """Forget what was written since begin()."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def set_meta(self, name: str, value: str) -> None:
        """Keep a value under a name."""
        self._db.execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value)
        )

    def known_block(self, number: int, first: int, lines: int, digest: bytes, source: str) -> bool:
        """Whether an earlier run has read this block. Raises InputChangedError where it read something else."""
        row = self._db.execute("SELECT first, lines, digest FROM blocks WHERE number = ?", (number,)).fetchone()
        if row is None:
            return False
        if tuple(row) != (first, lines, digest):
            raise InputChangedError(
                f"{source}: lines {row[0]} to {row[0] + row[1] - 1} are not those that this output was begun with; "
                "give the same input, another output, or --fresh to begin again"
            )
        return True

    def add_block(self, number: int, first: int, lines: int, digest: bytes) -> None:
        """Remember a block that was read."""
        self._db.execute("INSERT INTO blocks VALUES (?, ?, ?, ?)", (number, first, lines, digest))

    def add_names(self, names: Sequence[tuple[str, int]]) -> dict[int, int]:
        """Remember (custom_id, line) pairs. Returns line -> earlier line of the same custom_id."""
        rows = [(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=12).digest(), seq) for name, seq in names]
        before = self._db.total_changes
        self._db.executemany("INSERT OR IGNORE INTO names VALUES (?, ?)", rows)
        if self._db.total_changes - before == len(rows):
            return {}
        earlier: dict[int, int] = {}
        for digest, seq in rows:
            first = self.number("SELECT seq FROM names WHERE digest = ?", (digest,))  # type: ignore[arg-type]
            if first != seq:
                earlier[seq] = first
        return earlier

    def add_answers(self, rows: Sequence[tuple[int, ...]]) -> None:
        """Remember answers; each as an AnswerRow's fields."""
        self._db.executemany("INSERT INTO answers VALUES (?,?,?,?,?,?,?,?,?)", rows)

    def add_errors(self, rows: Sequence[ErrorRow]) -> None:
        """Remember lines that have no answer."""
        self._db.executemany(
            "INSERT INTO errors VALUES (?,?,?,?,?,?,?)",
            [(r.seq, _utf8(r.custom_id), r.code, _utf8(r.message), r.status, _utf8(r.body), r.attempts) for r in rows],
        )

    def count(self, counts: dict[str, int]) -> None:
        """Add to the counters."""
        self._db.executemany(
            "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET n = n + excluded.n",
            list(counts.items()),
        )

    def start_run(self, now_ms: int) -> int:
        """Remember that a run began; returns its number."""
        self._db.execute("INSERT INTO runs (began_ms, ended_ms) VALUES (?, ?)", (now_ms, now_ms))
        return self.number("SELECT max(number) FROM runs")

    def keep_run(self, number: int, now_ms: int) -> None:
        """Remember until when a run was seen at work."""
        self._db.execute("UPDATE runs SET ended_ms = ? WHERE number = ?", (now_ms, number))

    def forget_after(self, size: int) -> int:
        """Forget answers whose bytes are not in an output of ``size`` bytes; returns how many."""
        return self._db.execute("DELETE FROM answers WHERE position + length > ?", (size,)).rowcount

    def forget_errors(self) -> int:
        """Forget the errors of requests that were sent, so that they are sent again; returns how many."""
        return self._db.execute(
            f"DELETE FROM errors WHERE code NOT IN ({', '.join('?' * len(UNSENDABLE))})", UNSENDABLE
        ).rowcount

    def sort_positions(self) -> None:
        """The output has been sorted by line: say so of every answer."""
        self._db.execute(
            "UPDATE answers SET position = sorted.position FROM "
            "(SELECT seq, SUM(length) OVER (ORDER BY seq) - length AS position FROM answers) AS sorted WHERE sorted.seq = answers.seq"
        )

    def close(self) -> None:
        """Close; what was not committed is forgotten."""
        self._db.close()


def _utf8(text: str) -> str:
    """SQLite keeps UTF-8, which has no lone surrogates."""
    return text.encode("utf-8", "replace").decode()

"""Answers to disk: bytes first, then the journal's commit. One thread, everything that may block.

A disk that is full stops nothing but the sending: what is in memory is kept and written again later.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path
from typing import NamedTuple

from bringup.errors import UnreadableError
from bringup.submit.journal import ErrorRow, Journal
from bringup.submit.lines import BadLine, Defaults, Request, parse_line
from bringup.submit.source import Block

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class NoSpace(Exception):
    """The disk took nothing. Everything that was to be kept is still in memory."""


class Done:
    """A line with its answer, on the way to disk. ``row`` are AnswerRow's fields after ``position`` and ``length``."""

    __slots__ = ("row", "seq", "text")

    def __init__(self, seq: int, text: bytes, row: tuple[int, ...]) -> None:
        self.seq = seq
        self.text = text
        self.row = row


class _Registered(NamedTuple):
    """What was written about a block since the last commit, to be written again where that was undone."""

    number: int
    first: int
    lines: int
    digest: bytes
    names: list[tuple[str, int]]
    bad: list[ErrorRow]


class Writer:
    """The output as it grows, with its journal. Every method runs in the one thread that owns both."""

    def __init__(self, journal: Journal, path: Path, source: str) -> None:
        self.journal = journal
        self.path = path
        self._source = source
        self.size = int(journal.meta("size", "0"))
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            actual = os.fstat(self._file).st_size
            self.lost = 0
            if actual < self.size:
                journal.begin()
                self.lost = journal.forget_after(actual)
                self.size = journal.number("SELECT max(position + length) FROM answers")
                journal.set_meta("size", str(self.size))
                journal.commit()
            os.ftruncate(self._file, self.size)
        except OSError as error:
            raise UnreadableError(str(path), error.strerror or str(error)) from error
        self.bad_lines = 0
        """Lines of newly read blocks that cannot be sent."""
        self._uncommitted: list[_Registered] = []
        self._forgotten = False

    def prepare(self, block: Block, defaults: Defaults) -> tuple[list[Request], int]:
        """The requests of a block that are still to be sent, and how many of its lines were done before.

        What is learned about the block is written with the next `keep`. Raises InputChangedError, NoSpace.
        """
        count = len(block.lines)
        known = self.journal.known_block(block.index, block.first, count, block.digest, self._source)
        done = self.journal.done(block.first, count) if known else set()
        if len(done) == count:
            return [], count
        requests: list[Request] = []
        bad: list[ErrorRow] = []
        for seq, line in enumerate(block.lines, block.first):
            if seq in done or (line is not None and not line.strip()):
                continue
            parsed = BadLine(seq, "", "is too long") if line is None else parse_line(seq, line, defaults)
            if isinstance(parsed, Request):
                requests.append(parsed)
            else:
                bad.append(ErrorRow(seq, parsed.custom_id, "bad_line", f"line {seq} {parsed.reason}"))
        if not known:
            requests = self._register(block, requests, bad)
        return requests, len(done)

    def _register(self, block: Block, requests: list[Request], bad: list[ErrorRow]) -> list[Request]:
        try:
            self._begin()
            earlier = self.journal.add_names([(one.custom_id, one.seq) for one in requests])
            for one in requests:
                if one.seq in earlier:
                    text = f"line {one.seq} has the custom_id of line {earlier[one.seq]}"
                    bad.append(ErrorRow(one.seq, one.custom_id, "duplicate_custom_id", text))
            self.journal.add_block(block.index, block.first, len(block.lines), block.digest)
            self.journal.add_errors(bad)
        except sqlite3.OperationalError as error:
            self._rollback()
            raise NoSpace(str(error)) from error
        names = [(one.custom_id, one.seq) for one in requests if one.seq not in earlier]
        self._uncommitted.append(_Registered(block.index, block.first, len(block.lines), block.digest, names, bad))
        self.bad_lines += len(bad)
        return [one for one in requests if one.seq not in earlier] if earlier else requests

    def _begin(self) -> None:
        """Begin where nothing is open; after a rollback, say again what was registered and is now forgotten."""
        self.journal.begin()
        if self._forgotten:
            for one in self._uncommitted:
                self.journal.add_names(one.names)
                self.journal.add_block(one.number, one.first, one.lines, one.digest)
                self.journal.add_errors(one.bad)
            self._forgotten = False

    def _rollback(self) -> None:
        self.journal.rollback()
        self._forgotten = True

    def keep(self, done: list[Done], errors: list[ErrorRow], counts: dict[str, int], run: int, now_ms: int) -> None:
        """Write answers and commit. Raises NoSpace, after which nothing of it is kept and all of it may be given again."""
        rows: list[tuple[int, ...]] = []
        position = self.size
        for one in done:
            rows.append((one.seq, position, len(one.text), *one.row))
            position += len(one.text)
        try:
            if done:
                self._append(b"".join([one.text for one in done]))
                os.fdatasync(self._file)
            self._begin()
            self.journal.add_answers(rows)
            self.journal.add_errors(errors)
            self.journal.count(counts)
            self.journal.set_meta("size", str(position))
            self.journal.keep_run(run, now_ms)
            self.journal.commit()
        except (OSError, sqlite3.OperationalError) as error:
            self._rollback()
            if isinstance(error, OSError) and error.errno not in NO_SPACE:
                raise UnreadableError(str(self.path), error.strerror or str(error)) from error
            os.ftruncate(self._file, self.size)
            raise NoSpace(str(error)) from error
        self.size = position
        self._uncommitted.clear()

    def _append(self, data: bytes) -> None:
        view = memoryview(data)
        position = self.size
        while view:
            written = os.pwrite(self._file, view, position)
            view = view[written:]
            position += written

    def close(self) -> None:
        """Close output and journal."""
        os.close(self._file)
        self.journal.close()

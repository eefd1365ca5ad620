"""The output's files, from ``OUT.partial`` to ``OUT``, such that a kill at any point leaves something that the next start settles.

While the batch runs, answers grow in ``OUT.partial`` as they come. When every line is done, ``OUT`` appears at once, whole: sorted
into the order of the input, or as it grew. The journal's ``state`` changes to ``finished`` between writing the sorted copy and
renaming it, and `settle` does what was left to do.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from bringup.errors import UnreadableError, UsageError
from bringup.submit.journal import Journal

WRITE_BYTES = 8 << 20


class Paths(Struct, frozen=True):
    """Where everything of one output lies, side by side."""

    out: Path
    partial: Path
    sorted: Path
    errors: Path
    journal: Path

    def all(self) -> tuple[Path, ...]:
        """Every file that may exist."""
        journal = str(self.journal)
        return (
            self.out,
            self.partial,
            self.sorted,
            self.errors,
            self.journal,
            Path(f"{journal}-wal"),
            Path(f"{journal}-shm"),
        )


def paths(out: Path, errors: Path | None = None) -> Paths:
    """The files of an output. Raises UsageError for a name that would promise a format that is not written."""
    if out.suffix in (".gz", ".gzip", ".zst", ".zstd", ".parquet"):
        raise UsageError(f"{out}: the output is plain JSON lines, choose a name without {out.suffix}")
    if not out.parent.is_dir():
        raise UnreadableError(str(out.parent), "is not a folder")
    if out.is_dir():
        raise UnreadableError(str(out), "is a folder")
    return Paths(
        out=out,
        partial=out.with_name(f"{out.name}.partial"),
        sorted=out.with_name(f"{out.name}.sorted"),
        errors=errors or out.with_name(f"{out.stem}.errors{out.suffix}"),
        journal=out.with_name(f"{out.name}.journal"),
    )


def settle(journal: Journal, files: Paths) -> bool:
    """Finish the renames of a run that was killed among them. Returns whether the output is finished."""
    if journal.meta("state") != "finished":
        return False
    if files.sorted.exists():
        # The sorted copy was whole before the journal said so; the other file must go first, or it would be taken for the output.
        files.partial.unlink(missing_ok=True)
        files.sorted.replace(files.out)
    elif files.partial.exists():
        files.partial.replace(files.out)
    if not files.out.exists():
        raise UnreadableError(
            str(files.out), f"is gone, while {files.journal.name} says that it is finished; use --fresh to begin again"
        )
    return True


def reopen(journal: Journal, files: Paths) -> None:
    """Make a finished output an unfinished one again."""
    files.out.replace(files.partial)
    journal.begin()
    if journal.meta("order") == "input":
        journal.sort_positions()
    journal.set_meta("state", "")
    journal.commit()


def finish(journal: Journal, files: Paths) -> None:
    """Every line is done: let the output appear. Raises OSError where the disk takes no sorted copy."""
    if journal.meta("order") == "input" and not _is_sorted(journal):
        try:
            _write_sorted(journal, files)
        except OSError:
            files.sorted.unlink(missing_ok=True)
            raise
    else:
        files.sorted.unlink(missing_ok=True)
    journal.begin()
    journal.set_meta("state", "finished")
    journal.commit()
    settle(journal, files)
    _sync_folder(files.out.parent)


def _is_sorted(journal: Journal) -> bool:
    query = "SELECT count(*) FROM (SELECT position, lag(position) OVER (ORDER BY seq) AS before FROM answers) WHERE position < before"
    return journal.number(query) == 0


def _write_sorted(journal: Journal, files: Paths) -> None:
    with files.partial.open("rb") as source, files.sorted.open("wb") as target:
        if os.fstat(source.fileno()).st_size:
            with mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as data:
                held: list[bytes] = []
                size = 0
                for position, length in journal.rows("SELECT position, length FROM answers ORDER BY seq"):
                    held.append(data[position : position + length])
                    size += length
                    if size >= WRITE_BYTES:
                        target.write(b"".join(held))
                        held.clear()
                        size = 0
                        # What was copied needs no room in memory any more: the answers came nearly in this order.
                        with suppress(AttributeError, OSError, ValueError):
                            data.madvise(mmap.MADV_DONTNEED)
                target.write(b"".join(held))
        target.flush()
        os.fsync(target.fileno())


def write_errors(journal: Journal, files: Paths) -> int:
    """Write the errors file, in the order of the input; none where there are no errors. Returns how many there are."""
    total = journal.number("SELECT count(*) FROM errors")
    if not total:
        files.errors.unlink(missing_ok=True)
        return 0
    temporary = files.errors.with_name(f"{files.errors.name}.new")
    with temporary.open("wb") as target:
        for seq, name, code, message, status, body, attempts in journal.rows("SELECT * FROM errors ORDER BY seq"):
            response = {"status_code": status, "request_id": "", "body": _json_or_text(body)} if status else None
            line = {
                "id": f"bringup-{seq}",
                "custom_id": name,
                "response": response,
                "error": {"code": code, "message": message},
                "line": seq,
                "attempts": attempts,
            }
            target.write(msgspec.json.encode(line) + b"\n")
        target.flush()
        os.fsync(target.fileno())
    temporary.replace(files.errors)
    return total


def _json_or_text(body: str) -> object:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

"""Look at every line before any of them is sent: constant memory, no network."""

from __future__ import annotations

import sqlite3
import tempfile
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

from bringup.submit.lines import BadLine, Defaults, parse_line
from bringup.submit.source import Source

SHOWN = 1000
"""So many problems are kept for the report; all are counted."""


class Validation(Struct, frozen=True):
    """What was found. ``problems`` are sentences that begin with the line's number."""

    lines: int
    good: int
    bad: int
    duplicates: int
    problems: tuple[str, ...]
    per_path: tuple[tuple[str, int], ...]
    body_bytes: int


def validate(source: Source, defaults: Defaults) -> Validation:
    """Read the whole input. Raises UnreadableError."""
    lines = good = bad = duplicates = size = 0
    problems: list[str] = []
    per_path: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="bringup-validate-") as folder:
        # Names in a file: a hundred million of them would not fit into memory.
        names = sqlite3.connect(Path(folder) / "names", isolation_level=None)
        names.execute("PRAGMA journal_mode=OFF")
        names.execute("PRAGMA synchronous=OFF")
        names.execute("CREATE TABLE names (digest BLOB PRIMARY KEY, seq INTEGER) WITHOUT ROWID")
        names.execute("BEGIN")
        for block in source.blocks():
            for seq, line in enumerate(block.lines, block.first):
                if line is not None and not line.strip():
                    continue
                lines += 1
                parsed = BadLine(seq, "", "is too long") if line is None else parse_line(seq, line, defaults)
                if isinstance(parsed, BadLine):
                    bad += 1
                    if len(problems) < SHOWN:
                        problems.append(f"line {seq} {parsed.reason}")
                    continue
                digest = blake2b(parsed.custom_id.encode("utf-8", "surrogatepass"), digest_size=12).digest()
                if not names.execute("INSERT OR IGNORE INTO names VALUES (?, ?)", (digest, seq)).rowcount:
                    duplicates += 1
                    if len(problems) < SHOWN:
                        first = names.execute("SELECT seq FROM names WHERE digest = ?", (digest,)).fetchone()[0]
                        problems.append(f"line {seq} has the custom_id of line {first}: {parsed.custom_id!r}")
                    continue
                good += 1
                per_path[parsed.path] = per_path.get(parsed.path, 0) + 1
                size += len(parsed.body)
        names.close()
    return Validation(lines, good, bad, duplicates, tuple(problems), tuple(sorted(per_path.items())), size)

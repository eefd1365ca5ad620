"""The input, in blocks of lines: one pass, constant memory.

A block ends after `BLOCK_LINES` lines or `BLOCK_BYTES` bytes, whichever comes first, so that the same input always falls into the
same blocks: the journal keeps a digest of each, and notices when an input is no longer the one that it began with.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from bringup.errors import UnreadableError, UsageError

BLOCK_LINES = 256
BLOCK_BYTES = 4 << 20
MAX_LINE = 64 << 20
"""Bytes; a longer line is reported and skipped, not held."""


class Block(Struct, frozen=True):
    """Lines ``first`` to ``first + len(lines) - 1``; a line that was too long is None."""

    index: int
    first: int
    lines: tuple[bytes | None, ...]
    digest: bytes


class Source:
    """An input that is read once. ``fraction`` tells how much of it has been read, None where its size is not known."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._raw: IO[bytes] | None = None
        self._size = 0
        self._rows: tuple[int, int] | None = None

    @property
    def fraction(self) -> float | None:
        """0 to 1; compressed bytes where the input is compressed."""
        if self._rows is not None:
            return self._rows[0] / max(self._rows[1], 1)
        if self._raw is None or not self._size:
            return None
        try:
            return min(1.0, self._raw.tell() / self._size)
        except (OSError, ValueError):
            return None

    def blocks(self) -> Iterator[Block]:
        """Every block in order. Raises UnreadableError where the input cannot be read or decompressed."""
        try:
            yield from _blocks(self._rows_of_parquet() if self.name.endswith(".parquet") else self._lines())
        except (OSError, EOFError) as error:
            raise UnreadableError(self.name, getattr(error, "strerror", None) or str(error)) from error

    def _open(self) -> IO[bytes]:
        if self.name == "-":
            return sys.stdin.buffer
        if "://" in self.name:
            try:
                import fsspec  # type: ignore[import-untyped,import-not-found,unused-ignore]
            except ImportError as error:
                raise UsageError(f"{self.name} needs fsspec: install bringup[remote]") from error
            opened: IO[bytes] = fsspec.open(self.name, "rb").open()
            return opened
        file = Path(self.name).open("rb")  # noqa: SIM115
        self._size = os.fstat(file.fileno()).st_size
        return file

    def _lines(self) -> Iterator[bytes | None]:
        raw = self._open()
        self._raw = raw
        with raw:
            yield from _limited(self._decompressed(raw))

    def _decompressed(self, raw: IO[bytes]) -> IO[bytes]:
        if self.name.endswith((".gz", ".gzip")):
            import gzip

            return io.BufferedReader(gzip.GzipFile(fileobj=raw), 1 << 18)
        if self.name.endswith((".zst", ".zstd")):
            try:
                import zstandard  # type: ignore[import-not-found,unused-ignore]
            except ImportError as error:
                raise UsageError(f"{self.name} needs zstandard: install bringup[zstd]") from error
            try:
                reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
            except zstandard.ZstdError as error:
                raise UnreadableError(self.name, str(error)) from error
            return io.BufferedReader(_ZstdErrors(reader, zstandard.ZstdError), 1 << 18)
        return raw

    def _rows_of_parquet(self) -> Iterator[bytes | None]:
        try:
            import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
            import pyarrow.parquet as parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError as error:
            raise UsageError(f"{self.name} needs pyarrow: install bringup[parquet]") from error
        import msgspec

        with self._open() as raw:
            try:
                table = parquet.ParquetFile(raw)
                total = table.metadata.num_rows
                done = 0
                for batch in table.iter_batches(batch_size=BLOCK_LINES):
                    for row in batch.to_pylist():
                        done += 1
                        self._rows = (done, total)
                        yield msgspec.json.encode(_without_nulls(row)) + b"\n"
            except pyarrow.ArrowException as error:
                raise UnreadableError(self.name, str(error)) from error


class _ZstdErrors(io.RawIOBase):
    """A decompressor as a raw stream: its own kind of error becomes OSError."""

    def __init__(self, reader: Any, error: type[Exception]) -> None:
        self._reader = reader
        self._error = error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return int(self._reader.readinto(buffer))
        except self._error as error:
            raise OSError(str(error)) from error


def _without_nulls(value: Any) -> Any:
    """Columns that a row does not use are null in Parquet; sending them as null would not mean the same."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _limited(stream: IO[bytes]) -> Iterator[bytes | None]:
    while line := stream.readline(MAX_LINE):
        if len(line) == MAX_LINE and not line.endswith(b"\n"):
            while (rest := stream.readline(1 << 20)) and not rest.endswith(b"\n"):
                pass
            yield None
        else:
            yield line


def _blocks(lines: Iterator[bytes | None]) -> Iterator[Block]:
    held: list[bytes | None] = []
    size = index = 0
    first = 1
    digest = hashlib.blake2b(digest_size=16)
    for line in lines:
        held.append(line)
        size += len(line or b"")
        # Whether the last line ends in a newline does not matter.
        digest.update((line or b"too long").rstrip(b"\r\n"))
        digest.update(b"\n")
        if len(held) >= BLOCK_LINES or size >= BLOCK_BYTES:
            yield Block(index, first, tuple(held), digest.digest())
            first += len(held)
            index += 1
            held = []
            size = 0
            digest = hashlib.blake2b(digest_size=16)
    if held:
        yield Block(index, first, tuple(held), digest.digest())

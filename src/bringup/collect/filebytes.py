"""A file's bytes, read where they are asked for.

Reading by position instead of mapping: hopping over the headers of a 500 MB library by page faults takes two to four times as
long, counts every touched page's neighbours as memory of the process, and kills the process by SIGBUS where the file is
truncated meanwhile. A short read here is an ordinary error.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Protocol

_FIRST_BLOCK, _LARGEST_BLOCK = 4096, 1 << 20


class Buffer(Protocol):
    """Bytes that can be measured and sliced: ``bytes``, ``mmap``, ``memoryview`` or `FileBytes`."""

    def __len__(self) -> int: ...
    def __getitem__(self, where: slice, /) -> bytes | memoryview: ...


class FileBytes:
    """An open file as a `Buffer`. Slices are shorter than asked for where the file ends, or was truncated since.

    Raises OSError where the file cannot be opened or is no regular file.
    """

    def __init__(self, file: Path) -> None:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        self._descriptor = os.open(file, flags)
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._descriptor)
            code = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
            raise OSError(code, "is a directory" if code == errno.EISDIR else "is no regular file", str(file))
        self._size = status.st_size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, where: slice, /) -> bytes:
        start, stop, _ = where.indices(self._size)
        if stop <= start:
            return b""
        data = os.pread(self._descriptor, stop - start, start)
        while len(data) < stop - start:  # a signal, or more than 2 GB
            more = os.pread(self._descriptor, stop - start - len(data), start + len(data))
            if not more:
                break
            data += more
        return data

    def __enter__(self) -> FileBytes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)


def find(buffer: Buffer, needle: bytes, start: int, end: int) -> int:
    """Where ``needle`` first stands in ``buffer[start:end]``, -1 where it does not; in growing blocks."""
    if isinstance(buffer, bytes | mmap.mmap):
        return buffer.find(needle, start, end)
    size = _FIRST_BLOCK
    while start + len(needle) <= end:
        block = bytes(buffer[start : min(start + size, end)])
        found = block.find(needle)
        if found >= 0:
            return start + found
        if len(block) < len(needle):
            return -1
        start += len(block) - len(needle) + 1
        size = min(2 * size, _LARGEST_BLOCK)
    return -1

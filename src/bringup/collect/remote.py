"""Files that are read at offsets: local ones, and remote ones by HTTP range requests, so that only what is needed travels.

A connection that dies is taken up again where it stopped; a server that is busy is asked again, a few times, ever later; one
that ignores Range sends the file once, into an unlinked temporary file. Memory stays bounded by the size of one piece.

HTTP: RFC 9110, sections 13.1.5 (If-Range), 14 (range requests), 15.3.7 (206), 10.2.3 (Retry-After).
"""

from __future__ import annotations

import os
import random
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from bringup.collect.archive import TAIL
from bringup.errors import IndexUnreachableError, MalformedWheelError, UnreadableError

if TYPE_CHECKING:
    import httpx

_PIECE = 1 << 20
_TRIES = 5
"""Failures in a row, with no byte gained in between, after which a server counts as unreachable."""
_MOST_FAILURES = 100
"""Failures in all while one range is read: a server that sends a few bytes a connection ends here."""
_LONGEST_WAIT = 30.0
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_SPARE = 256 << 20
"""Bytes of disk that are left free."""


def without_credentials(url: str) -> str:
    """The URL as it may be shown: no user, no password, no query (signed URLs carry their secret there)."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


class LocalFile:
    """A local file. Safe to be read by several threads."""

    def __init__(self, path: Path) -> None:
        self.subject = str(path)
        try:
            self._file = open(path, "rb")  # noqa: SIM115 - closed by close()
            self.size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise UnreadableError(str(path), error.strerror or str(error)) from None
        self.bytes_read = 0

    def read_at(self, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset``. Raises MalformedWheelError where they lie outside of the file."""
        return b"".join(self.stream(offset, length))

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        """The same, in pieces of at most 1 MB."""
        _check_range(self, offset, length)
        yield from pread_pieces(self._file.fileno(), self.subject, offset, length)
        self.bytes_read += length

    def close(self) -> None:
        """Close it."""
        self._file.close()

    def __enter__(self) -> LocalFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_range(file: LocalFile | RemoteFile, offset: int, length: int) -> None:
    if offset < 0 or length < 0 or offset + length > file.size:
        raise MalformedWheelError(
            file.subject, f"truncated: {length} bytes at {offset} lie outside of its {file.size} bytes"
        )


def pread_pieces(descriptor: int, subject: str, offset: int, length: int) -> Iterator[bytes]:
    """``length`` bytes of an open file from ``offset``, in pieces of at most 1 MB; the file's own position is left alone."""
    end = offset + length
    while offset < end:
        try:
            piece = os.pread(descriptor, min(_PIECE, end - offset), offset)
        except OSError as error:
            raise UnreadableError(subject, error.strerror or str(error)) from None
        if not piece:
            raise MalformedWheelError(subject, "became shorter while it was read")
        offset += len(piece)
        yield piece


def new_client(connections: int = 16) -> httpx.Client:
    """An HTTP client as pip's users expect it: proxies and certificates from the environment, credentials from netrc.

    ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` as OpenSSL and uv take them, else pip's ``PIP_CERT`` and requests'
    ``REQUESTS_CA_BUNDLE``.
    """
    import ssl

    import httpx

    verify: ssl.SSLContext | bool = True
    if not os.environ.get("SSL_CERT_FILE") and not os.environ.get("SSL_CERT_DIR"):
        bundle = os.environ.get("PIP_CERT") or os.environ.get("REQUESTS_CA_BUNDLE") or ""
        if bundle and Path(bundle).exists():
            verify = ssl.create_default_context(
                cafile=bundle if Path(bundle).is_file() else None, capath=bundle if Path(bundle).is_dir() else None
            )
    try:
        auth = httpx.NetRCAuth(os.environ.get("NETRC"))
    except Exception:  # the netrc module raises its own, OSError and more; without one there is nothing to send
        auth = None
    return httpx.Client(
        verify=verify,
        auth=auth,
        follow_redirects=True,
        max_redirects=10,
        timeout=httpx.Timeout(30.0, connect=15.0, pool=None),
        limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        headers={"Accept-Encoding": "identity", "User-Agent": "bringup"},
    )


class RemoteFile:
    """A file behind HTTP. Safe to be read by several threads. ``bytes_read`` counts what travelled.

    ``size`` in bytes where it is known beforehand, from the index. Raises IndexUnreachableError where the server refuses
    or does not answer, and UnreadableError where the disk has no room for a file whose server ignores Range.
    """

    def __init__(
        self,
        url: str,
        client: httpx.Client,
        *,
        size: int = 0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = url
        self.subject = without_credentials(url)
        self.bytes_read = 0
        self._client = client
        self._sleep = sleep
        self._etag = ""
        self._lock = threading.Lock()
        self._spool: IO[bytes] | None = None
        self._total = 0
        self._tail = b""
        self._open(size)

    @property
    def size(self) -> int:
        """Bytes in all."""
        return self._total

    def _open(self, size: int) -> None:
        """Learn size and validator by reading the tail, which every zip archive is read from anyway."""
        self._total = size
        if size:
            start = max(0, size - TAIL)
            self._tail = b"".join(self._ranges(start, size))
        else:
            self._tail = b"".join(self._ranges(-TAIL, 0))

    def read_at(self, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset``. Raises MalformedWheelError where they lie outside of the file."""
        return b"".join(self.stream(offset, length))

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        """The same, in pieces as they arrive."""
        _check_range(self, offset, length)
        end = offset + length
        tail_start = self._total - len(self._tail)
        if self._spool is None:
            if offset < tail_start:
                yield from self._ranges(offset, min(end, tail_start))
            if end > tail_start:
                yield self._tail[max(0, offset - tail_start) : end - tail_start]
        else:
            yield from pread_pieces(self._spool.fileno(), self.subject, offset, length)

    def close(self) -> None:
        """Let go of the temporary file, where there is one."""
        if self._spool is not None:
            self._spool.close()

    def __enter__(self) -> RemoteFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- one range, over as many connections as it takes ---------------------------------------------------------------

    def _ranges(self, position: int, end: int) -> Iterator[bytes]:
        """Bytes from ``position`` up to ``end``; the last -position bytes where it is negative."""
        import httpx

        failures, fruitless = 0, 0
        while position < end or position < 0:
            before = position
            try:
                for piece in self._once(position, end):
                    if position < 0:  # the first answer told the size
                        end = self._total
                        position = before = max(0, end + position)
                    position += len(piece)
                    yield piece
                if self._spool is not None and not self._total:
                    return  # an empty file
                reason, wait = "the server closes the connection before the end", 0.0
            except _Busy as error:
                reason, wait = error.reason, error.wait
            except httpx.TooManyRedirects:
                raise IndexUnreachableError(self.subject, "redirects without end") from None
            except httpx.TransportError as error:
                reason, wait = _transport_reason(error), 0.0
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise IndexUnreachableError(self.subject, str(error) or type(error).__name__) from None
            if position >= end > 0:
                return
            failures += 1
            fruitless = 0 if position > before else fruitless + 1
            if fruitless >= _TRIES or failures >= _MOST_FAILURES:
                raise IndexUnreachableError(self.subject, f"{reason} (tried {failures} times)")
            self._sleep(min(_LONGEST_WAIT, max(wait, random.uniform(0.5, 1.0) * 0.25 * 2**fruitless)))

    def _once(self, position: int, end: int) -> Iterator[bytes]:
        """One request. Raises _Busy or httpx.TransportError where another one may do better."""
        headers = {"Range": f"bytes={position}-{end - 1}" if position >= 0 else f"bytes={position}"}
        if self._etag:
            headers["If-Range"] = self._etag
        with self._client.stream("GET", self.url, headers=headers) as response:
            status = response.status_code
            if status == 206:
                start, stop = self._accept(response, position, end)
                left = stop - start
                for piece in response.iter_raw():  # as it arrives: a size would hold back what came before a break
                    with self._lock:
                        self.bytes_read += len(piece)
                    yield piece[:left]
                    left -= len(piece)
                    if left <= 0:
                        return
            elif status == 200:
                yield from self._whole(response, position, end)
            elif status in _BUSY:
                raise _Busy(_status_reason(status), _retry_after(response.headers.get("Retry-After", "")))
            else:
                raise IndexUnreachableError(self.subject, _status_reason(status))

    def _accept(self, response: httpx.Response, position: int, end: int) -> tuple[int, int]:
        """Check that a 206 holds what was asked of the file that was asked; learn its size and validator."""
        match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if match is None or match.group(3) == "*":
            raise IndexUnreachableError(self.subject, "answers a range request without saying which bytes it sends")
        start, stop, total = int(match.group(1)), int(match.group(2)) + 1, int(match.group(3))
        if self._total and total != self._total:
            raise IndexUnreachableError(self.subject, f"has {total} bytes instead of {self._total}")
        if start != (position if position >= 0 else max(0, total + position)) or stop > total or start >= stop:
            raise IndexUnreachableError(self.subject, "sends other bytes than it was asked for")
        etag = response.headers.get("ETag", "")
        if self._etag and etag and etag != self._etag:
            raise IndexUnreachableError(self.subject, "changed while it was read")
        if etag and not etag.startswith("W/"):  # If-Range takes strong validators only
            self._etag = etag
        self._total = total
        return start, min(stop, end) if position >= 0 else stop

    # --- a server that ignores Range ------------------------------------------------------------------------------------

    def _whole(self, response: httpx.Response, position: int, end: int) -> Iterator[bytes]:
        """Take the whole file once, then read from there."""
        with self._lock:
            if self._spool is None:
                etag = response.headers.get("ETag", "")
                if self._etag and etag != self._etag:
                    raise IndexUnreachableError(self.subject, "changed while it was read")
                self._spool = self._download(response)
            spool = self._spool
        if position < 0:
            position, end = max(0, self._total + position), self._total
        yield from pread_pieces(spool.fileno(), self.subject, position, min(end, self._total) - position)

    def _download(self, response: httpx.Response) -> IO[bytes]:
        announced = response.headers.get("Content-Length", "")
        expected = int(announced) if announced.isdigit() else self._total
        _check_disk(self.subject, expected)
        spool = tempfile.TemporaryFile(prefix="bringup-")  # noqa: SIM115 - closed by close()
        total = checked = 0
        try:
            for piece in response.iter_raw():
                total += len(piece)
                self.bytes_read += len(piece)
                if total - checked > _SPARE // 4:  # the announced length may be wrong, or missing
                    _check_disk(self.subject, 0)
                    checked = total
                spool.write(piece)
            spool.flush()
        except OSError as error:
            spool.close()
            raise UnreadableError(self.subject, f"cannot be stored: {error.strerror or error}") from None
        except BaseException:
            spool.close()
            raise
        if self._total and total != self._total:
            spool.close()
            raise _Busy(f"sends {total} bytes instead of {self._total}", 0.0)
        self._total = total
        return spool


class _Busy(Exception):
    """An answer after which the same request may succeed a little later."""

    def __init__(self, reason: str, wait: float) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait = wait


def _check_disk(subject: str, needed: int) -> None:
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < needed + _SPARE:
        raise UnreadableError(
            subject,
            f"needs {needed / 1e9:.1f} GB in {tempfile.gettempdir()}, where {free / 1e9:.1f} GB are free "
            "(TMPDIR chooses another folder)",
        )


def _transport_reason(error: Exception) -> str:
    import httpx

    if isinstance(error, httpx.ConnectTimeout):
        return "does not answer in time"
    if isinstance(error, httpx.TimeoutException):
        return "sends nothing for too long"
    return f"the connection fails: {error or type(error).__name__}"


def _status_reason(status: int) -> str:
    known = {
        401: "asks for credentials",
        403: "refuses access",
        404: "does not exist",
        410: "is gone",
        416: "has not the bytes that were asked for",
        429: "says that there were too many requests",
    }
    return f"{known.get(status, 'the server fails' if status >= 500 else 'is refused')} (HTTP {status})"


def _retry_after(value: str) -> float:
    """Seconds to wait, from a Retry-After header in either of its forms; 0 where it says nothing."""
    if value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0


def path_of(url: str) -> Path | None:
    """The local path of a ``file:`` URL, None for any other."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None

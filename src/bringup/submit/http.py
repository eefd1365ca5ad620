"""A client of HTTP/1.1 for many small requests to few servers.

Why not httpx, which the rest of bringup uses: with 64 requests in flight it takes 2.9 ms of CPU a request (its pool walks every
connection for each), aiohttp 0.1 ms, this 0.01 ms, on the same machine against the same server. It rests on asyncio's protocols
and on httptools (llhttp), the parser of uvicorn, and does what a batch needs and no more: one request on a connection at a time, so
that an answer cannot reach another request; a connection on which anything was odd is closed and never used again.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Literal
from urllib.parse import urlsplit

import httptools
from msgspec import Struct

from bringup.errors import UsageError

IDLE_SECONDS = 4.0
"""A connection that was idle for longer is not used again: uvicorn closes after 5 s, and a request must not meet that."""
BODY_SECONDS = 60.0
"""From the first byte of an answer to its last: engines answer at once or not at all, a longer one is dripping."""
MAX_BODY = 256 << 20


class Answer(Struct, frozen=True):
    """A whole answer. ``retry_after`` and ``request_id`` as in the headers, '' where absent."""

    status: int
    body: bytes
    retry_after: str = ""
    request_id: str = ""
    location: str = ""


class NoAnswer(Exception):
    """Why there is no answer: ``refused`` nothing was sent, ``lost`` the connection ended, ``timeout``, ``broken`` not HTTP."""

    def __init__(self, why: Literal["refused", "lost", "timeout", "broken", "cancelled"], text: str) -> None:
        super().__init__(text)
        self.why = why


class Base(Struct, frozen=True):
    """Where a server is: ``prefix`` is its path without a trailing /v1, which requests bring along."""

    url: str
    host: str
    port: int
    tls: bool
    prefix: str
    authority: str


def parse_base(url: str) -> Base:
    """``http://host:8000``, with or without ``/v1``. Raises UsageError."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
    except ValueError as error:
        raise UsageError(f"endpoint {url!r} is not a URL: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"endpoint {url!r} is not an http or https URL")
    if parts.username or parts.password:
        raise UsageError(f"endpoint with host {parts.hostname!r} holds a user or password; use --api-key-env")
    tls = parts.scheme == "https"
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    authority = parts.netloc
    return Base(
        f"{parts.scheme}://{authority}{path}", parts.hostname, port or (443 if tls else 80), tls, path, authority
    )


class Connection(asyncio.Protocol):
    """One connection. ``deadline`` is looked at from outside, by `Client.expire`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._future: asyncio.Future[Answer] | None = None
        self._transport: asyncio.Transport | None = None
        self.usable = True
        self.idle_since = 0.0
        self.deadline = 0.0
        self._began = self._headers_done = self._until_eof = self._framed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        if self._future is not None and self._headers_done and self._until_eof and exc is None:
            self._finish()
        began = "in the middle of its answer" if self._future is not None and self._began else "without an answer"
        self._fail(
            "lost", f"the server closed the connection {began}" if exc is None else f"the connection broke: {exc}"
        )

    def data_received(self, data: bytes) -> None:
        if self._future is None:
            # Nobody asked: whatever this is, it must not be taken for the next request's answer.
            self.close()
            return
        if not self._began:
            self._began = True
            self.deadline = min(self.deadline, self._loop.time() + BODY_SECONDS)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.close()
            self._fail("broken", f"the server does not speak HTTP/1.1: {error}")

    def send(self, data: bytes, timeout: float) -> asyncio.Future[Answer]:
        """Send a whole request; the future gives its answer or NoAnswer."""
        assert self._transport is not None
        assert self._future is None
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._size = 0
        self._retry_after = self._request_id = self._location = ""
        self._began = self._headers_done = self._until_eof = False
        self._framed = False
        self._future = self._loop.create_future()
        self.deadline = self._loop.time() + timeout
        self._transport.write(data)
        return self._future

    def close(self) -> None:
        """Close at once; a request on its way gets NoAnswer through connection_lost."""
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    def cancel(self, why: Literal["timeout", "cancelled"], text: str) -> None:
        """End the request on its way."""
        self._fail(why, text)
        self.close()

    # --- called by the parser ---

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"content-length" or name == b"transfer-encoding":
            self._framed = True
        elif name == b"retry-after":
            self._retry_after = value.decode("latin-1")
        elif name == b"x-request-id":
            self._request_id = value.decode("latin-1")
        elif name == b"location":
            self._location = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._headers_done = True
        self._until_eof = not self._framed

    def on_body(self, body: bytes) -> None:
        self._body.append(body)
        self._size += len(body)
        if self._size > MAX_BODY:
            self.close()
            self._fail("broken", f"the answer is longer than {MAX_BODY >> 20} MiB")

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:
            self._headers_done = self._framed = False
            return
        self._finish()

    def _finish(self) -> None:
        future, self._future = self._future, None
        if future is None:
            return
        keep = self._framed and self._parser.should_keep_alive()
        if not keep:
            self.close()
        self.idle_since = self._loop.time()
        if not future.done():
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            status = self._parser.get_status_code()
            future.set_result(Answer(status, body, self._retry_after, self._request_id, self._location))
        self._body = []

    def _fail(self, why: Literal["lost", "timeout", "broken", "cancelled"], text: str) -> None:
        future, self._future = self._future, None
        if future is not None and not future.done():
            future.set_exception(NoAnswer(why, text))


class Client:
    """Connections to one server."""

    def __init__(self, base: Base, headers: tuple[tuple[str, str], ...] = (), connect_timeout: float = 10.0) -> None:
        self.base = base
        self._loop = asyncio.get_running_loop()
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._connect_timeout = connect_timeout
        self._tls = ssl.create_default_context() if base.tls else None
        extra = "".join(f"{name}: {value}\r\n" for name, value in headers)
        self._after = f"Host: {base.authority}\r\nAccept: application/json\r\nUser-Agent: bringup\r\n{extra}"
        self._heads: dict[str, bytes] = {}

    async def post(self, path: str, body: bytes, timeout: float, holder: list[Connection] | None = None) -> Answer:
        """POST JSON. Raises NoAnswer. ``holder`` receives the connection, for `Connection.cancel`."""
        head = self._heads.get(path)
        if head is None:
            text = f"POST {self.base.prefix}{path} HTTP/1.1\r\n{self._after}Content-Type: application/json\r\nContent-Length: "
            head = self._heads[path] = text.encode("latin-1")
        return await self._send(b"%b%d\r\n\r\n%b" % (head, len(body), body), timeout, holder)

    async def get(self, path: str, timeout: float) -> Answer:
        """GET. Raises NoAnswer."""
        return await self._send(
            f"GET {self.base.prefix}{path} HTTP/1.1\r\n{self._after}\r\n".encode("latin-1"), timeout, None
        )

    async def _send(self, data: bytes, timeout: float, holder: list[Connection] | None) -> Answer:
        connection = self._reusable() or await self._connect()
        self._busy.add(connection)
        if holder is not None:
            holder.append(connection)
        try:
            return await connection.send(data, timeout)
        finally:
            self._busy.discard(connection)
            if connection.usable:
                self._idle.append(connection)

    def _reusable(self) -> Connection | None:
        oldest = self._loop.time() - IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and connection.idle_since > oldest:
                return connection
            connection.close()
        return None

    async def _connect(self) -> Connection:
        connecting = self._loop.create_connection(
            lambda: Connection(self._loop), self.base.host, self.base.port, ssl=self._tls
        )
        try:
            _, connection = await asyncio.wait_for(connecting, self._connect_timeout)
        except asyncio.TimeoutError as error:
            raise NoAnswer("refused", f"no connection within {self._connect_timeout:g} s") from error
        except (OSError, ssl.SSLError) as error:
            raise NoAnswer("refused", f"no connection: {getattr(error, 'strerror', None) or error}") from error
        return connection

    def expire(self) -> None:
        """End requests that are past their time, and close what has been idle for long. Call it a few times a second."""
        now = self._loop.time()
        for connection in [one for one in self._busy if one.deadline and one.deadline < now]:
            connection.cancel("timeout", "no whole answer in time")
        while self._idle and (not self._idle[0].usable or self._idle[0].idle_since < now - IDLE_SECONDS):
            self._idle.pop(0).close()

    def close(self) -> None:
        """Close every connection."""
        for connection in [*self._idle, *self._busy]:
            connection.close()
        self._idle.clear()

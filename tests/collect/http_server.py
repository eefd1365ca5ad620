"""A real HTTP server on this machine that serves files well, or badly in one chosen way, and a simple index of wheels."""

from __future__ import annotations

import contextlib
import hashlib
import html
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from packaging.utils import parse_wheel_filename

Manner = Literal[
    "good", "ignores_range", "dies_midway", "redirects_endlessly", "too_many_requests", "fails_twice", "always_fails",
    "announces_too_much", "slow", "forbidden", "missing", "changes", "no_content_range", "needs_password",
    "drips_then_dies",
]  # fmt: skip

_PIECE = 64 << 10


class FileServer:
    """Serves ``folder``. ``requests`` holds the Range header of every request for a file, '' where it has none."""

    def __init__(self, folder: Path, manner: Manner = "good") -> None:
        self.folder = folder
        self.manner = manner
        self.requests: list[str] = []
        self.sent = 0
        self.lock = threading.Lock()
        self.url = ""

    def count(self, wanted: str) -> int:
        """Note a request; its number, from 1."""
        with self.lock:
            self.requests.append(wanted)
            return len(self.requests)


@contextmanager
def serving(folder: Path, manner: Manner = "good") -> Iterator[FileServer]:
    """A server on a free port of the loopback interface, ended afterwards."""
    files = FileServer(folder, manner)

    class Handler(_Handler):
        server_files = files

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    files.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield files
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_files: FileServer

    def log_message(self, format: str, *args: object) -> None:
        pass

    def handle(self) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the client has what it wants
            super().handle()

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0])
        if path.startswith("/simple/"):
            self._index(path)
            return
        files = self.server_files
        wanted = self.headers.get("Range", "")
        number = files.count(wanted)
        file = files.folder / path.lstrip("/")
        manner = files.manner
        if manner == "redirects_endlessly":
            self._empty(302, Location=f"/{path.lstrip('/')}?{number}")
        elif manner == "too_many_requests" and number == 1:
            self._empty(429, **{"Retry-After": "1"})
        elif (manner == "fails_twice" and number <= 2) or manner == "always_fails":
            self._empty(503)
        elif manner == "forbidden":
            self._empty(403)
        elif manner == "needs_password" and not self.headers.get("Authorization"):
            self._empty(401, **{"WWW-Authenticate": "Basic"})
        elif manner == "missing" or not file.is_file():
            self._empty(404)
        else:
            self._file(file, wanted, number)

    def _empty(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _file(self, file: Path, wanted: str, number: int) -> None:
        data = file.read_bytes()
        manner = self.server_files.manner
        start, end, status = 0, len(data), 200
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", wanted)
        if match and manner != "ignores_range":
            status = 206
            if match.group(1):
                start = int(match.group(1))
                end = min(len(data), int(match.group(2)) + 1) if match.group(2) else len(data)
            else:
                start = max(0, len(data) - int(match.group(2)))
            if start >= len(data):
                self._empty(416)
                return
        etag = f'"{hashlib.sha256(data).hexdigest()[:16]}"' if manner != "changes" else f'"{number}"'
        if manner == "changes" and self.headers.get("If-Range"):
            start, end, status = 0, len(data), 200  # as RFC 9110 asks of a server whose file is another one by now
        length = end - start
        self.send_response(status)
        self.send_header("ETag", etag)
        self.send_header("Accept-Ranges", "bytes")
        if status == 206 and manner != "no_content_range":
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(length + 1000 if manner == "announces_too_much" else length))
        self.end_headers()
        if self.command == "HEAD":
            return
        body = memoryview(data)[start:end]
        if manner == "dies_midway" and number % 2:
            body = body[: length // 2]
        elif manner == "drips_then_dies":
            body = body[: 1 if number > 1 else length]
        for position in range(0, len(body), _PIECE):
            if manner == "slow":
                time.sleep(0.02)
            self.wfile.write(body[position : position + _PIECE])
            with self.server_files.lock:
                self.server_files.sent += len(body[position : position + _PIECE])
        if len(body) < length or manner == "announces_too_much":
            self.close_connection = True
            self.connection.close()

    # --- PEP 503 and PEP 691 ----------------------------------------------------------------------------------------------

    def _index(self, path: str) -> None:
        name = path.removeprefix("/simple/").strip("/")
        wheels = [
            wheel
            for wheel in sorted(self.server_files.folder.glob("*.whl"))
            if parse_wheel_filename(wheel.name)[0] == name
        ]
        if not wheels:
            self._empty(404)
            return
        if "json" in self.headers.get("Accept", ""):
            kind = "application/vnd.pypi.simple.v1+json"
            files = [
                {
                    "filename": wheel.name,
                    "url": f"/{wheel.name}",
                    "hashes": {"sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()},
                    "size": wheel.stat().st_size,
                }
                for wheel in wheels
            ]
            versions = sorted({str(parse_wheel_filename(wheel.name)[1]) for wheel in wheels})
            body = json.dumps({"meta": {"api-version": "1.1"}, "name": name, "versions": versions, "files": files})
        else:
            kind = "text/html"
            links = "".join(
                f'<a href="/{wheel.name}#sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}">'
                f"{html.escape(wheel.name)}</a>\n"
                for wheel in wheels
            )
            body = f"<!DOCTYPE html><html><body>{links}</body></html>"
        data = body.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

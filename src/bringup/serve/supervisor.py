"""Keeps the replicas of a launch: starts them, finds out when they really answer, names why they end, starts them again.

    python -m bringup.serve.supervisor FOLDER

It runs detached from any terminal. SIGTERM ends it together with everything that it started.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import httpx

from bringup.serve import guard
from bringup.serve.engines import Spec, command, environment
from bringup.serve.failures import Cause, cause
from bringup.serve.state import LaunchState, Phase, ReplicaState, read_spec, take, write_state

LOOK_SECONDS = 0.25
PROBE_SECONDS = 1.0
LOG_TAIL = 256 << 10
BACK_OFF = (1.0, 2.0, 5.0, 15.0, 30.0, 60.0)
STEADY_SECONDS = 600.0
"""A replica that was ready for so long has paid for its earlier ends."""
STARTS_IN_VAIN = 3
"""Tries of a start that never got ready, where another try may go better at all."""


class Replica:
    """One engine process with its guard."""

    def __init__(self, spec: Spec, number: int, place: Path) -> None:
        self.spec = spec
        self.number = number
        self.url = f"http://{'127.0.0.1' if spec.host in ('0.0.0.0', '::') else spec.host}:{spec.port + number}"
        self.log = place / f"replica-{number}.log"
        self.phase: Phase = "starting"
        self.restarts = 0
        self.ready_seconds = 0.0
        self.cause: Cause | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self._pipe: IO[bytes] | None = None
        self._log_start = 0
        self._began = self._ready_at = self._next_start = 0.0
        self._vain = self._ends = 0
        self._last_probe = 0.0

    def start(self) -> None:
        """Start the engine below a guard; its output goes to the log."""
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        line = [sys.executable, guard.__file__, str(self.spec.grace), "--", *command(self.spec, self.number)]
        with self.log.open("ab") as log:
            log.write(f"# bringup: {' '.join(line[4:])}\n".encode())
            log.flush()
            self.process = subprocess.Popen(
                line,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment(self.spec, self.number, dict(os.environ)),
                start_new_session=True,
            )
        self.phase = "starting"
        self._began = time.monotonic()

    async def look(self, client: httpx.AsyncClient) -> None:
        """See what became of it, and do what follows."""
        now = time.monotonic()
        if self.phase in ("failed", "stopped"):
            return
        if self.phase == "waiting":
            if now >= self._next_start:
                self.restarts += 1
                self.start()
            return
        assert self.process is not None
        status = self.process.poll()
        if status is not None:
            self._ended(status if status >= 0 else 128 - status, now)
        elif self.phase == "starting" and now - self._last_probe >= PROBE_SECONDS:
            self._last_probe = now
            if await self._answers(client):
                self.phase = "ready"
                self._ready_at = time.monotonic()
                self.ready_seconds = self._ready_at - self._began
            elif now - self._began > self.spec.ready_timeout:
                said = Cause("start_too_slow", f"no completion within {self.spec.ready_timeout:g} s")
                self.end()
                self.process.wait()
                self.phase, self.cause = "failed", said

    def _ended(self, status: int, now: float) -> None:
        found = cause(self._tail(), status)
        was_ready = self.phase == "ready"
        self.cause = found
        if was_ready:
            self._ends = 1 if now - self._ready_at > STEADY_SECONDS else self._ends + 1
            self._vain = 0
        else:
            self._vain += 1
            # Its own port, held a little longer by what is left of the last start, will be free again.
            passing = found.again or (found.kind == "port_taken" and self.ready_seconds > 0)
            if not passing or self._vain >= STARTS_IN_VAIN:
                # The same start would end in the same way: whoever reads the cause can change something, another try cannot.
                self.phase = "failed"
                return
        self.phase = "waiting"
        self._next_start = now + BACK_OFF[min(self._ends + self._vain, len(BACK_OFF)) - 1]

    def _tail(self) -> str:
        with contextlib.suppress(OSError), self.log.open("rb") as file:
            file.seek(max(self._log_start, self.log.stat().st_size - LOG_TAIL))
            return file.read().decode("utf-8", "replace")
        return ""

    async def _answers(self, client: httpx.AsyncClient) -> bool:
        """Ready is a completion that came back; an open port and a healthy answer come earlier."""
        try:
            body = {"model": self.spec.name, "prompt": "1", "max_tokens": 1, "temperature": 0}
            if (await client.get(f"{self.url}/health", timeout=2.0)).status_code != 200:
                return False
            answer = await client.post(f"{self.url}/v1/completions", json=body, timeout=60.0)
            return answer.status_code == 200 and bool(answer.json()["choices"])
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return False

    def end(self) -> None:
        """Ask the guard to end the engine with everything below it."""
        if self.process is not None and self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def state(self) -> ReplicaState:
        """For the file."""
        said = self.cause
        return ReplicaState(
            self.number,
            self.phase,
            self.url,
            str(self.log),
            self.process.pid if self.process is not None else 0,
            self.restarts,
            round(self.ready_seconds, 1),
            said.text if said else "",
            said.kind if said else "",
            said.evidence if said else "",
        )


def metrics(state: LaunchState) -> str:
    """The state as Prometheus text."""
    lines = ["# HELP bringup_replica_up Whether the replica answers completions", "# TYPE bringup_replica_up gauge"]
    lines += [f'bringup_replica_up{{replica="{one.number}"}} {int(one.phase == "ready")}' for one in state.replicas]
    lines += [
        "# HELP bringup_replica_restarts_total Starts after the first",
        "# TYPE bringup_replica_restarts_total counter",
    ]
    lines += [f'bringup_replica_restarts_total{{replica="{one.number}"}} {one.restarts}' for one in state.replicas]
    lines += [
        "# HELP bringup_replica_ready_seconds What the last start took",
        "# TYPE bringup_replica_ready_seconds gauge",
    ]
    lines += [f'bringup_replica_ready_seconds{{replica="{one.number}"}} {one.ready_seconds}' for one in state.replicas]
    return "\n".join(lines) + "\n"


class Supervisor:
    """All replicas of one launch."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._spec = read_spec(place)
        self._replicas = [Replica(self._spec, number, place) for number in range(self._spec.replicas)]
        self._health = ""
        self._stop = asyncio.Event()

    def _state(self) -> LaunchState:
        return LaunchState(os.getpid(), self._health, tuple(one.state() for one in self._replicas))

    async def run(self) -> None:
        """Until SIGTERM."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop.set)
        server = await asyncio.start_server(self._serve, "127.0.0.1", self._spec.health_port)
        self._health = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for one in self._replicas:
            one.start()
        async with httpx.AsyncClient(trust_env=False) as client:
            try:
                while not self._stop.is_set():
                    await asyncio.gather(*[one.look(client) for one in self._replicas])
                    write_state(self._place, self._state())
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(self._stop.wait(), LOOK_SECONDS)
            finally:
                await self._end_all()
        server.close()

    async def _end_all(self) -> None:
        for one in self._replicas:
            one.end()
        for one in self._replicas:
            if one.process is not None:
                await asyncio.to_thread(one.process.wait)
            if one.phase != "failed":
                one.phase = "stopped"
        write_state(self._place, self._state())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(
            OSError, asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError
        ):
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5.0)
            path = head.split(b" ", 2)[1]
            state = self._state()
            if path == b"/metrics":
                status, body = "200 OK", metrics(state)
            elif path == b"/health":
                up = sum(one.phase == "ready" for one in state.replicas)
                status = "200 OK" if up == len(state.replicas) else "503 Service Unavailable"
                body = f"{up} of {len(state.replicas)} replicas answer\n"
            else:
                status, body = "404 Not Found", "/health or /metrics\n"
            text = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
            writer.write(text.encode())
            await writer.drain()
        writer.close()


def main(place: Path) -> int:
    """Supervise what the folder's spec asks for. Returns 1 where another supervisor is at work there."""
    held = take(place)
    if held is None:
        return 1
    asyncio.run(Supervisor(place).run())
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

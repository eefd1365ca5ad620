"""One run of a batch: reads, sends and keeps until every line is done, or until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from msgspec import Struct

from bringup.errors import BringupError
from bringup.submit.endpoints import Endpoint
from bringup.submit.http import NoAnswer
from bringup.submit.journal import ErrorRow, InputChangedError
from bringup.submit.lines import Defaults, Request
from bringup.submit.sender import Sender
from bringup.submit.source import Block, Source
from bringup.submit.writer import Done, NoSpace, Writer

FLUSH_SECONDS = 0.5
FLUSH_ANSWERS = 2000
FLUSH_BYTES = 32 << 20
BACKLOG_BYTES = 64 << 20
TICK = 0.1
ALL_REFUSED = 50
"""So many requests refused and none answered: the batch does not fit the endpoint, and the rest is not sent."""


class NotFinishedError(BringupError):
    """The batch stopped before every line was done. Nothing is lost: the same command goes on."""


class Settings(Struct, frozen=True):
    """How to run. Times in seconds; ``concurrency`` 0: find it out, per endpoint."""

    endpoints: tuple[str, ...]
    endpoints_file: str = ""
    concurrency: int = 0
    timeout: float = 600.0
    give_up: float = 900.0
    drain: float = 120.0
    disk_wait: float = 60.0
    max_losses: int = 3
    steal: bool = True
    headers: tuple[tuple[str, str], ...] = ()


class State(Struct):
    """What progress shows; changes all the time."""

    began: float = 0.0
    done_before: int = 0
    answered: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    note: str = ""
    fraction: float | None = None
    endpoints: tuple[Endpoint, ...] = ()
    in_flight: int = 0


Stopped = Literal["", "signal", "disk", "endpoints", "refused"]


class Run:
    """Sends what is left of an input. Call `go` once."""

    def __init__(
        self, settings: Settings, source: Source, writer: Writer, defaults: Defaults, show: Callable[[State], None]
    ) -> None:
        self._settings = settings
        self._source = source
        self._writer = writer
        self._defaults = defaults
        self._show = show
        self._done: list[Done] = []
        self._done_bytes = 0
        self._errors: list[ErrorRow] = []
        self._stop: Stopped = ""
        self._reason = ""
        self._signals = 0
        self.state = State()
        self.urls: dict[str, int] = {}
        """URL of each endpoint with its number in the journal."""

    async def go(self) -> None:
        """Run. Raises NotFinishedError, InputChangedError, UnreadableError; what was answered is kept in every case."""
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, "bringup-journal")
        self._blocks = self._source.blocks()
        self._wake_keeper = asyncio.Event()
        self._held: Block | None = None
        self._read_blocks = 0
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(ValueError, NotImplementedError, RuntimeError):
                self._loop.add_signal_handler(number, self._on_signal)
        endpoints: list[Endpoint] = []
        helpers: list[asyncio.Task[None]] = []
        self._sender = Sender(
            endpoints,
            self._settings.timeout,
            self._on_done,
            self._on_failed,
            self._settings.max_losses,
            self._settings.steal,
        )
        self.state.began = self._loop.time()
        try:
            self._number = await self._loop.run_in_executor(self._thread, self._start_run)
            await self._set_endpoints()
            await self._wait_for_first()
            helpers = [asyncio.ensure_future(self._ticks()), asyncio.ensure_future(self._adapt())]
            keeping = asyncio.ensure_future(self._keep_regularly())
            await self._work([*helpers, keeping])
        finally:
            for task in helpers:
                task.cancel()
            self._sender.abandon()
            for endpoint in (*endpoints, *self._sender.retired):
                endpoint.close()
            self._thread.shutdown(wait=True)
        if self._stop:
            raise NotFinishedError(self._reason)

    def _start_run(self) -> int:
        journal = self._writer.journal
        journal.begin()
        number = journal.start_run(int(time.time() * 1000))
        # An endpoint keeps its number over all runs: answers in the journal name it by that.
        self.urls.update({url: place for place, url in enumerate(journal.meta("endpoints").split()) if url})
        journal.commit()
        return number

    # --- the course of it ---------------------------------------------------------------------------------------------

    async def _work(self, helpers: list[asyncio.Task[None]]) -> None:
        keeping = helpers[-1]
        failure: BaseException | None = None
        reading = asyncio.ensure_future(self._read())
        try:
            while not (self._stop or (reading.done() and self._sender.idle)):
                await asyncio.sleep(0.02)
                for task in (reading, *helpers):
                    if task.done() and not task.cancelled() and task.exception() is not None:
                        raise task.exception()  # type: ignore[misc]
        except BaseException as error:
            failure = error
        self._sender.sending = False
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError, BringupError):
            await reading
        if failure is None or isinstance(failure, BringupError):
            await self._drain()
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await keeping
        if self._stop != "disk":
            await self._keep_or_wait(final=True)
        if failure is not None:
            raise failure

    async def _drain(self) -> None:
        # Answers that the disk will not take are not waited for.
        until = self._loop.time() + (0.0 if self._stop == "disk" else self._settings.drain)
        while self._sender.in_flight and self._loop.time() < until and self._signals < 2:
            self._sender.expire()
            await asyncio.sleep(TICK / 2)

    async def _read(self) -> None:
        while not self._stop:
            room = 2 * sum([one.limit.value for one in self._sender.endpoints])
            if (
                self._sender.backlog >= max(1024, room)
                or self._sender.backlog_bytes >= BACKLOG_BYTES
                or not self._sender.sending
            ):
                await asyncio.sleep(0.005)
                continue
            try:
                got = await self._loop.run_in_executor(self._thread, self._next_block)
            except NoSpace:
                # Keeping meets the same, waits for room, and decides.
                await asyncio.sleep(0.2)
                continue
            if got is None:
                self._sender.input_ended = True
                return
            requests, before = got
            self.state.done_before += before
            if requests:
                self._sender.add(requests)

    def _next_block(self) -> tuple[list[Request], int] | None:
        # A block that the disk did not take stays here, and is prepared again.
        block = self._held or next(self._blocks, None)
        if block is None:
            if self._read_blocks < self._writer.journal.number("SELECT count(*) FROM blocks"):
                raise InputChangedError(f"{self._source.name}: has fewer lines than this output was begun with")
            return None
        self._held = block
        self.state.fraction = self._source.fraction
        prepared = self._writer.prepare(block, self._defaults)
        self._held = None
        self._read_blocks += 1
        return prepared

    # --- what came back -----------------------------------------------------------------------------------------------

    def _on_done(self, done: Done) -> None:
        self._done.append(done)
        self._done_bytes += len(done.text)
        self.state.answered += 1
        self.state.prompt_tokens += done.row[0]
        self.state.completion_tokens += done.row[1]
        if len(self._done) >= FLUSH_ANSWERS or self._done_bytes >= FLUSH_BYTES:
            self._wake_keeper.set()

    def _on_failed(self, row: ErrorRow) -> None:
        self._errors.append(row)
        self.state.failed += 1
        if self._sender.refused >= ALL_REFUSED and not self._sender.answered and not self._stop:
            said = f"status {row.status}: {row.message}" if row.status else row.message
            self._halt(
                "refused",
                f"the first {ALL_REFUSED} requests were all refused ({said}); mend it and run again with --retry-errors",
            )

    def _halt(self, stop: Stopped, reason: str) -> None:
        if not self._stop:
            self._stop, self._reason = stop, reason
        self._sender.sending = False

    def _on_signal(self) -> None:
        self._signals += 1
        if self._signals == 1:
            self.state.note = "stopping: waiting for the answers that are on their way"
        self._halt("signal", "stopped by a signal; the same command goes on from here")

    # --- keeping ------------------------------------------------------------------------------------------------------

    async def _keep_regularly(self) -> None:
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake_keeper.wait(), FLUSH_SECONDS)
            self._wake_keeper.clear()
            await self._keep_or_wait()

    async def _keep_or_wait(self, final: bool = False) -> None:
        began = self._loop.time()
        while True:
            try:
                await self._keep()
            except NoSpace as error:  # noqa: PERF203
                self._sender.sending = False
                waited = self._loop.time() - began
                if self._stop or waited >= self._settings.disk_wait:
                    self._halt(
                        "disk",
                        f"{self._writer.path}: {error}; {len(self._done)} answers could not be kept and will be asked for again, "
                        "make room and run the same command",
                    )
                    return
                self.state.note = f"paused: {error}; waiting for space ({self._settings.disk_wait - waited:.0f} s more)"
                await asyncio.sleep(0.5)
            else:
                if not self._stop and not final:
                    if not self._sender.sending:
                        self.state.note = ""
                    self._sender.sending = True
                return

    async def _keep(self) -> None:
        done, errors, counts = self._done, self._errors, self._sender.counts
        self._done, self._errors, self._sender.counts, self._done_bytes = [], [], {}, 0
        work = self._loop.run_in_executor(
            self._thread, self._writer.keep, done, errors, counts, self._number, int(time.time() * 1000)
        )
        try:
            # A cancelled keeper must not leave it open whether its answers are kept.
            await asyncio.shield(work)
        except asyncio.CancelledError:
            with contextlib.suppress(NoSpace):
                await work
                raise
            self._give_back(done, errors, counts)
            raise
        except NoSpace:
            self._give_back(done, errors, counts)
            raise

    def _give_back(self, done: list[Done], errors: list[ErrorRow], counts: dict[str, int]) -> None:
        self._done[:0] = done
        self._errors[:0] = errors
        for name, n in counts.items():
            self._sender.count(name, n)

    # --- endpoints ----------------------------------------------------------------------------------------------------

    async def _set_endpoints(self) -> None:
        urls = list(self._settings.endpoints)
        if self._settings.endpoints_file:
            with contextlib.suppress(OSError):
                urls += [
                    line.strip()
                    for line in Path(self._settings.endpoints_file).read_text().splitlines()
                    if line.strip()
                ]
        kept = {one.url: one for one in self._sender.endpoints}
        wanted: list[Endpoint] = []
        for url in dict.fromkeys(urls):
            number = self.urls.setdefault(url, len(self.urls))
            fresh = Endpoint(number, url, self._settings.concurrency, self._settings.headers)
            wanted.append(kept.pop(fresh.url, fresh))
        for gone in kept.values():
            # What is on its way there may still come back; its connections end by themselves.
            gone.set_down("is no longer in the endpoints file", "refuses")
            self._sender.retired.append(gone)
        self._sender.endpoints[:] = wanted
        self.state.endpoints = tuple(wanted)
        await self._loop.run_in_executor(self._thread, self._keep_urls)

    def _keep_urls(self) -> None:
        journal = self._writer.journal
        with contextlib.suppress(sqlite3.OperationalError):  # a full disk: it is written by the next run
            journal.begin()
            journal.set_meta("endpoints", " ".join(self.urls))

    async def _wait_for_first(self) -> None:
        """Ask every endpoint what it serves; go on as soon as one is up."""
        served: set[str] = set()

        async def look(endpoint: Endpoint) -> None:
            try:
                answer = await endpoint.models()
            except NoAnswer as failure:
                endpoint.set_down(str(failure))
                return
            if isinstance(answer, tuple):
                served.update(answer)
            elif answer.status in (401, 403):
                endpoint.set_down(f"status {answer.status}: wants another key", "refuses")

        await asyncio.gather(*[look(one) for one in self._sender.endpoints])
        if not self._defaults.model and len(served) == 1:
            self._defaults = Defaults(served.pop(), self._defaults.parameters, self._defaults.prompts)

    async def _adapt(self) -> None:
        seen = 0.0
        while True:
            await asyncio.gather(*[one.adapt() for one in self._sender.endpoints])
            await asyncio.sleep(0.5)
            if self._settings.endpoints_file:
                with contextlib.suppress(OSError):
                    changed = Path(self._settings.endpoints_file).stat().st_mtime
                    if seen and changed != seen:
                        await self._set_endpoints()
                    seen = changed

    async def _ticks(self) -> None:
        last_usable = self._loop.time()
        while True:
            await asyncio.sleep(TICK)
            self._sender.tick()
            now = self._loop.time()
            self.state.in_flight = len(self._sender.in_flight)
            self._show(self.state)
            if any(one.state == "up" for one in self._sender.endpoints):
                last_usable = now
            elif self._sender.endpoints and not self._sender.usable() and not self._settings.endpoints_file:
                self._halt("endpoints", f"every endpoint refuses: {self._why()}")
            elif now - last_usable > self._settings.give_up:
                self._halt("endpoints", f"no endpoint was up for {self._settings.give_up:g} s: {self._why()}")

    def _why(self) -> str:
        return "; ".join(f"{one.url}: {one.reason}" for one in self._sender.endpoints) or "none is named"

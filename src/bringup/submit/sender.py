"""Keeps the endpoints busy: takes requests, sends them, judges what comes back, tries again, hands what is done to the writer.

Everything here runs in one thread, in an event loop. What may block (the input, the output, the journal) runs in another.

A request that lost its connection may have ended the server that it was sent to. It is tried again, but apart: those that lost
one connection only a few at a time, those that lost two one at a time, so that the one that does it is found, and the others that
were on their way with it are not blamed.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Callable

import msgspec

from bringup.submit.endpoints import Endpoint
from bringup.submit.http import Connection, NoAnswer
from bringup.submit.journal import ErrorRow
from bringup.submit.lines import Request
from bringup.submit.outcome import CODES, RETRIES, Class, Outcome, of_answer, of_failure, wait
from bringup.submit.writer import Done

LIKELY = 8
"""Of requests that lost one connection, one of so many slots takes one."""
MAX_BODY_KEPT = 4000
STEAL_AFTER = 1.0
STEAL_TIMES = 3.0
"""A request of the tail may go to another endpoint, too, after so many seconds, and so many times what an answer usually takes."""


class Item:
    """A request on its way."""

    __slots__ = ("attempts", "began", "closed", "counts", "endpoints", "holders", "losses", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.counts: dict[Class, int] = {}
        self.attempts = 0
        self.losses = 0
        self.began = 0.0
        self.endpoints: list[Endpoint] = []
        """Where it is on its way now: two where the tail was stolen."""
        self.holders: list[list[Connection]] = []
        self.closed = False


class Sender:
    """The requests that are ready, on their way, or wait for another try."""

    def __init__(
        self,
        endpoints: list[Endpoint],
        timeout: float,
        done: Callable[[Done], None],
        failed: Callable[[ErrorRow], None],
        max_losses: int = RETRIES["lost"].attempts,
        steal: bool = True,
    ) -> None:
        self.endpoints = endpoints
        self.retired: list[Endpoint] = []
        """Endpoints that are no longer named; requests may still be on their way there."""
        self.counts: dict[str, int] = {}
        self.sending = True
        self.in_flight: set[Item] = set()
        self.backlog = 0
        """Requests that are here and not on their way, in any queue."""
        self.backlog_bytes = 0
        self.answered = self.refused = 0
        self._timeout = timeout
        self._done = done
        self._failed = failed
        self._max_losses = max_losses
        self._steal = steal
        self._loop = asyncio.get_running_loop()
        self._ready: deque[Item] = deque()
        self._suspects: tuple[deque[Item], deque[Item]] = (deque(), deque())
        self._later: list[tuple[float, int, Item]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._order = 0
        self._usual = 0.0
        self.input_ended = False

    def add(self, requests: list[Request]) -> None:
        """Take more requests."""
        self._ready.extend([Item(one) for one in requests])
        self.backlog += len(requests)
        self.backlog_bytes += sum([len(one.body) for one in requests])
        self.pump()

    @property
    def idle(self) -> bool:
        """Nothing is on its way and nothing waits."""
        return not self.in_flight and not self.backlog

    def count(self, name: str, n: int = 1) -> None:
        """Add to what the summary tells."""
        self.counts[name] = self.counts.get(name, 0) + n

    # --- giving out ---------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Start as many requests as the endpoints take."""
        if not self.sending:
            return
        now = self._loop.time()
        while self._later and self._later[0][0] <= now:
            self._enqueue(heapq.heappop(self._later)[2])
        if len(self.endpoints) == 1:
            endpoint = self.endpoints[0]
            while endpoint.free(now) > 0 and (item := self._next(endpoint)) is not None:
                self._start(item, endpoint)
        else:
            while endpoint := self._freest(now):  # type: ignore[assignment]
                item = self._next(endpoint)
                if item is None:
                    break
                self._start(item, endpoint)
        if self.input_ended and self._steal and not self.backlog and len(self.endpoints) > 1:
            self._steal_tail(now)

    def _freest(self, now: float) -> Endpoint | None:
        best, room = None, 0.0
        for endpoint in self.endpoints:
            free = endpoint.free(now)
            if free > 0 and free / endpoint.limit.value > room:
                best, room = endpoint, free / endpoint.limit.value
        return best

    def _next(self, endpoint: Endpoint) -> Item | None:
        first, second = self._suspects
        item = None
        if second:
            if endpoint.trying == 0:
                item = second.popleft()
        elif first and endpoint.trying < max(1, endpoint.limit.value // LIKELY):
            item = first.popleft()
        if item is None and self._ready:
            item = self._ready.popleft()
        if item is not None:
            self.backlog -= 1
            self.backlog_bytes -= len(item.request.body)
        return item

    def _enqueue(self, item: Item) -> None:
        if item.losses == 0:
            self._ready.appendleft(item)
        else:
            self._suspects[0 if item.losses == 1 else 1].append(item)

    def _start(self, item: Item, endpoint: Endpoint) -> None:
        item.attempts += 1
        if not item.endpoints:
            item.began = self._loop.time()
        holder: list[Connection] = []
        item.endpoints.append(endpoint)
        item.holders.append(holder)
        self.in_flight.add(item)
        endpoint.in_flight += 1
        if item.losses:
            endpoint.trying += 1
        task = self._loop.create_task(self._send(item, endpoint, holder, item.losses > 0))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, item: Item, endpoint: Endpoint, holder: list[Connection], trying: bool) -> None:
        began = self._loop.time()
        request = item.request
        try:
            outcome = of_answer(await endpoint.client.post(request.path, request.body, self._timeout, holder))
        except NoAnswer as failure:
            outcome = of_failure(failure)
        finally:
            endpoint.in_flight -= 1
            endpoint.trying -= trying
            place = item.holders.index(holder)
            del item.holders[place], item.endpoints[place]
        if not item.closed:
            self._judge(item, endpoint, outcome, self._loop.time() - began)
        if not item.endpoints:
            self.in_flight.discard(item)
        self.pump()

    # --- judging ------------------------------------------------------------------------------------------------------

    def _judge(self, item: Item, endpoint: Endpoint, outcome: Outcome, seconds: float) -> None:
        if outcome.kind == "ok":
            endpoint.answered_one()
            self._close(item)
            self.answered += 1
            self._usual += (seconds - self._usual) * (0.02 if self.answered > 50 else 1 / self.answered)
            self._done(_done(item, endpoint, outcome, seconds))
            return
        if outcome.kind == "final":
            endpoint.answered_one()
            self._close(item)
            self.refused += 1
            self._failed(_error(item, outcome, outcome.code or CODES["final"]))
            return
        self._about_endpoint(endpoint, outcome)
        if item.endpoints:
            return  # the same request is still on its way elsewhere
        self._again(item, outcome)

    def _about_endpoint(self, endpoint: Endpoint, outcome: Outcome) -> None:
        endpoint.failed += 1
        self.count(outcome.kind)
        if outcome.kind == "refused":
            endpoint.set_down(outcome.message)
        elif outcome.kind == "unauthorized":
            endpoint.set_down(f"status {outcome.status}: {outcome.message}", "refuses")
        elif outcome.kind in ("rate_limited", "overloaded"):
            endpoint.limit.back_off()
            if outcome.after is not None:
                endpoint.pause(outcome.after)
        elif outcome.kind == "timeout":
            endpoint.limit.back_off()
            if endpoint.timed_out():
                endpoint.set_down("several requests in a row got no answer in time")

    def _again(self, item: Item, outcome: Outcome) -> None:
        kind = outcome.kind
        if kind in ("refused", "unauthorized"):
            item.attempts -= 1
            self._requeue(item, 0.0)
            return
        tries = item.counts[kind] = item.counts.get(kind, 0) + 1
        if kind == "lost":
            item.losses += 1
        most = self._max_losses if kind == "lost" else RETRIES[kind].attempts
        if tries >= most:
            self._close(item)
            self._failed(_error(item, outcome, CODES[kind]))
            return
        pause = wait(kind, tries) if outcome.after is None else outcome.after
        self._requeue(item, pause)

    def _requeue(self, item: Item, seconds: float) -> None:
        self.backlog += 1
        self.backlog_bytes += len(item.request.body)
        if seconds <= 0:
            self._enqueue(item)
            return
        self._order += 1
        heapq.heappush(self._later, (self._loop.time() + seconds, self._order, item))

    def _close(self, item: Item) -> None:
        item.closed = True
        for holder in item.holders:
            for connection in holder:
                connection.cancel("cancelled", "another endpoint answered first")

    # --- the tail, and what happens by the clock ----------------------------------------------------------------------

    def _steal_tail(self, now: float) -> None:
        waiting = [one for one in self.in_flight if len(one.endpoints) == 1 and not one.losses and not one.closed]
        waiting.sort(key=lambda one: one.began)
        for item in waiting:
            if now - item.began < max(STEAL_AFTER, STEAL_TIMES * self._usual):
                return
            holder = item.endpoints[0]
            free = [
                one
                for one in self.endpoints
                if one is not holder and one.free(now) > 0 and one.in_flight < holder.in_flight
            ]
            if free:
                self.count("stolen")
                self._start(item, min(free, key=lambda one: one.in_flight))

    def tick(self) -> None:
        """Call a few times a second: time-outs, waits that are over."""
        self.expire()
        self.pump()

    def expire(self) -> None:
        """End what is past its time, also where nothing new is sent any more."""
        for endpoint in (*self.endpoints, *self.retired):
            endpoint.client.expire()

    def usable(self) -> bool:
        """Whether any endpoint may still take requests, now or when it is back."""
        return any(one.state != "refuses" for one in self.endpoints)

    def abandon(self) -> None:
        """Stop at once: what is on its way is not waited for."""
        self.sending = False
        for task in self._tasks:
            task.cancel()


def _done(item: Item, endpoint: Endpoint, outcome: Outcome, seconds: float) -> Done:
    request = item.request
    text = (
        b'{"id":"bringup-%d","custom_id":%b,"response":{"status_code":200,"request_id":%b,"body":%b},"error":null}\n'
        % (
            request.seq,
            _json(request.custom_id),
            _json(outcome.request_id),
            outcome.body,
        )
    )
    row = (
        outcome.prompt_tokens,
        outcome.completion_tokens,
        int(seconds * 1e6),
        item.attempts,
        int(time.time() * 1000),
        endpoint.number,
    )
    return Done(request.seq, text, row)


def _error(item: Item, outcome: Outcome, code: str) -> ErrorRow:
    request = item.request
    body = outcome.body[:MAX_BODY_KEPT].decode("utf-8", "replace")
    return ErrorRow(request.seq, request.custom_id, code, outcome.message, outcome.status, body, item.attempts)


_json = msgspec.json.encode

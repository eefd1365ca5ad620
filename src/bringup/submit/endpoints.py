"""One server: how much it has to do, whether it can be used, and the way back when it could not."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Literal

import msgspec

from bringup.submit.concurrency import Limit, Load, parse_metrics
from bringup.submit.http import Answer, Client, NoAnswer, parse_base

State = Literal["up", "down", "refuses"]

HEALTH_TIMEOUT = 10.0
PROBE_FIRST = 0.25
PROBE_LONGEST = 10.0
TIMEOUTS_IN_A_ROW = 3


class Endpoint:
    """A server and its state. Made inside of a running event loop."""

    def __init__(self, number: int, url: str, fixed: int, headers: tuple[tuple[str, str], ...]) -> None:
        self.number = number
        self.client = Client(parse_base(url), headers)
        self.url = self.client.base.url
        self.limit = Limit(fixed)
        self.state: State = "up"
        self.reason = ""
        self.in_flight = 0
        self.trying = 0
        """Requests in flight that have lost a connection before."""
        self.answered = 0
        self.failed = 0
        self.paused_until = 0.0
        self.load: Load | None = None
        self.down_since = 0.0
        self.deaths = 0
        self._timeouts = 0
        self._probe: asyncio.Task[None] | None = None
        self._no_metrics = 0
        self._answered_before = 0
        self._measured = 0.0

    def free(self, now: float) -> int:
        """How many more requests it can take."""
        if self.state != "up" or self.paused_until > now:
            return 0
        return self.limit.value - self.in_flight

    def answered_one(self) -> None:
        """After an answer of any kind that came whole."""
        self.answered += 1
        self._timeouts = 0

    def timed_out(self) -> bool:
        """After a time-out; True where it now counts as down."""
        self._timeouts += 1
        return self._timeouts >= TIMEOUTS_IN_A_ROW

    def pause(self, seconds: float) -> None:
        """Send nothing for a while."""
        self.paused_until = max(self.paused_until, asyncio.get_running_loop().time() + seconds)

    def set_down(self, reason: str, state: State = "down") -> None:
        """Take it out of use, and look for it again from time to time."""
        self.reason = reason
        if self.state == "up":
            self.deaths += 1
            self.down_since = asyncio.get_running_loop().time()
        self.state = state
        if state == "down" and (self._probe is None or self._probe.done()):
            self._probe = asyncio.ensure_future(self._until_back())

    async def _until_back(self) -> None:
        wait = PROBE_FIRST
        while True:
            await asyncio.sleep(wait)
            wait = min(wait * 2, PROBE_LONGEST)
            if await self.answers():
                self.state = "up"
                self.reason = ""
                self._timeouts = 0
                return

    async def answers(self) -> bool:
        """Whether it answers at all, with anything but "not now"."""
        for path in ("/health", "/v1/models"):
            try:
                answer = await self.client.get(path, HEALTH_TIMEOUT)
            except NoAnswer:
                return False
            if answer.status != 404:
                return answer.status < 500
        return True

    async def models(self) -> tuple[str, ...] | Answer:
        """The names that it serves; the answer itself where that is something else. Raises NoAnswer."""
        answer = await self.client.get("/v1/models", HEALTH_TIMEOUT)
        if answer.status == 200:
            with contextlib.suppress(msgspec.DecodeError, KeyError, TypeError, UnicodeDecodeError):
                return tuple(str(one["id"]) for one in msgspec.json.decode(answer.body)["data"])
        return answer

    async def adapt(self) -> None:
        """Find a new limit: from the engine's metrics, else from what came back since the last time."""
        now = asyncio.get_running_loop().time()
        if self.state != "up" or self.limit.fixed:
            return
        if self._no_metrics < 3:
            try:
                answer = await self.client.get("/metrics", 5.0)
                self.load = parse_metrics(answer.body.decode("utf-8", "replace")) if answer.status == 200 else None
            except NoAnswer:
                self.load = None
            if self.load is not None:
                self._no_metrics = 0
                self.limit.by_load(self.load, self.in_flight)
                return
            self._no_metrics += 1
        elif now - self._measured >= 1.0:
            seconds, self._measured = now - self._measured, now
            answered, self._answered_before = self.answered - self._answered_before, self.answered
            if answered >= 2 * self.limit.value and seconds < 60:
                self.limit.by_rate(answered / seconds, self.in_flight)
            elif answered:
                # Too few for a judgement: add them to the next measurement.
                self._measured, self._answered_before = now - seconds, self.answered - answered

    def close(self) -> None:
        """Stop looking for it, and close its connections."""
        if self._probe is not None:
            self._probe.cancel()
        self.client.close()

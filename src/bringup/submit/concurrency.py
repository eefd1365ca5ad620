"""How many requests an endpoint gets at a time; pure.

An engine that tells its own state (vLLM, SGLang: /metrics) is kept with a short queue: enough waits that no slot of its batch is
ever empty, and not more, so that the rest can go elsewhere. For any other server the limit climbs while throughput follows, and
halves when the server says 429 or 503, or times out.
"""

from __future__ import annotations

import re

from msgspec import Struct

START = 16
LEAST = 1
MOST = 4096
MOST_BLIND = 512
"""Without metrics nothing tells that requests only queue up: the climb ends here."""
GAIN = 1.03
"""A climb is kept where throughput grew at least by this factor."""

# Engine, name of the gauge of running requests, of waiting ones. Sources: vllm/v1/metrics/loggers.py,
# sglang/srt/observability/metrics_collector.py (gauges), both as served at /metrics.
GAUGES: tuple[tuple[str, str, str], ...] = (
    ("vllm", "vllm:num_requests_running", "vllm:num_requests_waiting"),
    ("sglang", "sglang:num_running_reqs", "sglang:num_queue_reqs"),
)


class Load(Struct, frozen=True):
    """What an engine says of itself: requests in its batch, requests in its queue."""

    engine: str
    running: int
    waiting: int


def parse_metrics(text: str) -> Load | None:
    """Load out of Prometheus text, summed over labels (one series a data-parallel rank); None where no engine is known by it."""
    for engine, running, waiting in GAUGES:
        values = [_sum(text, name) for name in (running, waiting)]
        if values[0] is not None and values[1] is not None:
            return Load(engine, values[0], values[1])
    return None


def _sum(text: str, name: str) -> int | None:
    found = re.findall(rf"^{re.escape(name)}(?:\{{[^}}]*\}})?[ \t]+([0-9.eE+-]+)", text, re.MULTILINE)
    try:
        return int(sum(float(value) for value in found)) if found else None
    except (ValueError, OverflowError):
        return None


class Limit:
    """The limit of one endpoint. ``fixed`` 0: found out."""

    def __init__(self, fixed: int = 0) -> None:
        self.fixed = fixed
        self.value = fixed or START
        self._best_rate = 0.0
        self._before = 0
        self._held = 0

    def by_load(self, load: Load, in_flight: int) -> None:
        """After the engine told its state: at most the batch and a short queue."""
        if self.fixed:
            return
        spare = max(4, load.running // 8)
        if load.waiting > 2 * spare:
            # What waits came from here at least in part; a queue is only wanted as long as it never runs dry.
            self.value = max(LEAST, min(self.value, load.running + spare))
        elif load.waiting < spare and in_flight >= self.value:
            self.value = min(MOST, max(self.value + spare, int(self.value * 1.5)))

    def by_rate(self, rate: float, in_flight: int) -> None:
        """After a while without metrics: ``rate`` answers a second, since the limit was last set."""
        if self.fixed or in_flight < self.value:
            return
        if rate > self._best_rate * GAIN or not self._before:
            self._best_rate = max(rate, self._best_rate)
            self._before, self.value = self.value, min(MOST_BLIND, max(self.value + 1, int(self.value * 1.5)))
            self._held = 0
        elif self.value > self._before:
            self.value = self._before  # the climb brought nothing
        else:
            self._held += 1
            if self._held >= 10:  # the load may have changed meanwhile: try again
                self._held, self._before, self._best_rate = 0, 0, rate

    def back_off(self) -> None:
        """After 429, 503 or a time-out."""
        if self.fixed:
            return
        self.value = max(LEAST, self.value // 2)
        self._best_rate, self._before, self._held = 0.0, self.value, -10

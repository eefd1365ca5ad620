"""How far a batch is: a few lines that rewrite themselves on a terminal, a plain line now and then elsewhere. On stderr."""

from __future__ import annotations

import shutil
import sys
import time

from bringup.submit.run import State
from bringup.submit.summary import duration

TERMINAL_SECONDS = 0.5
PLAIN_SECONDS = 10.0
SHOWN_ENDPOINTS = 16


class Progress:
    """Call it with the state as often as you like; it writes when it is time."""

    def __init__(self, quiet: bool = False) -> None:
        self._terminal = sys.stderr.isatty()
        self._quiet = quiet
        self._last = 0.0
        self._lines = 0
        self._note = ""
        self._before = (0.0, 0, 0)
        self._rate = self._tokens = 0.0

    def __call__(self, state: State) -> None:
        now = time.monotonic()
        changed = state.note != self._note
        if self._quiet or (now - self._last < (TERMINAL_SECONDS if self._terminal else PLAIN_SECONDS) and not changed):
            return
        if not self._last and not changed:
            self._last, self._before = now, (now, state.answered, state.completion_tokens)
            return
        self._measure(now, state)
        self._last = now
        if self._terminal:
            self._rewrite([self._line(state), *_endpoints(state), *([state.note] if state.note else [])])
        else:
            print(self._line(state) + (f"; {state.note}" if state.note else ""), file=sys.stderr, flush=True)
        self._note = state.note

    def _measure(self, now: float, state: State) -> None:
        seconds = now - self._before[0]
        if seconds <= 0.1:
            return
        rate, tokens = (
            (state.answered - self._before[1]) / seconds,
            (state.completion_tokens - self._before[2]) / seconds,
        )
        # On a terminal the numbers are shown twice a second: smoothed, so that they can be read.
        share = min(1.0, seconds / 3) if self._rate else 1.0
        self._rate += (rate - self._rate) * share
        self._tokens += (tokens - self._tokens) * share
        self._before = (now, state.answered, state.completion_tokens)

    def _line(self, state: State) -> str:
        done = state.done_before + state.answered + state.failed
        parts = [f"{done:,} done"]
        if state.failed:
            parts.append(f"{state.failed:,} without an answer")
        parts.append(f"{self._rate:,.0f} answers/s")
        if self._tokens:
            parts.append(f"{self._tokens:,.0f} tokens/s")
        parts.append(f"{state.in_flight:,} on their way")
        if state.fraction and self._rate > 0:
            left = max(0.0, done / state.fraction - done) + (state.in_flight if state.fraction >= 1 else 0)
            parts.append(f"{state.fraction:.0%} read, about {duration(left / self._rate)} left")
        return ", ".join(parts)

    def _rewrite(self, lines: list[str]) -> None:
        width = shutil.get_terminal_size().columns - 1
        up = f"\x1b[{self._lines}A" if self._lines else ""
        sys.stderr.write(up + "".join(f"\x1b[2K{line[:width]}\n" for line in lines))
        # Lines that an earlier, longer picture left behind.
        if self._lines > len(lines):
            extra = self._lines - len(lines)
            sys.stderr.write("\x1b[2K\n" * extra + f"\x1b[{extra}A")
        sys.stderr.flush()
        self._lines = len(lines)


def _endpoints(state: State) -> list[str]:
    lines = []
    for one in state.endpoints[:SHOWN_ENDPOINTS]:
        said = f" (running {one.load.running}, waiting {one.load.waiting})" if one.load else ""
        health = "up" if one.state == "up" else f"{one.state}: {one.reason}"
        lines.append(f"  {one.url}  {one.in_flight}/{one.limit.value}{said}  {one.answered:,} answers  {health}")
    if len(state.endpoints) > SHOWN_ENDPOINTS:
        lines.append(f"  and {len(state.endpoints) - SHOWN_ENDPOINTS} more")
    return lines

"""Walks the signature tables over a text: which kinds of failure it speaks for, how strongly, and in which lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from bringup.collect.report import Reported
from bringup.collect.reports.lines import Line
from bringup.explain.logs_conditions import holds
from bringup.explain.signatures import gpu, loader, machine, python, system, toolchain
from bringup.explain.signatures.row import Row

ROWS: tuple[Row, ...] = machine.ROWS + loader.ROWS + python.ROWS + toolchain.ROWS + gpu.ROWS + system.ROWS

SHORT = 60
"""Lines up to which a text is taken for a person's report, in which every remark counts; in a longer one only lines that
themselves speak of a failure do, since lists and dumps name everything."""

_FAILURE = re.compile(
    r"error|fail|can ?not|can't|could ?n.t|could not|unable|not found|no such|undefined|denied|illegal|mismatch|incompatib|fatal"
    r"|missing|invalid|abort|kill|crash|hang|hung|stuck|panic|exceed|out of (?:memory|resource)|too (?:old|new|small|few)|\bxid\b"
    r"|corrupt|refused|unknown|garbage|gibberish|wrong|broken|\blost\b|fallen|no kernel image|no space|do(?:es)? ?n.t|\bnot\b|no longer"
    r"|unsupported|only support|requires?\b|\bno \w+|traceback|unsatisfied|read-only|unauthorized|unclean|busy|insufficient|conflict"
    r"|\bnan\b|oom|segfault|sigsegv|bus error|rejected|lockdown|fault|deadlock|timeout|timed out|already registered"
)
_NOTHING = re.compile(
    r"(?:[:=]\s{0,40}(?:n/a|none|0|no|false|disabled|requested functionality has been deprecated)\s*$)|^\s*(?:[a-z]+ ){0,2}errors?:?\s*$"
)

WEIGHED = 400_000
"""Characters of failing lines that a long text is judged by."""

_NUMBER = re.compile(r"\d+")

REMARK = 15
"""Lines up to which a text is a remark about something that went wrong, whatever its words."""

FADE = 0.5
"""Each further wording of a kind counts this much of the one before: many weak hints never outweigh one that settles it."""


class Candidate(NamedTuple):
    """A kind that the text speaks for. ``lines``: indexes of its evidence, strongest first. ``best``: its strongest row."""

    kind: str
    score: float
    best: float
    lines: tuple[int, ...]


class Text:
    """A text as the tables see it: lower case, one string, with the way back to its lines."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.starts: list[int] = []
        parts: list[str] = []
        at = 0
        for line in lines:
            lower = _without_flags(line.text.lower())
            self.starts.append(at)
            parts.append(lower)
            at += len(lower) + 1
        self.lower = "\n".join(parts)
        self._found: dict[str, tuple[int, ...]] = {}
        self._failing: dict[int, bool] = {}
        self._failures: tuple[list[tuple[int, int]], str] | None = None
        self.short = len(lines) <= SHORT
        self.fails = len(lines) <= REMARK or any(self.failing(index) for index in range(len(lines)))

    def failing(self, index: int) -> bool:
        """Whether a line itself speaks of a failure."""
        known = self._failing.get(index)
        if known is None:
            lower = self.lines[index].text.lower()
            quiet = self.lines[index].quiet or _NOTHING.search(lower) is not None
            known = self._failing[index] = not quiet and _FAILURE.search(lower) is not None
        return known

    def evidence(self, pattern: str) -> tuple[int, ...]:
        """Indexes of the first lines that a pattern matches and that count, at most four."""
        if self.short:
            return self.find(pattern) if self.fails else ()
        if self._failures is None:
            self._failures = self._only_failures()
        starts, lower = self._failures
        hits: list[int] = []
        for match in _compiled(pattern).finditer(lower):
            index = starts[bisect_right(starts, (match.start(), len(self.lines))) - 1][1]
            if not hits or hits[-1] != index:
                hits.append(index)
                if len(hits) == 4:
                    break
        return tuple(hits)

    def _only_failures(self) -> tuple[list[tuple[int, int]], str]:
        """Of a long text the failing lines, once a shape: (start in the string, index), and the string."""
        chosen: list[int] = []
        seen: set[str] = set()
        for index, line in enumerate(self.lines):
            if self.failing(index):
                shape = _NUMBER.sub("0", line.text[:300])
                if shape not in seen:
                    seen.add(shape)
                    chosen.append(index)
        if sum(len(self.lines[index].text) for index in chosen) > WEIGHED:
            chosen = _ends([(index, len(self.lines[index].text)) for index in chosen], WEIGHED // 2)
        starts: list[tuple[int, int]] = []
        parts: list[str] = []
        at = 0
        for index in chosen:
            lower = _without_flags(self.lines[index].text.lower())
            starts.append((at, index))
            parts.append(lower)
            at += len(lower) + 1
        return starts, "\n".join(parts)

    def find(self, pattern: str) -> tuple[int, ...]:
        """Indexes of the first lines that a pattern matches, at most four."""
        known = self._found.get(pattern)
        if known is None:
            hits: list[int] = []
            for match in _compiled(pattern).finditer(self.lower):
                index = bisect_right(self.starts, match.start()) - 1
                if not hits or hits[-1] != index:
                    hits.append(index)
                if len(hits) == 4:
                    break
            known = self._found[pattern] = tuple(hits)
        return known


def _without_flags(lower: str) -> str:
    """A compiler's command line up to its first option: its paths and macros name much that is no message."""
    if lower.count(" -d") + lower.count(" -i") >= 3 and "error" not in lower:
        return lower[: lower.find(" -")].ljust(len(lower))
    return lower


def _ends(sizes: Sequence[tuple[int, int]], budget: int) -> list[int]:
    """The first and the last indexes whose sizes sum up to the budget each: the root is at the start, the verdict at the end."""
    front: list[int] = []
    back: list[int] = []
    for source, target in ((sizes, front), (tuple(reversed(sizes)), back)):
        left = budget
        for index, size in source:
            left -= size
            if left < 0:
                break
            target.append(index)
    return sorted({*front, *back})


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


def candidates(text: Text, said: Reported, rows: Iterable[Row] = ROWS) -> list[Candidate]:
    """The kinds that a text speaks for, best first."""
    points: dict[str, list[tuple[float, tuple[int, ...]]]] = {}
    for row in rows:
        hits = text.evidence(row.pattern)
        if not hits:
            continue
        if row.also and not text.find(row.also):
            continue
        if row.unless and text.find(row.unless):
            continue
        if row.when and not holds(row.when, said, text.lower):
            continue
        points.setdefault(row.kind, []).append((row.points, hits))
    found = []
    for kind, rows_of_kind in points.items():
        rows_of_kind.sort(key=lambda one: -one[0])
        positive = [one for one in rows_of_kind if one[0] > 0]
        if not positive:
            continue
        score = sum(weight * FADE**place for place, (weight, _) in enumerate(positive))
        score += sum(weight for weight, _ in rows_of_kind if weight < 0)
        lines = tuple(dict.fromkeys(hit for _, hits in positive for hit in hits))[:6]
        found.append(Candidate(kind, score, positive[0][0], lines))
    return sorted(found, key=lambda one: (-one.score, one.kind))

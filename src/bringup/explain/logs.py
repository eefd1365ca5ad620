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
            lower = line.text.lower()
            self.starts.append(at)
            parts.append(lower)
            at += len(lower) + 1
        self.lower = "\n".join(parts)
        self._found: dict[str, tuple[int, ...]] = {}

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


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


def candidates(text: Text, said: Reported, rows: Iterable[Row] = ROWS) -> list[Candidate]:
    """The kinds that a text speaks for, best first."""
    points: dict[str, list[tuple[float, tuple[int, ...]]]] = {}
    for row in rows:
        hits = text.find(row.pattern)
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

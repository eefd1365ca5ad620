"""Findings as sentences: "Because A and B, C." A premise that several findings share is said once, and cited as (1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bringup.findings import Finding, Premise


class Narrator:
    """Says findings one after the other. Remembers which shared premises it has said, so the order of calls matters."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        uses = Counter(premise for finding in findings for premise in dict.fromkeys(finding.because))
        self._shared = {premise for premise, count in uses.items() if count > 1}
        self._numbers: dict[Premise, int] = {}

    def say(self, finding: Finding) -> str:
        """The finding as one sentence. A shared premise gets its number where it is said first."""
        clauses: list[str] = []
        cited: list[str] = []
        for premise in dict.fromkeys(finding.because):
            if premise not in self._shared:
                clauses.append(premise.text)
            elif premise in self._numbers:
                cited.append(f"({self._numbers[premise]})")
            else:
                number = self._numbers[premise] = len(self._numbers) + 1
                clauses.append(f"{premise.text} ({number})")
        reasons: list[str] = []
        if cited:
            reasons.append(f"because of {joined(cited)}")
        if clauses:
            reasons.append(f"because {joined(clauses)}")
        head = f"{', and '.join(reasons)}, " if reasons else ""
        sentence = f"{head}{finding.therefore}."
        return sentence[0].upper() + sentence[1:] if reasons else sentence


def joined(clauses: Sequence[str]) -> str:
    """``A``, ``A and B``, ``A, and B, and C``; clauses with commas of their own are always set apart by one."""
    if len(clauses) == 2 and not any("," in clause for clause in clauses):
        return " and ".join(clauses)
    return ", and ".join(clauses)

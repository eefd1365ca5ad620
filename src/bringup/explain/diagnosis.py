"""From a text to its causes: candidates of the signature tables, ranked, with evidence, confidence and a way out."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from bringup.collect.report import Reported, read_report
from bringup.collect.reports.lines import Log
from bringup.explain.logs import SHORT, Candidate, Text, candidates
from bringup.explain.signatures import meaning_build, meaning_machine, meaning_run, meaning_stack
from bringup.explain.signatures.row import Meaning
from bringup.findings import Finding, Remedy

SCHEMA = "bringup.diagnosis/1"

MEANINGS: dict[str, Meaning] = {
    meaning.kind: meaning
    for meaning in (
        *meaning_machine.MEANINGS,
        *meaning_stack.MEANINGS,
        *meaning_build.MEANINGS,
        *meaning_run.MEANINGS,
    )
}

MOST = 8
"""Causes that are named at most."""

_CONFIDENCE = (
    # (least score, ((least lead over the best rival, confidence), ...)); measured by tests/measure_diagnosis.py, and rounded
    # down, since the tables have seen the cases that they are measured on.
    (9.0, ((3.0, 0.95), (1.5, 0.85), (0.5, 0.7), (0.0, 0.5))),
    (6.0, ((3.0, 0.85), (1.5, 0.75), (0.5, 0.6), (0.0, 0.45))),
    (4.5, ((3.0, 0.65), (1.5, 0.55), (0.5, 0.45), (0.0, 0.35))),
    (0.0, ((3.0, 0.45), (1.5, 0.4), (0.5, 0.35), (0.0, 0.25))),
)


class Evidence(Struct, frozen=True):
    """A line of the text, with its number from 1."""

    line: int
    text: str


class Cause(Struct, frozen=True):
    """One cause. ``rule`` is the code of the rule that checks for it on a machine, None where there is none."""

    kind: str
    rule: str | None
    confidence: float
    evidence: tuple[Evidence, ...]
    therefore: str
    separating_facts: tuple[str, ...]
    remedies: tuple[Remedy, ...]
    misread_as: str = ""


class Diagnosis(Struct, frozen=True, kw_only=True):
    """All causes of a text, best first; none where nothing in it speaks of a failure."""

    schema: Literal["bringup.diagnosis/1"] = "bringup.diagnosis/1"
    causes: tuple[Cause, ...]
    lines: int = 0
    skipped: int = 0


def diagnose(log: Log, codes: dict[str, str] | None = None, findings: tuple[Finding, ...] = ()) -> Diagnosis:
    """The causes that a text speaks for.

    ``codes``: per kind the code of the rule that checks for it. ``findings``: what rules found on the text's or a machine's
    facts; those of a kind that the text speaks for strengthen it, others follow behind.
    """
    said = read_report(log.lines)
    text = Text(log.lines)
    found = _standing(candidates(text, said), len(log.lines))
    by_kind = {finding.kind: finding for finding in findings if finding.severity == "error"}
    found = sorted(
        (one._replace(score=one.score + 2) if one.kind in by_kind else one for one in found),
        key=lambda one: (-one.score, one.lines[0], one.kind),
    )[:MOST]
    causes = [_cause(one, found, log, by_kind.get(one.kind), codes or {}, said) for one in found]
    if causes:
        named = {cause.kind for cause in causes}
        causes += [_from_rule(finding) for kind, finding in by_kind.items() if kind not in named][: MOST - len(causes)]
    return Diagnosis(causes=tuple(causes), lines=len(log.lines), skipped=log.skipped)


def to_json(diagnosis: Diagnosis) -> bytes:
    """As `bringup.diagnosis/1`, indented."""
    return msgspec.json.format(msgspec.json.encode(diagnosis), indent=2)


def _standing(found: list[Candidate], lines: int) -> list[Candidate]:
    """Those that may be named: a remark is enough in a short report, a long log must hold a telling message."""
    least = 3.0 if lines <= SHORT else 6.0
    top = max((one.score for one in found), default=0.0)
    return [one for one in found if one.best >= least and one.score >= 3.0 and one.score >= top * 0.25]


def _confidence(one: Candidate, found: list[Candidate]) -> float:
    rivals = [other.score for other in found if other.kind != one.kind and set(other.lines) & set(one.lines)]
    lead = one.score - max(rivals, default=0.0)
    if lead < 0:  # behind a rival on the same lines
        return round(max(0.05, 0.3 + lead * 0.04), 2)
    row = next(steps for least, steps in _CONFIDENCE if one.score >= least)
    return next(value for least, value in row if lead >= least)


def _cause(
    one: Candidate, found: list[Candidate], log: Log, finding: Finding | None, codes: dict[str, str], said: Reported
) -> Cause:
    meaning = MEANINGS[one.kind]
    lines = sorted((log.lines[index] for index in one.lines), key=lambda line: line.number)
    remedies: tuple[Remedy, ...] = (Remedy(meaning.remedy, meaning.commands),)
    if finding is not None and finding.remedies:
        remedies = finding.remedies
    return Cause(
        kind=one.kind,
        rule=finding.rule if finding is not None else codes.get(one.kind),
        confidence=_confidence(one, found),
        evidence=tuple(Evidence(line.number, line.text.strip()[:400]) for line in lines),
        therefore=finding.therefore if finding is not None else meaning.therefore,
        separating_facts=(meaning.separates,) if meaning.separates else (),
        remedies=remedies,
        misread_as=meaning.misleads,
    )


def _from_rule(finding: Finding) -> Cause:
    return Cause(
        kind=finding.kind,
        rule=finding.rule,
        confidence=0.3,
        evidence=tuple(
            Evidence(int(source.removeprefix("line ")) if source.removeprefix("line ").isdigit() else 0, premise.text)
            for premise in finding.because
            for source in (premise.source,)
        ),
        therefore=finding.therefore,
        separating_facts=(),
        remedies=finding.remedies,
        misread_as=finding.misread_as,
    )


def render_text(diagnosis: Diagnosis, name: str) -> str:
    """For a person: each cause with its evidence, what follows, what would separate, what to do."""
    if not diagnosis.causes:
        return f"{name}: nothing in {diagnosis.lines} lines speaks of a failure that bringup knows\n"
    out: list[str] = []
    for place, cause in enumerate(diagnosis.causes, 1):
        title = f"{place}. {cause.kind}" + (f" [{cause.rule}]" if cause.rule else "")
        out.append(f"{title}, confidence {cause.confidence:.2f}")
        out += [f"   line {evidence.line}: {evidence.text[:200]}" for evidence in cause.evidence[:4]]
        out.append(f"   Therefore: {cause.therefore}")
        if cause.misread_as:
            out.append(f"   Misleading: {cause.misread_as}")
        out += [f"   To be sure: {fact}" for fact in cause.separating_facts]
        for remedy in cause.remedies:
            out.append(f"   What to do: {remedy.summary}")
            out += [f"       {command}" for command in remedy.commands]
        out.append("")
    if diagnosis.skipped:
        out.append(f"{diagnosis.skipped} lines without a word of an error were passed over")
    return "\n".join(out).rstrip() + "\n"

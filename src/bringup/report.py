"""The report: findings with ids, what masks what, the cascade, what could not be judged, and the layers. Pure values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from bringup.facts import Driver, Facts, Gpu, Known
from bringup.findings import SEVERITIES, Finding, Severity, UnknownVerdict

SCHEMA = "bringup.report/1"

Status = Literal["ok", "warning", "error", "unknown"]


class Reported(Struct, frozen=True):
    """A finding with its place in the report. ``masks``: ids of findings that stay hidden until this one is repaired."""

    id: str
    finding: Finding
    masks: tuple[str, ...] = ()


class RuleFault(Struct, frozen=True):
    """A rule that failed while it judged: a fault of bringup's own. ``traceback`` as Python prints it."""

    rule: str
    traceback: str


class Evaluation(Struct, frozen=True):
    """What all rules said. ``findings`` in the order in which a start would meet them."""

    findings: tuple[Reported, ...]
    unknown: tuple[UnknownVerdict, ...]
    faults: tuple[RuleFault, ...] = ()
    asked: int = 0
    """How many rules were asked, those that failed among them."""


class Layer(Struct, frozen=True):
    """One layer of the stack, bottom first, in a line."""

    layer: str
    status: Status
    summary: str


class Report(Struct, frozen=True):
    """Everything that a rendering shows."""

    version: str
    target: str
    gpus: tuple[Gpu, ...]
    driver: Driver | None
    findings: tuple[Reported, ...]
    cascade: tuple[str, ...]
    unknown: tuple[UnknownVerdict, ...]
    layers: tuple[Layer, ...]

    def by_id(self, identifier: str) -> Reported:
        """The finding of that id. Raises KeyError where there is none."""
        for one in self.findings:
            if one.id == identifier:
                return one
        raise KeyError(identifier)

    def count(self, severity: Severity) -> int:
        """How many findings have exactly that severity."""
        return sum(one.finding.severity == severity for one in self.findings)

    def worst(self) -> Severity | None:
        """The worst severity among the findings, None where there are none."""
        return next((severity for severity in SEVERITIES if self.count(severity)), None)


def mask(findings: Sequence[Finding]) -> tuple[Reported, ...]:
    """Number findings that are in the order of a start, F1 first, and say which stay hidden behind which.

    A fatal error hides every later error. A finding that is not fatal hides the later ones about its ``hides``.
    """
    ids = [f"F{position}" for position in range(1, len(findings) + 1)]
    return tuple(
        Reported(
            ids[position],
            finding,
            tuple(ids[later] for later in range(position + 1, len(findings)) if _hides(finding, findings[later])),
        )
        for position, finding in enumerate(findings)
    )


def _hides(finding: Finding, later: Finding) -> bool:
    if finding.fatal and finding.severity == "error" and later.severity == "error":
        return True
    return later.subject in finding.hides


def build(facts: Facts, evaluation: Evaluation, layers: tuple[Layer, ...], version: str) -> Report:
    """Put a report together. The cascade holds errors and warnings: what a start would or might meet, in order."""
    return Report(
        version=version,
        target=facts.target,
        gpus=facts.gpus.value if isinstance(facts.gpus, Known) else (),
        driver=facts.driver.value if isinstance(facts.driver, Known) else None,
        findings=evaluation.findings,
        cascade=tuple(one.id for one in evaluation.findings if one.finding.severity != "info"),
        unknown=evaluation.unknown,
        layers=layers,
    )

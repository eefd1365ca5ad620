"""The report as JSON, schema ``bringup.report/1``: docs/schema/report.schema.json is generated from these types.

Fields are never taken away or renamed within a schema's number; further ones may be added.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from bringup.findings import Severity, Stage
from bringup.report import SCHEMA, Report, Status


class GpuJson(Struct, frozen=True):
    """``compute_capability`` as NVIDIA writes it: 12.0."""

    name: str
    compute_capability: str
    count: int


class DriverJson(Struct, frozen=True):
    """``cuda`` is the CUDA version that the driver implements, '' where that is not known."""

    version: str
    cuda: str


class PremiseJson(Struct, frozen=True):
    """A clause of the explanation, and where it was read."""

    text: str
    source: str


class RemedyJson(Struct, frozen=True):
    """A way out. ``safe``: it cannot make anything worse."""

    summary: str
    commands: tuple[str, ...]
    safe: bool


class FindingJson(Struct, frozen=True):
    """One incompatibility. ``detail`` is the whole evidence, with C++ names as the linker has them."""

    id: str
    rule: str
    kind: str
    severity: Severity
    stage: Stage
    subject: str
    because: tuple[PremiseJson, ...]
    therefore: str
    predicted_error: str
    remedies: tuple[RemedyJson, ...]
    masks: tuple[str, ...]
    misread_as: str
    hints: tuple[str, ...]
    detail: tuple[str, ...]


class UnknownJson(Struct, frozen=True):
    """A rule that could not be asked; ``missing`` is empty where the rule itself failed."""

    rule: str
    missing: tuple[str, ...]
    reason: str


class LayerJson(Struct, frozen=True):
    """One layer of the stack."""

    layer: str
    status: Status
    summary: str


class ReportJson(Struct, frozen=True):
    """Everything that `bringup check` found. ``cascade``: ids of errors and warnings in the order in which a start meets them."""

    schema: Literal["bringup.report/1"]
    version: str
    target: str
    gpus: tuple[GpuJson, ...]
    driver: DriverJson | None
    findings: tuple[FindingJson, ...]
    cascade: tuple[str, ...]
    unknown: tuple[UnknownJson, ...]
    layers: tuple[LayerJson, ...]


def report_json(report: Report) -> ReportJson:
    """The report in the shape of its schema."""
    assert SCHEMA == "bringup.report/1"
    return ReportJson(
        schema="bringup.report/1",
        version=report.version,
        target=report.target,
        gpus=tuple(GpuJson(one.name, one.compute_capability, one.count) for one in report.gpus),
        driver=DriverJson(report.driver.version, report.driver.cuda) if report.driver is not None else None,
        findings=tuple(
            FindingJson(
                id=one.id,
                rule=one.finding.rule,
                kind=one.finding.kind,
                severity=one.finding.severity,
                stage=one.finding.stage,
                subject=one.finding.subject,
                because=tuple(PremiseJson(premise.text, premise.source) for premise in one.finding.because),
                therefore=one.finding.therefore,
                predicted_error=one.finding.predicted_error,
                remedies=tuple(RemedyJson(way.summary, way.commands, way.safe) for way in one.finding.remedies),
                masks=one.masks,
                misread_as=one.finding.misread_as,
                hints=one.finding.hints,
                detail=one.finding.detail,
            )
            for one in report.findings
        ),
        cascade=report.cascade,
        unknown=tuple(UnknownJson(one.rule, one.missing, one.reason) for one in report.unknown),
        layers=tuple(LayerJson(one.layer, one.status, one.summary) for one in report.layers),
    )


def render_json(report: Report) -> str:
    """Indented JSON, one value a line, with a line break at its end."""
    return msgspec.json.format(msgspec.json.encode(report_json(report)), indent=2).decode() + "\n"

"""The report as SARIF 2.1.0, the format that code hosts and editors show as annotations."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from bringup.evaluate.registry import RULES, RuleModule
from bringup.explain.demangle import demangle_text
from bringup.explain.rules import summary_of
from bringup.explain.sentence import Narrator
from bringup.findings import Severity
from bringup.report import Report, Reported

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}


def render_sarif(report: Report, rules: Sequence[RuleModule] = RULES) -> str:
    """Indented SARIF with a line break at its end."""
    return msgspec.json.format(msgspec.json.encode(sarif(report, rules)), indent=2).decode() + "\n"


def sarif(report: Report, rules: Sequence[RuleModule]) -> dict[str, Any]:
    """The log as SARIF lays it down: a border format, so plain mappings."""
    indices = {module.RULE.code: position for position, module in enumerate(rules)}
    # Each result stands alone where it is shown, so that no premise is cited by number.
    results = [_result(one, indices, Narrator([one.finding]).say(one.finding)) for one in report.findings]
    return {
        "$schema": SCHEMA_URI,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "bringup",
                        "semanticVersion": report.version,
                        "rules": [_rule(module) for module in rules],
                    }
                },
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {
                                "level": "error" if not one.missing else "note",
                                "message": {"text": f"{one.rule} was not judged: {one.reason}"},
                                **(
                                    {"associatedRule": {"id": one.rule, "index": indices[one.rule]}}
                                    if one.rule in indices
                                    else {}
                                ),
                            }
                            for one in report.unknown
                        ],
                    }
                ],
                "columnKind": "utf16CodeUnits",
                "results": results,
                "properties": {"target": report.target},
            }
        ],
    }


def _rule(module: RuleModule) -> dict[str, Any]:
    rule = module.RULE
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.kind.split("_")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": summary_of(module)},
        "help": {"text": (module.__doc__ or rule.title).strip(), "markdown": (module.__doc__ or rule.title).strip()},
        "properties": {"kind": rule.kind, "stage": rule.stage},
    }


def _result(one: Reported, indices: dict[str, int], sentence: str) -> dict[str, Any]:
    finding = one.finding
    ways = "".join(
        f"\n\nRepair: {way.summary}" + "".join(f"\n    {command}" for command in way.commands)
        for way in finding.remedies
    )
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": demangle_text(sentence) + ways},
        "locations": [_location(finding.subject)],
        "partialFingerprints": {"bringup/1": hashlib.sha256(f"{finding.rule}\0{finding.subject}".encode()).hexdigest()},
        "properties": {
            "id": one.id,
            "kind": finding.kind,
            "stage": finding.stage,
            "masks": list(one.masks),
            "predictedError": finding.predicted_error,
        },
    }
    if finding.rule in indices:
        result["ruleIndex"] = indices[finding.rule]
    return result


def _location(subject: str) -> dict[str, Any]:
    if "/" in subject or ".so" in subject:
        return {"physicalLocation": {"artifactLocation": {"uri": quote(subject)}}}
    return {"logicalLocations": [{"fullyQualifiedName": subject}]}

"""SARIF 2.1.0: against the required properties and value sets of the standard (sections 3.13 to 3.27)."""

import json
from urllib.parse import unquote, urlsplit

import pytest
from sarif_pydantic import Sarif

from bringup.evaluate.registry import RULES
from bringup.explain.sarif import render_sarif
from bringup.report import Report

from .reports import CASCADE, CLEAN, HOSTILE, SYMBOL


@pytest.mark.parametrize("report", [CASCADE, CLEAN, HOSTILE])
def test_keeps_to_the_standard(report: Report) -> None:
    log = json.loads(render_sarif(report))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "bringup"
    for rule in driver["rules"]:
        assert rule["id"]
        assert rule["shortDescription"]["text"]
        assert rule["help"]["text"]
    assert len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"])
    for result in run["results"]:
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        if "ruleIndex" in result:
            assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        for location in result["locations"]:
            physical = location.get("physicalLocation")
            if physical:
                uri = physical["artifactLocation"]["uri"]
                assert not urlsplit(uri).scheme
                assert " " not in uri
                assert "<" not in uri
            else:
                assert location["logicalLocations"][0]["fullyQualifiedName"]
    for invocation in run["invocations"]:
        assert isinstance(invocation["executionSuccessful"], bool)
        for notification in invocation["toolExecutionNotifications"]:
            assert notification["level"] in ("none", "note", "warning", "error")
            assert notification["message"]["text"]


def test_models_of_the_standard_accept_it() -> None:
    for report in (CASCADE, CLEAN, HOSTILE):
        log = Sarif.model_validate(json.loads(render_sarif(report)))
        assert len(log.runs[0].results or []) == len(report.findings)


def test_names_what_was_found() -> None:
    (run,) = json.loads(render_sarif(CASCADE))["runs"]
    assert [(one["ruleId"], one["level"]) for one in run["results"]] == [
        ("LIB001", "error"),
        ("ABI001", "error"),
        ("GPU003", "note"),
        ("JIT003", "error"),
        ("JIT008", "warning"),
    ]
    first = run["results"][0]
    assert (
        unquote(first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
        == CASCADE.findings[0].finding.subject
    )
    assert "uv pip install --upgrade sgl-kernel" in first["message"]["text"]
    assert SYMBOL in run["results"][1]["properties"]["predictedError"]
    assert len(run["tool"]["driver"]["rules"]) == len(RULES)


def test_fingerprints_tell_findings_apart_and_stay() -> None:
    (run,) = json.loads(render_sarif(CASCADE))["runs"]
    prints = [one["partialFingerprints"]["bringup/1"] for one in run["results"]]
    assert len(set(prints)) == len(prints)
    assert render_sarif(CASCADE) == render_sarif(CASCADE)

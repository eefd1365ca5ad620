import json
from pathlib import Path

import jsonschema
import pytest
from syrupy.assertion import SnapshotAssertion

from bringup.explain.json import render_json
from bringup.report import Report

from .reports import CASCADE, CLEAN, HOSTILE, SYMBOL

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/report.schema.json").read_text())


@pytest.mark.parametrize("report", [CASCADE, CLEAN, HOSTILE])
def test_fits_its_schema(report: Report) -> None:
    jsonschema.validate(json.loads(render_json(report)), SCHEMA)


def test_the_schema_refuses_what_does_not_fit() -> None:
    broken = json.loads(render_json(CASCADE))
    broken["findings"][0]["severity"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, SCHEMA)


def test_the_contract(snapshot: SnapshotAssertion) -> None:
    assert render_json(CASCADE) == snapshot


def test_has_raw_symbols_and_masks() -> None:
    found = json.loads(render_json(CASCADE))
    assert found["findings"][1]["detail"] == [f"undefined symbol: {SYMBOL}"]
    assert found["findings"][0]["masks"] == ["F2", "F4"]
    assert found["cascade"] == ["F1", "F2", "F4", "F5"]
    assert found["gpus"] == [{"name": "RTX PRO 6000 Blackwell", "compute_capability": "12.0", "count": 8}]

"""Reports of machines that tests do not have: still of today's schema, and still what was true there."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

ROOT = Path(__file__).parent.parent


def test_a_check_on_an_h200() -> None:
    """torch 2.11.0 with CUDA 13.0 and driver 580: everything there works, 846 of 846 libraries opened as predicted."""
    report = json.loads((ROOT / "tests/data/recorded/h200-check.json").read_text())
    schema = json.loads((ROOT / "docs/schema/report.schema.json").read_text())
    jsonschema.validate(report, schema)
    assert report["gpus"] == [{"name": "NVIDIA H200", "compute_capability": "9.0", "count": 1}]
    assert report["driver"] == {"version": "580.159.04", "cuda": "13.0"}
    assert not [one for one in report["findings"] if one["severity"] == "error"]
    assert not [one for one in report["layers"] if one["status"] in ("error", "unknown")]

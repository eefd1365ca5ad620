"""Kernel wheels against torch wheels, judged from the wheels, against what the processes really said.

`tests/data/ground_truth/sgl_kernel_x_torch.csv` holds what ``import torch; import sgl_kernel`` printed for published wheels.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from bringup.collect.targets import ReadOptions, parse_targets
from bringup.evaluate.engine import evaluate
from bringup.evaluate.openings import open_all
from bringup.pipeline import read_target

ROWS = list(csv.DictReader((Path(__file__).parent.parent / "data/ground_truth/sgl_kernel_x_torch.csv").open()))
SMALL = {("0.3.21", "2.9.1"), ("0.3.21", "2.11.0"), ("0.4.4", "2.11.0")}
"""Rows whose wheels fit into the downloads of a plain run; the others are left to ``nox -s truth``."""


def marks(row: dict[str, str]) -> list[pytest.MarkDecorator]:
    return [pytest.mark.wheels] if (row["kernel_version"], row["torch_version"]) in SMALL else [pytest.mark.truth]


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=marks(row), id=f"{row['kernel_version']}-{row['torch_version']}") for row in ROWS],
)
def test_what_the_process_said(row: dict[str, str], wheel_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRINGUP_CACHE_DIR", str(wheel_cache / "facts"))
    name = "sgl-kernel" if row["kernel_version"].startswith("0.3") else "sglang-kernel"
    target = parse_targets([f"{name}=={row['kernel_version']}", f"torch=={row['torch_version']}"])
    facts = read_target(target, ReadOptions(python="3.11"), print)
    found = {library.path: opening for library, opening in open_all(facts).openings}
    opening = found["sgl_kernel/sm100/common_ops.abi3.so"]
    errors = [one.finding for one in evaluate(facts).findings if one.finding.severity == "error"]
    if row["outcome"] == "loads":
        assert opening.loads
        assert not [one for one in errors if one.subject.startswith(("sgl_kernel", "torch/"))]
        assert not errors
    elif row["outcome"] == "missing_soname":
        assert row["name"] in {one.soname for one in opening.missing}
        assert any(one.rule == "LIB001" and one.subject == "sgl_kernel/sm100/common_ops.abi3.so" for one in errors)
    else:
        assert not opening.missing
        assert row["name"] in {one.symbol for one in opening.undefined}
        assert any(one.rule == "ABI001" and one.subject == "sgl_kernel/sm100/common_ops.abi3.so" for one in errors)

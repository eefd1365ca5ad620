"""How often `bringup diagnose` is right: top-1 and top-3 by family, calibration, and the misses by name.

    uv run python tests/measure_diagnosis.py CASES.yaml RENDER.py [--all]

Each settled case's text comes from RENDER.py and goes through the command's own entry, as a person would call it.
"""

from __future__ import annotations

import importlib.util
import io
import sys
from collections import defaultdict
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import yaml

from bringup.collect.reports.lines import read_text
from bringup.commands.diagnose import diagnose_log


def texts(cases: Path, render: Path, everything: bool = False) -> list[tuple[dict[str, str], str]]:
    """The cases with their texts, as the script RENDER.py prints them."""
    spec = importlib.util.spec_from_file_location("render", render)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = []
    loaded = yaml.safe_load(cases.read_text(encoding="utf-8"))
    vars(module)["yaml"] = SimpleNamespace(safe_load=lambda stream: loaded)  # it would parse the file once a case
    for case in loaded:
        if not everything and case["fix_status"] not in module.SETTLED:
            continue
        out, argv = io.StringIO(), sys.argv
        sys.argv = [str(render), str(cases), case["id"]]
        try:
            with redirect_stdout(out):
                module.main()
        finally:
            sys.argv = argv
        found.append((case, out.getvalue()))
    return found


def measure(cases: Path, render: Path, everything: bool = False) -> tuple[float, float, str]:
    """Shares of right first causes and of right kinds among the first three, and the table."""
    families: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    bins: dict[float, list[int]] = defaultdict(lambda: [0, 0])
    misses, brier, total = [], 0.0, [0, 0, 0]
    for case, text in texts(cases, render, everything):
        causes = diagnose_log(read_text(text)).causes
        kinds = [cause.kind for cause in causes]
        first, three = kinds[:1] == [case["kind"]], case["kind"] in kinds[:3]
        for counter in (families[case["layer"]], total):
            counter[0] += 1
            counter[1] += first
            counter[2] += three
        confidence = causes[0].confidence if causes else 0.0
        brier += (confidence - first) ** 2
        bins[round(confidence, 1)][0] += 1
        bins[round(confidence, 1)][1] += first
        if not first:
            misses.append(f"  {case['id']}: {case['kind']}; said {', '.join(kinds[:3]) or 'nothing'}")
    rows = [f"{'family':<20}{'cases':>6}{'top-1':>8}{'top-3':>8}"]
    for name, (count, one, three_of) in [*sorted(families.items()), ("all", total)]:
        rows.append(f"{name:<20}{count:>6}{one / count:>8.3f}{three_of / count:>8.3f}")
    rows += [
        "",
        f"calibration (Brier score {brier / max(total[0], 1):.3f})",
        f"{'confidence':<12}{'cases':>6}{'right':>8}",
    ]
    rows += [f"{value:<12}{count:>6}{right / count:>8.3f}" for value, (count, right) in sorted(bins.items())]
    rows += ["", "misses", *misses]
    return total[1] / total[0], total[2] / total[0], "\n".join(rows)


if __name__ == "__main__":
    print(measure(Path(sys.argv[1]), Path(sys.argv[2]), "--all" in sys.argv)[2])

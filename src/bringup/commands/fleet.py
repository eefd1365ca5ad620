"""``bringup check --targets FILE``: many places side by side, one table. One broken host never stops the others."""

from __future__ import annotations

import argparse
from pathlib import Path

from bringup.commands.check import exit_code, judge
from bringup.commands.common import note, private, read_stack, write_result
from bringup.errors import BringupError, UnreadableError, UsageError
from bringup.explain.page import visible
from bringup.explain.redact import redact, redact_struct
from bringup.facts import Facts, Known
from bringup.report import Evaluation, Report

MOST_TARGETS = 10_000
WORKERS = 16


def read_targets(path: Path) -> tuple[str, ...]:
    """The targets of a file, one a line; blank lines and what follows a # are passed over.

    Raises UnreadableError where the file cannot be read or names none, or too many.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(str(path), str(getattr(error, "strerror", None) or error).lower()) from error
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    found = tuple(line for line in lines if line)
    if not found:
        raise UnreadableError(str(path), "names no target")
    if len(found) > MOST_TARGETS:
        raise UnreadableError(str(path), f"names {len(found)} targets; at most {MOST_TARGETS} are read")
    return found


def run_fleet(arguments: argparse.Namespace) -> int:
    """Check all targets of a file. Returns 1 where one has findings, 3 where one could not be read and none has findings."""
    if arguments.target:
        raise UsageError("--targets FILE and TARGET do not go together")
    if arguments.format not in ("text", "json"):
        raise UsageError("--targets writes text or json")
    from bringup.collect.elsewhere import read_fleet

    targets = read_targets(Path(arguments.targets))
    note(f"bringup: {len(targets)} targets, up to {WORKERS} at a time")

    def read(target: str) -> Facts:
        one = argparse.Namespace(**{**vars(arguments), "target": [target]})
        return read_stack(one)

    rows: list[tuple[str, Facts | None, Report | BringupError]] = []
    codes = [0]
    for target, outcome in read_fleet(targets, read, WORKERS):
        if isinstance(outcome, BringupError):
            rows.append((target, None, outcome))
            codes.append(3)
            continue
        report, evaluation = judge(outcome)
        rows.append((target, outcome, report))
        codes.append(_code(report, evaluation, arguments.fail_on))
    if arguments.redact:
        rows = _redacted(rows)
    write_result(as_json(rows) if arguments.format == "json" else table(rows), arguments.output)
    return 1 if 1 in codes else max(codes)


def _redacted(
    rows: list[tuple[str, Facts | None, Report | BringupError]],
) -> list[tuple[str, Facts | None, Report | BringupError]]:
    own = private(*(target for target, _, _ in rows))
    return [
        (
            redact(target, own),
            facts,
            BringupError(redact(str(outcome), own))
            if isinstance(outcome, BringupError)
            else redact_struct(outcome, own),
        )
        for target, facts, outcome in rows
    ]


def _code(report: Report, evaluation: Evaluation, fail_on: str) -> int:
    return exit_code(report, evaluation, fail_on)


def table(rows: list[tuple[str, Facts | None, Report | BringupError]]) -> str:
    """One line a target: errors, warnings, GPUs, driver, and the first thing that a start would meet."""
    cells = [("target", "errors", "warnings", "GPUs", "driver", "first")]
    for target, _, outcome in rows:
        if isinstance(outcome, BringupError):
            cells.append((target, "-", "-", "-", "-", f"not read: {outcome}"))
            continue
        first = next((one.finding for one in outcome.findings if one.finding.severity == "error"), None)
        gpus = ", ".join(f"{gpu.count} x {gpu.name}" for gpu in outcome.gpus) or "unknown"
        driver = outcome.driver.version if outcome.driver is not None else "unknown"
        words = f"{first.kind}: {first.subject}" if first is not None else "nothing"
        cells.append((target, str(outcome.count("error")), str(outcome.count("warning")), gpus, driver, words))
    widths = [max(len(row[column]) for row in cells) for column in range(5)]
    lines = ["  ".join([*(row[column].ljust(widths[column]) for column in range(5)), row[5]]).rstrip() for row in cells]
    return "".join(f"{visible(line)}\n" for line in [*lines, *_differences(rows)])


def _differences(rows: list[tuple[str, Facts | None, Report | BringupError]]) -> list[str]:
    """Where the driver's release differs between targets: an LXC container and its host must agree."""
    releases: dict[str, list[str]] = {}
    for target, facts, _ in rows:
        if facts is not None and isinstance(facts.driver, Known):
            releases.setdefault(facts.driver.value.version, []).append(target)
    if len(releases) < 2:
        return []
    listed = "; ".join(
        f"{release} on {', '.join(targets[:3])}{' ...' if len(targets) > 3 else ''}"
        for release, targets in sorted(releases.items())
    )
    return ["", f"driver releases differ: {listed}"]


def as_json(rows: list[tuple[str, Facts | None, Report | BringupError]]) -> str:
    """``{"schema": "bringup.fleet/1", "targets": [{"target", "error" or "report"}]}``."""
    import json

    from bringup.explain.json import render_json

    found = [
        {"target": target, "error": str(outcome)}
        if isinstance(outcome, BringupError)
        else {"target": target, "report": json.loads(render_json(outcome))}
        for target, _, outcome in rows
    ]
    return json.dumps({"schema": "bringup.fleet/1", "targets": found}, indent=2) + "\n"

"""``bringup check``: read a stack without importing or running any of it, and report what does not fit together."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from bringup import __version__
from bringup.collect.parallel import collector_paused
from bringup.collect.targets import parse_targets
from bringup.commands.common import add_target_arguments, note, private, read_stack, with_options, write_result
from bringup.explain.redact import redact_struct
from bringup.facts import Facts
from bringup.findings import SEVERITIES
from bringup.report import Evaluation, Report, build

FORMATS = ("text", "json", "sarif", "html")
PIPED_WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    add_target_arguments(parser)
    parser.add_argument(
        "--format", choices=FORMATS, default="text", help="how to write the report (default: %(default)s)"
    )
    parser.add_argument(
        "--targets", metavar="FILE", help="check every target that the file names, one a line, and show one table"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the report there instead of standard output")
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", "never"),
        default="error",
        help="the least finding that makes the exit code 1 (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Check a target, or many. Returns the exit code."""
    if arguments.targets:
        from bringup.commands.fleet import run_fleet

        return run_fleet(arguments)
    with collector_paused():
        report, evaluation = _report(arguments)
    for fault in evaluation.faults:
        note(f"bringup: rule {fault.rule} failed, which is a fault of bringup's own; -v shows the traceback")
        if arguments.verbose:
            note(fault.traceback.rstrip())
    shown = redact_struct(report, private(*arguments.target)) if arguments.redact else report
    write_result(render(shown, arguments.format, arguments.output, arguments.verbose), arguments.output)
    return exit_code(report, evaluation, arguments.fail_on)


def _report(arguments: argparse.Namespace) -> tuple[Report, Evaluation]:
    target = parse_targets(arguments.target)
    if target.kind not in ("active", "environment"):
        return judge(read_stack(arguments))
    # An environment that has not changed since it was judged in the same way need not be read again.
    from bringup import remembered
    from bringup.collect.cache import CacheBeside
    from bringup.pipeline import Begun

    cache = CacheBeside.open()
    begun = Begun(Path(target.path) if target.path else None)
    outline = with_options(begun.bare, arguments)
    fingerprint = begun.fingerprint(cache)
    if fingerprint is not None:
        blob = cache.get(remembered.report_key(begun.with_machine(outline), fingerprint))
        report = remembered.decode(blob) if blob is not None else None
        if report is not None:
            return report, Evaluation(report.findings, report.unknown)
    import bringup.evaluate.engine  # noqa: F401 - the rules are imported while the machine is still looked at

    fingerprint, facts = begun.complete(outline, cache)
    report, evaluation = judge(facts)
    if not evaluation.faults:
        cache.put(remembered.report_key(begun.with_machine(outline), fingerprint), remembered.encode(report))
    cache.settle()
    return report, evaluation


def judge(facts: Facts) -> tuple[Report, Evaluation]:
    """Facts to report: the same facts give the same report."""
    from bringup.evaluate.engine import evaluate
    from bringup.evaluate.layers import layers

    evaluation = evaluate(facts)
    return build(facts, evaluation, layers(facts, evaluation.findings), __version__), evaluation


def render(report: Report, form: str, output: str | None, verbose: bool) -> str:
    """The report in one of `FORMATS`. Colour only where standard output is a terminal and takes the text."""
    if form == "json":
        from bringup.explain.json import render_json

        return render_json(report)
    if form == "sarif":
        from bringup.explain.sarif import render_sarif

        return render_sarif(report)
    if form == "html":
        from bringup.explain.html import render_html

        return render_html(report)
    from bringup.explain.text import render_text, text_lines

    if output or sys.stdout is None or not sys.stdout.isatty():
        return render_text(report, width=PIPED_WIDTH, verbose=verbose)
    from bringup.explain.terminal import coloured

    width = shutil.get_terminal_size().columns
    return coloured(text_lines(report, width=width, verbose=verbose), width)


def exit_code(report: Report, evaluation: Evaluation, fail_on: str) -> int:
    """0 nothing at or above ``fail_on``, 1 findings, 4 where a rule failed and "nothing wrong" can therefore not be said."""
    if fail_on == "never":
        return 0
    counted = SEVERITIES[: SEVERITIES.index("error" if fail_on == "error" else "warning") + 1]
    if any(report.count(severity) for severity in counted):
        return 1
    return 4 if evaluation.faults else 0

"""``bringup diagnose``: name the root cause in any text.

Exit codes: 0 nothing in the text speaks of a failure, 1 causes were found, 2 usage, 3 the text cannot be read.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from bringup.collect.report import read_report
from bringup.collect.reports.lines import Log, read_path
from bringup.commands.common import note, private, write_result
from bringup.errors import UnreadableError
from bringup.explain.diagnosis import Diagnosis, diagnose, render_text, to_json
from bringup.facts import Facts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's arguments."""
    parser.add_argument("file", metavar="FILE|-", help="a log, a traceback, a whole report; - reads standard input")
    parser.add_argument("--target", metavar="TARGET", help="a stack whose facts shall be taken into account")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to write the result")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the result there instead of to standard output")
    parser.add_argument(
        "--follow", action="store_true", help="read on while the file grows; tell when the first cause changes"
    )
    parser.add_argument(
        "--redact", action="store_true", help="leave out users, hosts, home folders, addresses and tokens"
    )


def run(arguments: argparse.Namespace) -> int:
    """Diagnose, and return the exit code."""
    facts = _target_facts(arguments.target) if arguments.target else None
    if arguments.follow:
        return _follow(arguments, facts)
    diagnosis = diagnose_log(read_path(arguments.file, sys.stdin.buffer), facts)
    _write(diagnosis, arguments)
    return 1 if diagnosis.causes else 0


def diagnose_log(log: Log, facts: Facts | None = None) -> Diagnosis:
    """Diagnose what was read. The same rules as in ``check`` are asked of the facts that the text states, or of ``facts``."""
    from bringup.evaluate.engine import evaluate
    from bringup.evaluate.registry import RULES

    codes: dict[str, str] = {}
    for module in RULES:
        codes.setdefault(module.RULE.kind, module.RULE.code)
    evaluation = evaluate(facts if facts is not None else read_report(log.lines).facts)
    return diagnose(log, codes, tuple(reported.finding for reported in evaluation.findings))


def _target_facts(target: str) -> Facts:
    from bringup.collect.targets import ReadOptions, parse_targets
    from bringup.pipeline import read_target

    return read_target(parse_targets([target]), ReadOptions(), note)


def _write(diagnosis: Diagnosis, arguments: argparse.Namespace) -> None:
    if arguments.redact:
        from bringup.explain.redact import redact_struct

        diagnosis = redact_struct(diagnosis, private())
    name = "standard input" if arguments.file == "-" else arguments.file
    text = to_json(diagnosis).decode() + "\n" if arguments.format == "json" else render_text(diagnosis, name)
    write_result(text, arguments.output)
    sys.stdout.flush()


def _follow(arguments: argparse.Namespace, facts: Facts | None, pause: float = 1.0, rounds: int = -1) -> int:
    """Read on until interrupted (or for so many rounds). Writes when the first cause changes; returns the exit code."""
    path = Path(arguments.file)
    size, first, found = -1, "-", 0
    try:
        while rounds:
            rounds -= 1
            try:
                now = path.stat().st_size
            except OSError as error:
                raise UnreadableError(arguments.file, error.strerror or str(error)) from error
            if now != size:
                size = now
                diagnosis = diagnose_log(read_path(arguments.file, sys.stdin.buffer), facts)
                found = 1 if diagnosis.causes else 0
                named = diagnosis.causes[0].kind if diagnosis.causes else ""
                if named != first:
                    first = named
                    _write(diagnosis, arguments)
            time.sleep(pause)
    except KeyboardInterrupt:
        pass
    return found

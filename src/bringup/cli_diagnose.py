"""``bringup diagnose``: name the root cause in any text.

Exit codes: 0 nothing in the text speaks of a failure, 1 causes were found, 2 usage, 3 the text cannot be read.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import BinaryIO

from bringup.collect.reports.lines import Log, read_path, read_stream
from bringup.errors import BringupError
from bringup.explain.diagnosis import Diagnosis, diagnose, render_text, to_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's arguments."""
    parser.add_argument("file", metavar="FILE|-", help="a log, a traceback, a report; - reads standard input")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the result there instead of to standard output")
    parser.add_argument(
        "--follow", action="store_true", help="read on as the file grows, and say when the causes change"
    )
    parser.add_argument(
        "--no-rules", action="store_true", help="do not run the rules on the facts that the text states"
    )


def run(args: argparse.Namespace) -> int:
    """Diagnose; returns the exit code."""
    if args.follow and args.file != "-":
        return _follow(Path(args.file), args)
    log = read_path(args.file, sys.stdin.buffer)
    diagnosis = diagnose_log(log, rules=not args.no_rules)
    _write(diagnosis, args)
    return 1 if diagnosis.causes else 0


def diagnose_log(log: Log, rules: bool = True) -> Diagnosis:
    """Diagnose what was read, with the rules' codes, and their findings on the facts that the text states."""
    if not rules:
        return diagnose(log)
    from bringup.collect.report import read_report
    from bringup.evaluate.engine import evaluate
    from bringup.evaluate.registry import RULES

    codes: dict[str, str] = {}
    for module in RULES:
        codes.setdefault(module.RULE.kind, module.RULE.code)
    findings = tuple(reported.finding for reported in evaluate(read_report(log.lines).facts).findings)
    return diagnose(log, codes, findings)


def _write(diagnosis: Diagnosis, args: argparse.Namespace) -> None:
    name = "standard input" if args.file == "-" else args.file
    text = to_json(diagnosis).decode() + "\n" if args.format == "json" else render_text(diagnosis, name)
    if args.output:
        Path(args.output).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
        sys.stdout.flush()


def _follow(path: Path, args: argparse.Namespace, stream: BinaryIO | None = None) -> int:
    """Read on until interrupted. A result is written at once, and whenever the first cause changes."""
    size, last = -1, "?"
    found = 0
    try:
        while True:
            now = path.stat().st_size if path.exists() else -1
            if now != size:
                size = now
                with path.open("rb") as opened:
                    diagnosis = diagnose_log(read_stream(opened), rules=not args.no_rules)
                first = diagnosis.causes[0].kind if diagnosis.causes else ""
                if first != last:
                    last = first
                    _write(diagnosis, args)
                found = 1 if diagnosis.causes else 0
            time.sleep(1.0)
    except KeyboardInterrupt:
        return found


def main() -> int:
    """``python -m bringup.cli_diagnose``."""
    parser = argparse.ArgumentParser(prog="bringup diagnose", description="name the root cause in any text")
    add_arguments(parser)
    try:
        return run(parser.parse_args())
    except BringupError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())

"""The command line: picks the verb, and turns errors into one line and an exit code.

A verb is a module in bringup/commands/ with ``add_arguments(parser)`` and ``run(arguments) -> int``. It is imported only when it
is chosen, so that ``bringup --help`` stays quick. A new verb is one line in `VERBS`.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from bringup import __version__
from bringup.errors import BringupError


class Verb(NamedTuple):
    """A sub-command: its name, the module that implements it, and what it is for in a line."""

    name: str
    module: str
    purpose: str


VERBS: tuple[Verb, ...] = (
    Verb("check", "bringup.commands.check", "report every incompatibility of a stack at once, root cause first"),
    Verb("facts", "bringup.commands.facts", "write what is known about a stack to a file, for a check elsewhere"),
    Verb(
        "diagnose", "bringup.commands.diagnose", "name the root cause in any text: a log, a traceback, a whole report"
    ),
    Verb(
        "batch",
        "bringup.commands.batch",
        "send a file of requests to engines; survives crashes, loses and repeats nothing",
    ),
    Verb("launch", "bringup.commands.launch", "start replicas of an engine, wait until they really answer, keep them"),
    Verb("explain", "bringup.commands.explain", "print the documentation of a rule or kind"),
    Verb("mcp", "bringup.commands.mcp", "serve check, diagnose and explain as tools for agents, over standard input"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; never raises an error that a person should not see."""
    argv = sys.argv[1:] if argv is None else argv
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows ASCII only is no fault
    try:
        return main_inner(argv)
    except BringupError as error:
        print(_presentable(f"bringup: {error}", argv), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader went away (head, less): no fault. Python would still complain when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("BRINGUP_DEBUG"):
            raise
        print(
            _presentable(f"bringup: a fault of bringup's own: {type(error).__name__}: {error}", argv),
            "bringup: set BRINGUP_DEBUG=1 and run it again for the traceback, which a bug report needs",
            sep="\n",
            file=sys.stderr,
        )
        return 4


def main_inner(argv: Sequence[str]) -> int:
    """As `main`, but errors are raised. Raises SystemExit for --help, --version and usage errors, as argparse does."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="bringup",
        description="See every incompatibility of a GPU software stack at once, before the first start.",
        epilog="bringup VERB --help tells more. Exit codes: 0 nothing wrong, 1 findings, 2 usage, 3 unreadable target, 4 own fault.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"bringup {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    chosen = next((argument for argument in argv if not argument.startswith("-")), "")
    run = None
    for verb in VERBS:
        child = verbs.add_parser(verb.name, help=verb.purpose, description=_sentence(verb.purpose), allow_abbrev=False)
        if verb.name == chosen:
            from importlib import import_module

            module = import_module(verb.module)
            module.add_arguments(child)
            run = module.run
    arguments = parser.parse_args(argv)
    assert run is not None, "argparse accepts only the verbs above"
    result = run(arguments)
    sys.stdout.flush()
    return int(result)


def _presentable(message: str, argv: Sequence[str]) -> str:
    """One line, never with credentials, nor with what --redact takes out: an error can come before options are parsed."""
    from bringup.explain.redact import redact, without_credentials

    message = " ".join(message.split())
    if "--redact" not in argv:
        return without_credentials(message)
    from bringup.commands.common import private

    return redact(message, private(*argv))


def _sentence(purpose: str) -> str:
    return f"{purpose[0].upper()}{purpose[1:]}."


if __name__ == "__main__":
    sys.exit(main())

"""``bringup facts``: write what is known about a stack to a file, so that `bringup check FILE` can judge it anywhere."""

from __future__ import annotations

import argparse

from bringup.collect.recorded import encode_facts
from bringup.commands.common import add_target_arguments, private, read_stack, write_result
from bringup.explain.redact import redact_struct


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    add_target_arguments(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the file to write; standard output where it is not given"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the facts of a target."""
    facts = read_stack(arguments)
    if arguments.redact:
        facts = redact_struct(facts, private(*arguments.target))
    write_result(encode_facts(facts).decode(), arguments.output)
    return 0

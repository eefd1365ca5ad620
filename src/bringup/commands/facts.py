"""``bringup facts``: write what is known about a stack to a file, so that `bringup check FILE` can judge it anywhere."""

from __future__ import annotations

import argparse

from bringup.collect.recorded import encode_facts
from bringup.commands.common import add_target_arguments, read_stack, write_result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    add_target_arguments(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the file to write; standard output where it is not given"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the facts of a target."""
    write_result(encode_facts(read_stack(arguments)).decode(), arguments.output, arguments)
    return 0

"""``bringup explain``: the documentation of a rule or kind, the same as its page in docs/rules/."""

from __future__ import annotations

import argparse
import sys

from bringup.evaluate.registry import RULES
from bringup.explain.rules import documentation, find_rules


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument(
        "name", nargs="?", metavar="RULE|KIND", help="ABI001, or extension_built_for_other_torch; all where not given"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print a rule's documentation, or a line for each rule."""
    if arguments.name:
        sys.stdout.write("\n".join(documentation(module) for module in find_rules(arguments.name)))
    else:
        for module in RULES:
            sys.stdout.write(f"{module.RULE.code}  {module.RULE.kind}: {module.RULE.title}\n")
    return 0

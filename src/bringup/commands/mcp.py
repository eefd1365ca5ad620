"""``bringup mcp``: the verbs as tools of a Model Context Protocol server, over standard input and output."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb has no options: a client says what it wants with each call."""


def run(arguments: argparse.Namespace) -> int:
    """Serve until standard input ends. Raises UsageError where the extra is not installed."""
    from bringup.mcp import serve

    serve()
    return 0

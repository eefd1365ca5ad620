"""Lines on a terminal, in colour. The only user of rich, imported when standard output is a terminal."""

from __future__ import annotations

from bringup.explain.page import Line, Style

_COLOURS: dict[Style, str] = {
    "": "",
    "title": "bold",
    "error": "bold red",
    "warning": "yellow",
    "info": "cyan",
    "ok": "green",
    "unknown": "magenta",
    "command": "bold cyan",
    "quiet": "dim",
}


def coloured(lines: list[Line], width: int) -> str:
    """The lines with escape codes, as far as the terminal and NO_COLOR allow."""
    import io
    import sys

    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)
    target = io.StringIO()
    recorder = Console(
        file=target,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        force_terminal=console.is_terminal,
        color_system="auto" if console.color_system else None,
        no_color=console.no_color,
    )
    for line in lines:
        text = Text()
        for segment in line:
            text.append(segment.text, style=_COLOURS[segment.style])
        text.rstrip()
        recorder.print(text, soft_wrap=True)
    return target.getvalue()

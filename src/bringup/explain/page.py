"""Lines of text with the meaning of their parts, wrapped to a width: what text renderings are put together from."""

from __future__ import annotations

import textwrap
from typing import Literal, NamedTuple

Style = Literal["", "title", "error", "warning", "info", "ok", "unknown", "command", "quiet"]


class Segment(NamedTuple):
    """A part of a line. ``style`` is for terminals; the words alone must be enough."""

    text: str
    style: Style = ""


Line = tuple[Segment, ...]

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (0x09, 0x0A)}
# Marks that reorder what a terminal shows.
_CONTROL |= {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F)}


def visible(text: str) -> str:
    """The text with control characters written out: names in a wheel must not steer the terminal that shows them."""
    return text.translate(_CONTROL)


class Page:
    """Collects lines. ``width`` in columns; what has no blank inside (paths, symbols) is never broken."""

    def __init__(self, width: int) -> None:
        self.width = max(40, width)
        self.lines: list[Line] = []

    def blank(self) -> None:
        """An empty line, never two in a row and never the first."""
        if self.lines and self.lines[-1]:
            self.lines.append(())

    def title(self, text: str) -> None:
        """A heading, set apart."""
        self.blank()
        self.lines.append((Segment(visible(text), "title"),))

    def row(self, *segments: Segment) -> None:
        """One line that is not wrapped."""
        self.lines.append(tuple(Segment(visible(one.text), one.style) for one in segments))

    def paragraph(
        self, text: str, indent: int = 0, label: str = "", hang: int | None = None, style: Style = ""
    ) -> None:
        """Wrapped text. ``label`` stands before it, and its further lines hang below its first word, or at ``hang``."""
        rest = " " * (indent + (len(label) if hang is None else hang))
        wrapped = textwrap.wrap(
            visible(text),
            width=self.width,
            initial_indent=" " * indent + label,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [" " * indent + label.rstrip()]
        self.lines.extend((Segment(line, style),) for line in wrapped)

    def verbatim(self, text: str, indent: int, style: Style = "") -> None:
        """Text line by line as it is: commands and what a program prints."""
        self.lines.extend((Segment(" " * indent + line, style),) for line in visible(text).splitlines())


def plain(lines: list[Line]) -> str:
    """The lines without styles, none with blanks at its end."""
    return "".join("".join(segment.text for segment in line).rstrip() + "\n" for line in lines)

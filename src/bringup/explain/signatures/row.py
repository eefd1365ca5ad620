"""The type of a signature's row."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One wording and the kind of failure that it speaks for.

    ``points``: 9-10 the wording alone settles the kind; 6-8 strong; 3-5 shared by several kinds; 1-2 supports only;
    negative speaks against it. ``pattern`` is a regular expression over lower-case text, never across lines; gaps are bounded, so
    that hostile input costs linear time. ``when`` names conditions on facts (`bringup.explain.logs_conditions`), all of
    which must be known to hold; a leading ``!`` asks for one known not to hold. ``also`` and ``unless`` are
    patterns that must, or must not, be anywhere in the text.
    """

    kind: str
    points: float
    pattern: str
    when: tuple[str, ...] = ()
    also: str = ""
    unless: str = ""


class Meaning(NamedTuple):
    """What a kind means to a person. ``separates``: the command or fact that tells it from kinds with the same message."""

    kind: str
    therefore: str
    separates: str
    remedy: str
    commands: tuple[str, ...] = ()
    misleads: str = ""
    """How the message is usually misread; '' where it says what it means."""

"""What a rule says: findings with their premises, and remedies that can become steps."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Severity = Literal["error", "warning", "info"]
Stage = Literal["install", "import", "device", "weights", "kernels", "jit", "graph", "collective", "serve"]

STAGES: tuple[Stage, ...] = ("install", "import", "device", "weights", "kernels", "jit", "graph", "collective", "serve")
"""In the order in which a start meets them."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""Worst first."""


class Premise(Struct, frozen=True):
    """One full clause of a "Because A and B, C" sentence, with the place where it was read."""

    text: str
    source: str


class Remedy(Struct, frozen=True):
    """A way out. ``commands`` are what a person would type; ``safe`` means it cannot make anything worse."""

    summary: str
    commands: tuple[str, ...] = ()
    safe: bool = False


class Finding(Struct, frozen=True):
    """One incompatibility.

    ``subject`` is what it is about: a library's path below its site-packages folder, a distribution, a variable.
    ``predicted_error`` is the text that a start would print, "" where it would print nothing.
    ``detail`` holds evidence for ``-v`` and JSON (all undefined symbols, say), one item a string.
    ``order`` sorts findings within a stage, smaller first: rules that know an engine's order set it.
    """

    rule: str
    kind: str
    severity: Severity
    stage: Stage
    subject: str
    because: tuple[Premise, ...]
    therefore: str
    predicted_error: str = ""
    misread_as: str = ""
    hints: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    detail: tuple[str, ...] = ()
    order: int = 100
    fatal: bool = False
    """A start ends here, so that everything later in the cascade stays hidden until this is repaired."""
    hides: tuple[str, ...] = ()
    """Subjects whose own findings stay hidden behind this one even where a start goes on."""


class UnknownVerdict(Struct, frozen=True):
    """A rule that could not be asked, or that failed: neither fine nor broken."""

    rule: str
    missing: tuple[str, ...]
    reason: str


class Rule(Struct, frozen=True):
    """A rule's identity. ``needs`` names the fields of Facts that it reads; unknown ones stop it from being asked."""

    code: str
    kind: str
    title: str
    stage: Stage
    needs: tuple[str, ...] = ()

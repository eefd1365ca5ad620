"""The whole output as a user sees it, colour off. Update with: uv run pytest tests/explain --snapshot-update"""

import io
import re
import sys

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from bringup.explain.terminal import coloured
from bringup.explain.text import groups, render_text, text_lines, verdict
from bringup.findings import Remedy

from .reports import CASCADE, CLEAN, HEADERS, HOSTILE, NINJA, NOTE, SONAME, SYMBOL, SYMBOLS, UNKNOWN, report

readable = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="below Python 3.11 C++ names are shown as the linker has them"
)


@readable
def test_a_cascade(snapshot: SnapshotAssertion) -> None:
    assert render_text(CASCADE) == snapshot


@readable
def test_a_cascade_with_all_evidence(snapshot: SnapshotAssertion) -> None:
    assert render_text(CASCADE, verbose=True) == snapshot


def test_nothing_wrong(snapshot: SnapshotAssertion) -> None:
    assert render_text(CLEAN) == snapshot


def test_only_unknown(snapshot: SnapshotAssertion) -> None:
    assert render_text(report(unknown=UNKNOWN)) == snapshot


@readable
def test_a_cause_in_many_files_is_told_once(snapshot: SnapshotAssertion) -> None:
    many = [replace(SYMBOLS, subject=f"pkg/_{number}.so", therefore=f"pkg/_{number}.so fails") for number in range(9)]
    assert render_text(report(*many)) == snapshot


@pytest.mark.parametrize("width", [40, 72, 100, 160])
def test_lines_keep_to_the_width(width: int) -> None:
    for line in render_text(CASCADE, width=width, verbose=True).splitlines():
        # What holds no blank is never broken, and the head of a finding and commands stay one line to be copied.
        longest = max((len(word) for word in line.split()), default=0)
        one_line = re.match(r"F\d|    +(?:uv|pip) ", line)
        assert len(line) <= width or one_line or len(line) - longest <= width


def test_no_line_ends_in_blanks_and_none_is_coloured() -> None:
    text = render_text(CASCADE, verbose=True)
    assert "\x1b" not in text
    assert not re.search(r"[ \t]$", text, re.M)


def test_evidence_shows_cxx_names_readable_and_raw() -> None:
    assert SYMBOL in render_text(CASCADE, verbose=True)


def test_names_from_a_wheel_do_not_steer_the_terminal() -> None:
    text = render_text(HOSTILE, verbose=True)
    assert not [char for char in text if ord(char) < 32 and char != "\n"]
    assert "\\x1b[31mred\\x07" in text


def test_a_warning_alone_stops_no_start() -> None:
    assert verdict(report(HEADERS)) == "Nothing here stops a start; 1 warning"
    assert verdict(report(HEADERS, NOTE)) == "Nothing here stops a start; 1 warning and 1 note"


def test_what_to_do_first_is_the_first_error_not_the_first_warning() -> None:
    way = Remedy("install headers", ("apt-get install python3-dev",))
    text = render_text(report(replace(HEADERS, remedies=(way,), stage="import"), NINJA))
    assert "What to do first: install ninja (F2)\n    uv pip install ninja" in text


def test_groups_keep_different_causes_apart() -> None:
    found = groups(report(SONAME, SONAME, SYMBOLS, SONAME).findings)
    assert [[one.id for one in group] for group in found] == [["F1", "F2"], ["F3"], ["F4"]]


def test_colour_changes_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    lines = text_lines(CASCADE, width=100, verbose=True)
    shown = coloured(lines, 100)
    assert "\x1b[" in shown
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == render_text(CASCADE, width=100, verbose=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "31m" not in coloured(lines, 100)

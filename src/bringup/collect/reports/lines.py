"""Lines out of any text: logs of gigabytes, any encoding, terminal colours, prefixes of launchers and log collectors.

A text up to `WHOLE` bytes is kept line by line. Of a longer one, its head and its tail are kept, and between them the lines
that hold one of `STEMS` (each with what follows it), as long as they say something new. Memory stays bounded by `KEPT`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from bringup.errors import UnreadableError

WHOLE = 2 << 20
HEAD = 512 << 10
TAIL = 512 << 10
KEPT = 2 << 20
CHUNK = 1 << 20
LONGEST = 2000
"""Characters of a line that are looked at: two thirds from its start, one third from its end."""
PIECES = 50
"""Windows of LONGEST into which a longer line is cut."""

STEMS: tuple[bytes, ...] = (
    b"rror",
    b"ailed",
    b"annot",
    b"not found",
    b"undefined",
    b"support",
    b"denied",
    b"NVRM",
    b"mismatch",
    b"No such",
    b"nvalid",
    b"ERROR",
    b"xception",
    b"atal",
)
"""Stems of words that error lines hold, with the letter that may be upper case left out. Each costs 0.5 ms a megabyte."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,300}(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SHAPE = re.compile(rb"[0-9a-fA-F]*[0-9][0-9a-fA-F]*")
_TIME = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_PREFIXES = re.compile(
    r"(?:"
    + "|".join(
        (
            r"> ?",  # Markdown quotation
            _TIME + r"[ :|]{0,3}(?:std(?:out|err) [FP] )?",  # docker --timestamps, Kubernetes, plain loggers
            r"\[" + _TIME + r"[^\]\n]{0,60}\] ?",  # SGLang: [2025-01-01 10:00:00 TP0]
            r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,64} [\w./-]{1,48}(?:\[\d+\])?: ",  # journald, syslog
            r"\((?:EngineCore|APIServer|Worker|VllmWorker|Ray\w*|pid|Process|Scheduler|[\w.]{1,40} pid=)[^)\n]{0,120}\) ?",
            r"\[?(?:rank|default|local_rank|TP|DP|PP|EP)[ =]?\d{1,4}\]?:? ?",
            r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d (?:\[[^\]\n]{1,80}\] ?|\S{1,60}:\d{1,6}\] ?)",  # vLLM
            r"[\w.-]{1,60}  ?\| ",  # docker compose
            r"\[\s{0,8}\d{1,8}\.\d{6}\] ?",  # dmesg
            r"[EWIF]\d{4} \d\d:\d\d:\d\d\.\d{6} \d{1,9} \S{1,120}:\d{1,6}\] ?",  # glog, torch
        )
    )
    + r")"
)
_QUIET = re.compile(r"(?:(?!ERROR|WARN|FATAL|CRITICAL|NCCL)[^\n]){0,60}\b(?:INFO|DEBUG)\b")
_JSON_FIELDS = (
    "message",
    "msg",
    "log",
    "MESSAGE",
    "text",
    "line",
    "textPayload",
    "exc_info",
    "stack_trace",
    "error",
    "exception",
)


class Line(Struct, frozen=True):
    """One line as a person reads it: ``number`` from 1 in the text, colours, progress and prefixes taken off."""

    number: int
    text: str
    quiet: bool = False
    """The logger itself calls it information: no message of an error, whatever words it holds."""


class Log(Struct, frozen=True):
    """What was kept of a text."""

    lines: tuple[Line, ...]
    read: int = 0
    """Bytes read."""
    skipped: int = 0
    """Lines that were passed over because the text is long and they held no word of an error."""


def read_path(path: str, standard_input: BinaryIO) -> Log:
    """A file's lines, or those of standard input for ``-``. Raises UnreadableError."""
    if path == "-":
        return read_stream(standard_input)
    try:
        with Path(path).open("rb") as stream:
            return read_stream(stream)
    except OSError as error:
        raise UnreadableError(path, error.strerror or str(error)) from error


def read_text(text: str) -> Log:
    """The lines of a text in memory."""
    return Log(tuple(_lines(text.encode("utf-8", "replace"), 1)), len(text))


def read_stream(stream: BinaryIO) -> Log:
    """A stream's lines, in bounded memory."""
    head = stream.read(WHOLE + 1)
    if len(head) <= WHOLE:
        return Log(tuple(_lines(_utf8(head), 1)), len(head))
    wide = _wide(head)
    if wide:  # UTF-16 in gigabytes is rare: decode what fits, and say how much was read
        return Log(tuple(_lines(_utf8(head), 1)), len(head))
    return _long(head, stream)


def _long(head: bytes, stream: BinaryIO) -> Log:
    cut = head.rfind(b"\n", 0, HEAD) + 1 or HEAD
    lines = list(_lines(head[:cut], 1))
    number = 1 + head.count(b"\n", 0, cut)
    seen: set[int] = set()
    budget = KEPT
    kept_lines = len(lines)
    total = len(head)
    rest = head[cut:]
    tail: bytes = b""
    while True:
        more = stream.read(CHUNK)
        total += len(more)
        if not more and not rest:
            break
        block = rest + more
        # A line without an end must not gather without limit: it is cut.
        end = len(block) if not more else block.rfind(b"\n") + 1 or (len(block) if len(block) > 4 * CHUNK else 0)
        rest = block[end:]
        if not end and more:
            continue
        block = block[:end]
        if budget > 0:
            budget -= _pick(block, number, lines, seen)
        number += block.count(b"\n")
        tail = (tail + block)[-TAIL:] if len(block) < TAIL else block[-TAIL:]
        if not more:
            break
    start = tail.find(b"\n") + 1
    first = number - tail.count(b"\n", start)
    last = lines[-1].number if lines else 0
    known = {line.number for line in lines if line.number >= first} if last >= first else set()
    lines += [line for line in _lines(tail[start:], first) if line.number not in known]
    lines.sort(key=lambda line: line.number)
    return Log(tuple(lines), total, max(0, number - 1 - len(lines)) if kept_lines else number)


def _pick(block: bytes, number: int, lines: list[Line], seen: set[int]) -> int:
    """Append the lines of a block that hold a stem and have a new shape; returns the bytes that they cost."""
    found: set[int] = set()
    for stem in STEMS:
        at = block.find(stem)
        hits = 0
        while at >= 0 and hits < 5000:
            start = block.rfind(b"\n", 0, at) + 1
            found.add(start)
            end = block.find(b"\n", at)
            if end < 0:
                break
            at = block.find(stem, end)
            hits += 1
    cost = 0
    counted, line_number = 0, number
    for start in sorted(found):
        end = block.find(b"\n", start)
        end = len(block) if end < 0 else end
        raw = block[start : min(end, start + PIECES * LONGEST)]
        shape = hash(_SHAPE.sub(b"0", raw[:400]))
        if shape in seen:
            continue
        seen.add(shape)
        line_number += block.count(b"\n", counted, start)
        counted = start
        lines.extend(_lines(raw, line_number))
        cost += len(raw)
        if cost > KEPT:
            break
    return cost


def _wide(data: bytes) -> str:
    if data.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return "utf-32"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    sample = data[:4096]
    if len(sample) > 8 and sample[1::2].count(0) > len(sample) * 0.35:
        return "utf-16-le"
    if len(sample) > 8 and sample[::2].count(0) > len(sample) * 0.35:
        return "utf-16-be"
    return ""


def _utf8(data: bytes) -> bytes:
    wide = _wide(data)
    return data.decode(wide, "replace").encode("utf-8", "replace") if wide else data


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    text = data.decode("utf-8", "replace")
    # Where UTF-8 breaks often, the text is of some 8-bit encoding; ASCII is all that the signatures need of it.
    return data.decode("cp1252", "replace") if text.count("�") * 20 > len(text) else text


def _lines(data: bytes, number: int) -> Iterator[Line]:
    for raw in data.split(b"\n"):
        most = min(len(raw), PIECES * LONGEST)
        pieces = [raw] if len(raw) <= LONGEST else [raw[at : at + LONGEST] for at in range(0, most, LONGEST - 200)]
        for piece in pieces:
            whole = _decode(piece)
            text = clean(whole)
            if text:
                yield Line(number, text, _QUIET.match(whole) is not None)
        number += 1


def clean(text: str) -> str:
    """A line without colours, overwritten progress, prefixes; the message of a JSON line."""
    text = text.rstrip("\r\n")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\r" in text:  # the terminal shows what was written last
        text = next((part for part in reversed(text.split("\r")) if part.strip()), "")
    text = _CONTROL.sub("", text).replace("﻿", "")
    stripped = text.lstrip()
    if stripped.startswith("{") and stripped.rstrip().endswith("}"):
        text = _message(stripped) or text
    for _ in range(6):
        match = _PREFIXES.match(text)
        if match is None or match.end() == 0:
            break
        text = text[match.end() :]
    return text.rstrip()


def _message(text: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(value, dict):
        return ""
    parts = [value[field] for field in _JSON_FIELDS if isinstance(value.get(field), str)]
    return " ".join(" ".join(part.split("\n")) for part in parts)

"""Why an engine ended: its log and exit status to a named cause; pure.

The tables of `bringup.explain.diagnosis` know failures of the stack. Here are those of the command line and of the place, which
a start meets before it touches the stack.
"""

from __future__ import annotations

import re

from msgspec import Struct

from bringup.collect.reports.lines import read_text
from bringup.explain.diagnosis import diagnose


class Cause(Struct, frozen=True):
    """``evidence`` is the engine's own line, '' where only the exit status speaks. ``again``: another try may go better."""

    kind: str
    text: str
    evidence: str = ""
    again: bool = False


class _Row(Struct, frozen=True):
    pattern: str
    kind: str
    text: str
    again: bool
    source: str


_ROWS: tuple[_Row, ...] = (
    _Row(
        r"error: (?:unrecognized arguments|argument .*|the following arguments are required)",
        "engine_option_unknown",
        "the engine does not take its command line",
        False,
        "argparse.ArgumentParser.error",
    ),
    _Row(
        r"\[Errno 98\]|Address already in use|address already in use|port \d+ is (?:already )?in use",
        "port_taken",
        "the port is taken by another process",
        False,
        "errno EADDRINUSE",
    ),
    _Row(
        r"does not appear to have (?:a file named|files named)|No such file or directory: .*(?:config|tokenizer|safetensors)|"
        r"Cannot find any model weights|Can't load tokenizer|Couldn't instantiate the backend tokenizer|SafetensorError|"
        r"Repo id must be in the form|Invalid repository ID or local directory",
        "model_folder_incomplete",
        "the model folder is incomplete or damaged",
        False,
        "transformers/utils/hub.py, vllm/model_executor/model_loader/default_loader.py, safetensors",
    ),
    _Row(
        r"Model architectures? .* (?:is|are) not supported",
        "model_architecture_unsupported",
        "this engine version does not know the model's architecture",
        False,
        "vllm/model_executor/models/registry.py",
    ),
    _Row(
        r"No module named '?(?:vllm|sglang)",
        "engine_not_installed",
        "the engine is not installed for this Python",
        False,
        "Python's import",
    ),
    _Row(
        r"exit code: -4\b|SIGILL|[Ii]llegal instruction",
        "illegal_instruction",
        "a kernel uses an instruction that this CPU does not have; another --dtype or build of the engine may not need it",
        False,
        "signal(7); vllm/v1/executor/multiproc_executor.py prints the worker's exit code",
    ),
    _Row(
        r"[Ww]orker (?:proc |process ).{0,80}(?:died|was killed)|BrokenProcessPool|[Ss]cheduler.{0,60}(?:died|was killed)",
        "worker_ended",
        "a worker process of the engine ended",
        True,
        "vllm/v1/engine/utils.py, sglang/srt/entrypoints/engine.py",
    ),
)


def cause(log: str, status: int) -> Cause:
    """The cause of an end. ``log`` is the end of what was written, ``status`` 128 + N for a signal."""
    lines = log.splitlines()
    for row in _ROWS[:-1]:
        for line in reversed(lines):
            if re.search(row.pattern, line):
                return Cause(row.kind, row.text, line.strip()[:400], row.again)
    causes = diagnose(read_text(log)).causes if log.strip() else ()
    if causes and causes[0].confidence >= 0.5:
        best = causes[0]
        return Cause(best.kind, best.therefore, best.evidence[0].text if best.evidence else "")
    if status == 137:
        return Cause(
            "killed",
            "the engine was killed (SIGKILL), as the kernel does where memory or a memory limit is exhausted",
            again=True,
        )
    if status > 128:
        return Cause("signal", f"the engine was ended by signal {status - 128}", again=True)
    for line in reversed(lines):
        if re.search(_ROWS[-1].pattern, line):
            return Cause(_ROWS[-1].kind, _ROWS[-1].text, line.strip()[:400], True)
    last = next((line.strip() for line in reversed(lines) if re.search(r"\b(?:Error|Exception|error)\b", line)), "")
    return Cause("unknown", f"the engine ended with status {status}", last[:400])

"""Damaged logs: 150 in plain pytest, more by BRINGUP_FUZZ_CASES. Whatever is pasted, diagnosis answers, in bounded time."""

from __future__ import annotations

import io
import os
import random
import time
from pathlib import Path

import pytest
import yaml

from bringup.collect.reports.lines import read_stream
from bringup.commands.diagnose import diagnose_log
from bringup.explain.diagnosis import render_text, to_json

DATA = Path(__file__).parents[1] / "data/logs"
LOGS = sorted(DATA.glob("*.txt"))
EXPECTED = yaml.safe_load((DATA / "expected.yaml").read_text())
SECONDS = 5.0


def damage(data: bytes, chance: random.Random) -> bytes:
    """Cut, repeat, splice, re-encode, or spoil bytes of a log."""
    way = chance.randrange(8)
    at = chance.randrange(len(data) or 1)
    if way == 0:
        return data[:at]  # in the middle of a traceback
    if way == 1:
        return data[at:]
    if way == 2:
        return bytes(chance.randrange(256) if chance.random() < 0.05 else byte for byte in data)
    if way == 3:
        return data.decode("utf-8", "replace").encode(chance.choice(("utf-16", "utf-16-le", "utf-8-sig", "utf-32")))
    if way == 4:
        return data.replace(b"\n", chance.choice((b"\r", b"\r\n", b"\0", b"", b"\x1b[31m\n")))
    if way == 5:
        return data[:at] + bytes(chance.randrange(256) for _ in range(500)) + data[at:]
    if way == 6:
        return data[:at] + data[:at] * chance.randrange(1, 20)
    return data[:at] + chance.choice((b"(", b"=", b" ", b"undefined symbol: ", b"[rank0]: ")) * 20000 + data[at:]


def test_damaged_logs_are_answered() -> None:
    count = int(os.environ.get("BRINGUP_FUZZ_CASES", "150"))
    slowest = 0.0
    for seed in range(count):
        chance = random.Random(seed)
        data = damage(LOGS[seed % len(LOGS)].read_bytes(), chance)
        began = time.process_time()
        diagnosis = diagnose_log(read_stream(io.BytesIO(data)))
        to_json(diagnosis)
        render_text(diagnosis, "log")
        slowest = max(slowest, time.process_time() - began)
    assert slowest < SECONDS


PAIRS = [
    ("flashinfer_no_ninja", "old_nccl"),
    ("glibc_new", "readonly_home"),
    ("cccl_mismatch", "ctypes_nvrtc13"),
    ("ext_other_torch", "disk_full"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_two_failures_in_one_log_are_two_causes(one: str, other: str) -> None:
    texts = [(DATA / f"{name}.txt").read_bytes() for name in (one, other)]
    between = b"\n" * 3 + b"INFO started again\n" * 5
    found = [cause.kind for cause in diagnose_log(read_stream(io.BytesIO(between.join(texts)))).causes]
    assert {EXPECTED[one], EXPECTED[other]} <= set(found[:4]), found

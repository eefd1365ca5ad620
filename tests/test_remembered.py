"""A remembered report is given only where everything that it depends on is as it was."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from bringup import remembered
from bringup.facts import Driver, Facts, Gpu, Host, Known, Variable
from bringup.machine import CacheFolder, Machine

BASE = Facts(
    target="/e",
    roots=("/e/site-packages",),
    host=Known(Host("x86_64", "glibc 2.36"), "here"),
    gpus=Known((Gpu("H200", 9, 0),), "--gpu"),
    machine=Known(Machine(), "here"),
    caches=Known((CacheFolder("triton", "/c", "HOME", True, "/c", True, free=10),), "here"),
    variables=Known((), "here"),
)


def test_the_same_facts_have_the_same_key() -> None:
    assert remembered.report_key(BASE, "f") == remembered.report_key(replace(BASE), "f")


def test_free_disk_and_memory_play_no_part() -> None:
    fuller = Known((replace(BASE.caches.value[0], free=5),), "here")  # type: ignore[union-attr]
    busier = Known(Machine(memory_available=Known(1, "meminfo")), "here")
    other = replace(BASE, caches=fuller, machine=busier)
    assert remembered.report_key(BASE, "f") == remembered.report_key(other, "f")


@pytest.mark.parametrize(
    "other",
    [
        replace(BASE, gpus=Known((Gpu("B200", 10, 0),), "--gpu")),
        replace(BASE, driver=Known(Driver("580.95.05", "13.0"), "--driver")),
        replace(BASE, variables=Known((Variable("LD_LIBRARY_PATH", "/x"),), "here")),
        replace(BASE, caches=Known((replace(BASE.caches.value[0], writable=False),), "here")),  # type: ignore[union-attr]
        replace(BASE, goal=replace(BASE.goal, engine="sglang")),
    ],
    ids=["gpu", "driver", "variables", "caches", "engine"],
)
def test_anything_that_a_rule_reads_changes_the_key(other: Facts) -> None:
    assert remembered.report_key(BASE, "f") != remembered.report_key(other, "f")


def test_the_folders_and_the_hosts_libraries_change_the_key(tmp_path: Path) -> None:
    assert remembered.report_key(BASE, "f") != remembered.report_key(BASE, "g")
    file = tmp_path / "libc.so.6"
    file.write_bytes(b"1")
    of = replace(BASE, host=Known(Host("x86_64", loader_cache=(("libc.so.6", str(file)),)), "here"))
    before = remembered.report_key(of, "f")
    file.write_bytes(b"22")
    assert remembered.report_key(of, "f") != before


def test_a_damaged_report_is_none() -> None:
    assert remembered.decode(b"\xc1") is None


def test_no_rule_reads_what_the_key_leaves_out() -> None:
    import bringup.evaluate

    for file in Path(bringup.evaluate.__path__[0]).rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"\.free\b", text), file
        assert "memory_available" not in text, file

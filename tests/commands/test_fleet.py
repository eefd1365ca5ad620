"""Many targets at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bringup.cli import main
from bringup.collect.recorded import encode_facts, write_atomically
from bringup.commands.fleet import read_targets
from bringup.errors import UnreadableError
from bringup.facts import Driver, Facts, Known


def recorded(path: Path, driver: str) -> Path:
    facts = Facts(target=path.stem, driver=Known(Driver(driver, "13.0"), "test"))
    write_atomically(path, encode_facts(facts))
    return path


def test_a_table_with_a_broken_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, other = recorded(tmp_path / "good.json", "580.95.05"), recorded(tmp_path / "other.json", "570.10")
    listing = tmp_path / "fleet.txt"
    listing.write_text(f"# the fleet\n{good}\n\nssh://127.0.0.1:1  # nothing listens there\n{other}\n")
    assert main(["check", "--targets", str(listing)]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(str(good))
    assert "not read" in lines[2]
    assert "580.95.05" in lines[1]
    assert "driver releases differ: 570.10 on" in lines[-1]
    assert main(["check", "--targets", str(listing), "--format", "json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "bringup.fleet/1"
    assert ["report" in one for one in found["targets"]] == [True, False, True]


def test_what_is_no_list_of_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").write_text("# nothing\n")
    with pytest.raises(UnreadableError, match="names no target"):
        read_targets(tmp_path / "empty")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\0")
    with pytest.raises(UnreadableError):
        read_targets(tmp_path / "binary")
    assert main(["check", "--targets", str(tmp_path / "gone")]) == 3
    assert main(["check", "torch", "--targets", str(tmp_path / "gone")]) == 2

"""2,000 damaged ELF files, cubins, fatbins and PTX texts; ``nox -s fuzz`` runs 100,000."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.fuzz.elf_fields import fields_of
from tests.fuzz.mutate import Mutator
from tests.fuzz.run import bases


def test_damaged_files_give_a_result_or_a_named_error() -> None:
    count = int(os.environ.get("BRINGUP_FUZZ_CASES", "2000"))
    command = [sys.executable, "-m", "tests.fuzz.run", "--count", str(count), "--seed", "20"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    print(result)
    assert result["cases"] == count
    assert result["peak_mb"] < 256
    # The damage must reach both sides of every check, or it would prove nothing.
    assert min(result["said"].get(kind, 0) for kind in KINDS) > count / 200


KINDS = ("library", "device code", "MalformedElfError", "MalformedFatbinError", "nothing")


def test_damage_is_repeatable_and_real() -> None:
    for name, data in bases():
        fields = fields_of(data)
        once = [Mutator(seed).mutate(data, fields) for seed in range(20)]
        assert once == [Mutator(seed).mutate(data, fields) for seed in range(20)], name
        assert sum(one != data for one in once) >= 15, name

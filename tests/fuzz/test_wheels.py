"""500 damaged wheels; ``nox -s fuzz`` runs 100,000. Facts or one MalformedWheelError, in bounded time and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import json, sys, tempfile, time
from pathlib import Path
from bringup.collect.remote import LocalFile
from bringup.collect.wheel import read_wheel
from bringup.errors import MalformedWheelError
from tests.collect.wheels import make_wheel, mutate, real_library
from tests.fuzz.run import peak_memory

count = int(sys.argv[1])
said = {"facts": 0, "error": 0}
slowest = 0.0
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    wheel = make_wheel(folder, files={"demo/__init__.py": b"", "demo/_C.so": real_library()})
    data = wheel.read_bytes()
    for seed in range(count):
        wheel.write_bytes(mutate(data, seed))
        began = time.perf_counter()
        try:
            with LocalFile(wheel) as file:
                read_wheel(file, name=wheel.name, root="/site", source=wheel.name)
            said["facts"] += 1
        except MalformedWheelError as error:
            assert error.subject and error.reason
            said["error"] += 1
        slowest = max(slowest, time.perf_counter() - began)
print(json.dumps({"said": said, "slowest_ms": round(slowest * 1000, 1), "peak_mb": peak_memory() >> 10}))
"""


def test_damaged_wheels_give_facts_or_a_named_error() -> None:
    count = int(os.environ.get("BRINGUP_FUZZ_CASES", "500"))
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", SCRIPT, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    print(result)
    assert sum(result["said"].values()) == count
    assert min(result["said"].values()) > count / 200
    assert result["slowest_ms"] < 5000
    assert result["peak_mb"] < 256

"""Damaged ELF files and device code, in a process whose memory is limited: a result or a named error, and nothing else.

    python -m tests.fuzz.run --count 100000 --seed 1

Prints one line of JSON: how many gave what, the slowest, and the peak memory. Ends with 1 at the first case that breaks the rule,
and says how to make that case again.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType

import msgspec

from bringup.collect.elf import library_from_buffer, read_library
from bringup.collect.fatbin import read_device_file
from bringup.errors import BringupError
from tests.fuzz.elf_fields import fields_of
from tests.fuzz.mutate import Mutator

FIXTURES = Path(__file__).parents[1] / "collect/data"
MEMORY = 256 << 20
SECONDS = 5


class TooSlowError(BaseException):
    """Not an Exception, so that nothing in between catches it."""


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlowError


def bases() -> list[tuple[str, bytes]]:
    """Sound files to damage: the fixtures, and each library once more without section headers."""
    found = [(file.name, file.read_bytes()) for file in sorted(FIXTURES.iterdir()) if file.suffix != ".md"]
    for name, data in tuple(found):
        if name.endswith(".so"):
            found.append((f"stripped-{name}", data[:40] + bytes(8) + data[48:60] + bytes(4) + data[64:]))
    found.append(
        (
            "kernel.ptx",
            b"//\n// Generated\n//\n\n.version 9.0\n.target sm_120f\n.address_size 64\n\n.visible .entry k()\n",
        )
    )
    return found


def read(name: str, data: bytes, file: Path | None) -> str:
    """Read a case as its kind is read in earnest. Returns what it gave."""
    try:
        if not name.endswith(".so"):
            return "device code" if read_device_file(data, name) else "nothing"
        if file is None:
            library = library_from_buffer(data, path=name)
        else:
            file.write_bytes(data)
            library = read_library(file, path=name, source=name)
    except BringupError as error:
        if not str(error).startswith(f"{name}: ") or len(str(error)) > 400 or not str(error).isprintable():
            raise AssertionError(f"an error that is not clear: {error}") from error
        return type(error).__name__
    # What was read must travel: to other processes, into the facts file.
    msgspec.msgpack.encode(library)
    return "nothing" if library is None else "library"


def peak_memory() -> int:
    """The most memory that this process has held, in KiB. ru_maxrss would count that of the process that started it, too."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="run this case alone, without limits")
    options = parser.parse_args()
    if options.only is None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.signal(signal.SIGALRM, _too_slow)
    files = [(name, data, fields_of(data)) for name, data in bases()]
    said: Counter[str] = Counter()
    slowest = 0.0
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.count) if options.only is None else (options.only,):
            name, data, fields = files[number % len(files)]
            # Each case has its own seed, so that one alone can be repeated.
            damaged = Mutator(options.seed * 1_000_003 + number).mutate(data, fields)
            file = Path(folder) / "case" if number % 4 == 0 else None
            if options.only is None:
                signal.setitimer(signal.ITIMER_REAL, SECONDS)
            began = time.perf_counter()
            try:
                said[read(name, damaged, file)] += 1
            except BaseException as error:
                print(
                    f"case {number} of seed {options.seed} ({name}): {type(error).__name__}: {error}", file=sys.stderr
                )
                print(f"again: python -m tests.fuzz.run --seed {options.seed} --only {number}", file=sys.stderr)
                if options.only is not None:
                    raise
                return 1
            slowest = max(slowest, time.perf_counter() - began)
            signal.setitimer(signal.ITIMER_REAL, 0)
    result = {
        "cases": sum(said.values()),
        "said": dict(sorted(said.items())),
        "slowest_ms": round(1000 * slowest, 1),
        "peak_mb": peak_memory() >> 10,
        "seconds": round(time.perf_counter() - start, 1),
    }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())

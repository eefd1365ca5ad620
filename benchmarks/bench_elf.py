"""All facts of one library, against the tools that print them: cuobjdump for device code, readelf for the linking facts.

    python benchmarks/bench_elf.py LIBRARY [--runs 5]

The library is read into the page cache first. Each side's time is the median of its runs, in one process run after the other; ours
is measured inside of a running Python, as a stack's hundreds of libraries are read, and once more as a process of its own.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bringup.collect.elf import read_library
from bringup.facts import names


def cuobjdump() -> str:
    for folder in map(Path, sys.path):
        for found in folder.glob("nvidia/cu*/bin/cuobjdump"):
            return str(found)
    found_on_path = shutil.which("cuobjdump")
    if found_on_path is None:
        sys.exit("cuobjdump is not installed: uv sync --group dev")
    return found_on_path


def median(action: Callable[[], object], runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def run(*command: str) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    file = str(options.library)
    with open(file, "rb") as stream:
        while stream.read(1 << 24):
            pass
    library = read_library(options.library, path=file)
    if library is None:
        sys.exit(f"{file} is no ELF shared object")
    code = f"from pathlib import Path; from bringup.collect.elf import read_library; read_library(Path({file!r}), path='x')"
    ours = median(lambda: read_library(options.library, path=file), options.runs * 5)
    process = median(lambda: run(sys.executable, "-c", code), options.runs)
    listing = median(lambda: run(cuobjdump(), "--list-elf", file), options.runs)
    linking = median(lambda: run("readelf", "-dW", "--dyn-syms", file), options.runs)
    symbols = sum(len(names(one)) for one in (library.imports, library.weak_imports, library.exports))
    entries = sum(one.count for one in library.device_code)
    print(f"{options.library.name}: {library.size / 1e6:.0f} MB, {symbols} symbols, {entries} entries of device code")
    print(f"cuobjdump --list-elf                   {listing * 1e3:10.2f} ms")
    print(f"readelf -dW --dyn-syms                 {linking * 1e3:10.2f} ms")
    print(
        f"bringup, in a running Python           {ours * 1e3:10.2f} ms   {(listing + linking) / ours:6.0f} times faster than both"
    )
    print(
        f"bringup, as a process of its own       {process * 1e3:10.2f} ms   {(listing + linking) / process:6.0f} times faster than both"
    )


if __name__ == "__main__":
    main()

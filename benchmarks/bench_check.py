"""``bringup check ENV`` against importing torch in that environment, and how its cost grows.

    python benchmarks/bench_check.py ENV [--runs 5] [--bytecode present|absent|both] [--options "--gpu rtx-pro-6000"]
    python benchmarks/bench_check.py --growth [--runs 5]

ENV is an environment that holds torch. All files are in the page cache (one run of each side goes first). The sides take turns,
and each one's time is its best run: what other processes take away is least there. Cold means that bringup's own cache is an
empty folder, warm that it is the folder that the cold run left. ``--bytecode absent``: neither side finds compiled bytecode, as
right after an installation with uv; ``present``: both do. Both are done by PYTHONPYCACHEPREFIX, so ENV stays as it is.

CPU is user and system time of the process and its children. Memory is the largest sum of the proportional set sizes of all
processes of one run, sampled every few milliseconds, in a run of its own.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

BRINGUP = (sys.executable, "-m", "bringup", "check")


class Run(NamedTuple):
    """One run of a process: seconds, seconds of CPU, and memory in bytes where it was sampled."""

    wall: float
    cpu: float
    memory: int = 0


def run(command: list[str], environment: Mapping[str, str], accepted: tuple[int, ...] = (0,)) -> Run:
    """Run a command to its end. Ends this program where it fails, since its time would say nothing."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    error = process.stderr.read() if process.stderr is not None else b""
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in accepted:
        sys.exit(f"{shlex.join(command)} ended with {process.returncode}: {error.decode(errors='replace').strip()}")
    return Run(wall, usage.ru_utime + usage.ru_stime)


def proportional_peak(command: list[str], environment: Mapping[str, str]) -> int:
    """The largest sum of the proportional set sizes of a command's processes, in bytes."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(_proportional, _tree(process.pid))))
        time.sleep(0.004)
    return peak


def _tree(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        found += map(int, _text(f"/proc/{one}/task/{one}/children").split())
    return found


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:  # the process has ended
        return ""


def _proportional(pid: int) -> int:
    lines = _text(f"/proc/{pid}/smaps_rollup").splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def best(runs: list[Run]) -> Run:
    return Run(min(one.wall for one in runs), min(one.cpu for one in runs))


def against_torch(environment: Path, options: list[str], runs: int, bytecode: str) -> None:
    python = str(environment / "bin" / "python")
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        variables = {**os.environ, "BRINGUP_CACHE_DIR": str(cache), "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        variables.pop("BRINGUP_NO_CACHE", None)
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        if bytecode == "absent":
            variables["PYTHONDONTWRITEBYTECODE"] = "1"
        check = [*BRINGUP, str(environment), *options]
        imported = [python, "-c", "import torch"]
        sides: dict[str, list[Run]] = {"import torch": [], "check, cold": [], "check, warm": []}
        for number in range(runs + 1):
            shutil.rmtree(cache, ignore_errors=True)
            measured = (run(imported, variables), run(check, variables, (0, 1)), run(check, variables, (0, 1)))
            if number:  # the first fills the page cache
                for one, found in zip(measured, sides.values(), strict=True):
                    found.append(one)
        peaks = {"import torch": proportional_peak(imported, variables)}
        shutil.rmtree(cache, ignore_errors=True)
        peaks["check, cold"] = proportional_peak(check, variables)
        peaks["check, warm"] = proportional_peak(check, variables)
    torch = best(sides["import torch"])
    cold = best(sides["check, cold"])
    print(f"bytecode {bytecode}, best of {runs}, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'':14}{'wall s':>8}{'CPU s':>8}{'of torch':>10}{'of cold':>9}{'PSS MB':>8}")
    for name, found in sides.items():
        one = best(found)
        print(
            f"{name:14}{one.wall:8.2f}{one.cpu:8.2f}{one.wall / torch.wall:10.3f}{one.wall / cold.wall:9.3f}"
            f"{peaks[name] / 1e6:8.0f}"
        )


# --- growth -----------------------------------------------------------------------------------------------------------


def _assemble(text: str, output: Path) -> None:
    source = output.with_suffix(".s")
    source.write_text(text)
    subprocess.run(["gcc", "-shared", "-nostdlib", "-s", "-o", str(output), str(source)], check=True)
    source.unlink()


def _symbols(count: int) -> str:
    names = [f"_ZN5bench6kernelILi{number}EE3runEPKvi" for number in range(count)]
    return ".text\n" + "".join(f".globl {name}\n.type {name}, @function\n{name}:\n" for name in names) + "ret\n"


def _fatbin(entries: int) -> bytes:
    entry = struct.pack("<HHIQIIHHIIIQ", 2, 0x101, 64, 64, 0, 0, 0, 0, 90, 0, 0, 0).ljust(64, b"\0") + bytes(64)
    part = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry) * 4) + entry * 4  # four architectures a translation unit
    return part * (entries // 4)


def growth(runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base.so"
        _assemble(_symbols(1), base)

        def files(site: Path, count: int) -> None:
            for number in range(count):
                place = site / "pkg" / f"part{number // 100}"
                place.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(base, place / f"lib{number}.so")

        def symbols(site: Path, count: int) -> None:
            _assemble(_symbols(count), site / "pkg" / "libmany.so")

        def entries(site: Path, count: int) -> None:
            data = Path(folder) / "code.fatbin"
            data.write_bytes(_fatbin(count))
            text = f'.section .nv_fatbin,"a"\n.balign 8\n.incbin "{data}"\n.text\n.globl one\none: ret\n'
            _assemble(text, site / "pkg" / "libcode.so")

        empty = _growth(folder, "files", files, 0, runs)
        print(f"{'grows with':12}{'number':>9}{'wall s':>9}{'CPU s':>8}{'more CPU, us each':>19}{'PSS MB':>12}")
        print(f"{'(empty)':12}{0:>9}{empty.wall:9.3f}{empty.cpu:8.3f}{'':19}{empty.memory / 1e6:12.0f}")
        kinds: tuple[tuple[str, Callable[[Path, int], None], tuple[int, ...]], ...] = (
            ("files", files, (100, 1000, 10_000)),
            ("symbols", symbols, (1000, 10_000, 100_000)),
            ("entries", entries, (1000, 10_000, 100_000)),
        )
        for name, build, counts in kinds:
            for count in counts:
                one = _growth(folder, name, build, count, runs)
                each = (one.cpu - empty.cpu) / count * 1e6
                print(f"{name:12}{count:>9}{one.wall:9.3f}{one.cpu:8.3f}{each:19.1f}{one.memory / 1e6:12.0f}")


def _growth(folder: str, name: str, build: Callable[[Path, int], None], count: int, runs: int) -> Run:
    site = Path(folder) / f"{name}-{count}" / "site-packages"
    (site / "pkg").mkdir(parents=True)
    (site / "pkg-1.0.dist-info").mkdir()
    (site / "pkg-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: pkg\nVersion: 1.0\n")
    build(site, count)
    paths = sorted(str(path.relative_to(site)) for path in site.rglob("*") if path.is_file())
    (site / "pkg-1.0.dist-info" / "RECORD").write_text("".join(f"{path},,\n" for path in paths))
    found: list[Run] = []
    for number in range(runs + 1):
        variables = {**os.environ, "BRINGUP_CACHE_DIR": f"{folder}/cache-{name}-{count}-{number}"}
        measured = run([*BRINGUP, str(site), "--fail-on", "never"], variables)
        if number:
            found.append(measured)
    variables = {**os.environ, "BRINGUP_CACHE_DIR": f"{folder}/cache-{name}-{count}"}
    peak = proportional_peak([*BRINGUP, str(site), "--fail-on", "never"], variables)
    shutil.rmtree(site.parent)
    return best(found)._replace(memory=peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment", type=Path, nargs="?")
    parser.add_argument("--growth", action="store_true", help="measure synthetic packages instead")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--bytecode", choices=("present", "absent", "both"), default="both")
    parser.add_argument("--options", type=shlex.split, default=[], help="options for check, as one argument")
    options = parser.parse_args()
    if options.growth:
        growth(options.runs)
    elif options.environment is None:
        parser.error("name an environment that holds torch, or --growth")
    else:
        for bytecode in ("present", "absent") if options.bytecode == "both" else (options.bytecode,):
            against_torch(options.environment, options.options, options.runs, bytecode)


if __name__ == "__main__":
    main()

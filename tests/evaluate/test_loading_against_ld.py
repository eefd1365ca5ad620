"""The linker's model against the real ld.so: random graphs of small libraries, built by gcc and really opened."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bringup.collect.dynamic_loader import read_host
from bringup.collect.elf import read_library
from bringup.collect.system import read_system_libraries
from bringup.evaluate.loading import Process, World
from bringup.facts import Facts, Interpreter, Known, Library, Variable
from tests.truth.comparison import agrees, describe

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on this machine")

OPEN = """
import ctypes, json, os, sys
def attempt(path):
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            for first in sys.argv[2:]:
                ctypes.CDLL(first, mode=os.RTLD_NOW | os.RTLD_LOCAL)
            ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
            said = "loads"
        except OSError as error:
            said = str(error)
        os.write(writer, said.encode()); os._exit(0)
    os.close(writer)
    return os.fdopen(reader).read()
print(json.dumps({path: attempt(path) for path in json.loads(sys.argv[1])}))
"""

FOLDERS = ("a", "b", "c/lib")


def build(folder: Path, random_: random.Random) -> list[Path]:
    """Eight libraries in three folders: each needs some of those before it, refers to their functions, and has an RPATH, a
    RUNPATH or neither. Some folders hold a second copy of a soname that defines less."""
    built: list[Path] = []
    functions: list[list[str]] = []
    for number in range(8):
        place = folder / random_.choice(FOLDERS)
        place.mkdir(parents=True, exist_ok=True)
        own = [f"family{number}_f{one}" for one in range(3)]
        needs = [one for one in range(number) if random_.random() < 0.4]
        calls = [random_.choice(functions[one]) for one in needs]
        if number and random_.random() < 0.3:
            calls.append(random_.choice(functions[random_.randrange(number)]))  # without needing its library
        if random_.random() < 0.1:
            calls.append(f"nowhere_{number}")
        code = "".join(f"void {name}(void);\n" for name in calls)
        code += "".join(f"void {name}(void) {{}}\n" for name in own)
        code += f"void use{number}(void) {{ {' '.join(f'{name}();' for name in calls)} }}\n"
        source = folder / f"{number}.c"
        source.write_text(code)
        target = place / f"lib{number}.so"
        options = random_.choice(
            (
                ["-Wl,--disable-new-dtags", *(f"-Wl,-rpath,$ORIGIN/{up}" for up in paths(place, folder, random_))],
                ["-Wl,--enable-new-dtags", *(f"-Wl,-rpath,$ORIGIN/{up}" for up in paths(place, folder, random_))],
                [],
            )
        )
        libraries = [str(built[one]) for one in needs]
        command = ["gcc", "-shared", "-fPIC", "-O0", "-o", str(target), str(source), f"-Wl,-soname,lib{number}.so.1"]
        subprocess.run(
            [*command, "-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined", "-Wl,-z,lazy", *options, *libraries],
            check=True,
            capture_output=True,
        )
        versioned = place / f"lib{number}.so.1"
        if random_.random() < 0.85:
            target.rename(versioned)
            built.append(versioned)
        else:
            built.append(target)
        functions.append(own)
        if random_.random() < 0.3:
            other = folder / random_.choice(FOLDERS)
            other.mkdir(parents=True, exist_ok=True)
            poor = folder / f"{number}-poor.c"
            poor.write_text(f"void {own[0]}(void) {{}}\n")
            copy = other / f"lib{number}.so.1"
            if not copy.exists():
                subprocess.run(
                    ["gcc", "-shared", "-fPIC", "-o", str(copy), str(poor), f"-Wl,-soname,lib{number}.so.1"], check=True
                )
    return sorted({*folder.rglob("*.so"), *folder.rglob("*.so.1")})


def paths(place: Path, folder: Path, random_: random.Random) -> list[str]:
    chosen = [one for one in FOLDERS if random_.random() < 0.6]
    return [os.path.relpath(folder / one, place) for one in chosen]


def facts_of(folder: Path, files: list[Path], library_path: str) -> Facts:
    executable = os.path.realpath(sys.executable)
    libraries: list[Library] = []
    for file in files:
        library = read_library(
            file, path=str(file.relative_to(folder)), root=str(folder), owner="", source="", aliases=()
        )
        assert library is not None
        libraries.append(library)
    host = read_host()
    system = read_system_libraries(libraries, host, [one for one in library_path.split(":") if one], executable)
    return Facts(
        target="test",
        host=Known(host, "here"),
        python=Known(Interpreter("3", executable=executable), "here"),
        libraries=Known(tuple(libraries), "here"),
        system_libraries=Known(system, "here"),
        variables=Known((Variable("LD_LIBRARY_PATH", library_path),), "here"),
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_model_says_what_ld_so_does(seed: int, tmp_path: Path) -> None:
    random_ = random.Random(seed)
    folder = Path(os.path.realpath(tmp_path))
    files = build(folder, random_)
    library_path = ":".join(str(folder / one) for one in FOLDERS if random_.random() < 0.35)
    first = random_.sample(files, k=min(2, len(files)))
    environment = {"LD_LIBRARY_PATH": library_path, "PATH": os.environ["PATH"]}
    loadable = [str(one) for one in first if run([str(one)], [], environment)[str(one)] == "loads"]
    really = run([str(one) for one in files], loadable, environment)
    facts = facts_of(folder, files, library_path)
    by_path = {library.full_path: library for library in facts.libraries.value}  # type: ignore[union-attr]
    wrong = []
    for path, said in really.items():
        process = Process(World(facts))
        for one in loadable:
            process.open(by_path[one], keep=True)
        opening = process.open(by_path[path])
        if not agrees(said, opening):
            wrong.append(f"{path}: really {said!r}, predicted {describe(opening)}")
    assert not wrong, "\n".join(wrong)
    assert len(really) >= 8


def run(files: list[str], first: list[str], environment: dict[str, str]) -> dict[str, str]:
    output = subprocess.run(
        [os.path.realpath(sys.executable), "-c", OPEN, json.dumps(files), *first],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    ).stdout
    result: dict[str, str] = json.loads(output)
    return result

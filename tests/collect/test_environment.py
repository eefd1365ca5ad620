"""Reading an installed environment: owners, shared paths, links, damage, and that a second reading only asks for stamps."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from bringup.collect.cache import Cache
from bringup.collect.environment import fingerprint_of, read_roots
from bringup.collect.interpreter import find_environment
from bringup.collect.load_sites import Package, find_load_sites
from bringup.collect.stack import read_variables
from bringup.collect.system import read_system_libraries
from bringup.errors import UnreadableError
from bringup.evaluate.loading import World
from bringup.facts import Facts, Host, Interpreter, Known, SharedPath

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc on this machine")


def install(site: Path, name: str, files: dict[str, bytes], version: str = "1.0") -> None:
    """Lay a distribution into a site-packages folder, with a RECORD whose hashes differ where content does."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nWords: no header\n")
    record = []
    for path, content in files.items():
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        record.append(f"{path},sha256={hash(content) & 0xFFFFFF:x},{len(content)}")
    (info / "RECORD").write_text("\n".join([*record, f"{info.name}/METADATA,,", f"{info.name}/RECORD,,"]) + "\n")


def library(folder: Path, code: str = "int f(void) { return 1; }") -> bytes:
    source, target = folder / "x.c", folder / "x.so"
    source.write_text(code)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", target, source], check=True)
    return target.read_bytes()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "env/lib/python3.11/site-packages"
    folder.mkdir(parents=True)
    (tmp_path / "env/pyvenv.cfg").write_text("home = /nowhere/bin\nversion = 3.11.7\n")
    return folder


@needs_gcc
def test_owners_and_two_owners_of_one_path(site: Path, tmp_path: Path) -> None:
    elf = library(tmp_path)
    install(site, "first-one", {"nvidia/lib/libx.so.1": elf, "nvidia/__init__.py": b""})
    install(site, "second", {"nvidia/lib/libx.so.1": elf + b"\0", "nvidia/__init__.py": b""})
    _, facts = read_roots([str(site)])
    assert [one.name for one in facts.distributions] == ["first-one", "second"]
    assert [(one.path, one.owner) for one in facts.libraries] == [("nvidia/lib/libx.so.1", "first-one")]
    # The same content under one path, as namespace packages have it, is no conflict.
    assert facts.shared_paths == (SharedPath("nvidia/lib/libx.so.1", ("first-one", "second")),)


@needs_gcc
def test_links_are_other_names_of_one_file(site: Path, tmp_path: Path) -> None:
    install(site, "linked", {"pkg/libx.so.1.2": library(tmp_path)})
    (site / "pkg/libx.so.1").symlink_to("libx.so.1.2")
    (site / "pkg/libgone.so").symlink_to("nowhere.so")
    _, facts = read_roots([str(site)])
    [found] = facts.libraries
    assert found.path == "pkg/libx.so.1.2"
    assert found.aliases == (f"{site}/pkg/libx.so.1",)


def test_damage_is_a_result(site: Path) -> None:
    install(
        site,
        "broken",
        {"pkg/cut.so": b"\x7fELF\x02\x01\x01", "pkg/text.so": b"/* GNU ld script */", "pkg/empty.so": b""},
    )
    (site / "nameless-1.dist-info").mkdir()
    (site / "nameless-1.dist-info/METADATA").write_bytes(b"\xff\xfe")
    os.mkdir(os.fsencode(site / "pkg") + b"/odd\xff")  # noqa: PTH102 - a name that is no text
    (Path(os.fsdecode(os.fsencode(site / "pkg") + b"/\xe9.so"))).write_bytes(b"\x7fELF")
    _, facts = read_roots([str(site)])
    assert {one.path for one in facts.unreadable} == {
        "pkg/cut.so",
        "nameless-1.dist-info/METADATA",
        "pkg/odd\\xff",
        "pkg/\\xe9.so",
    }
    assert all(one.reason for one in facts.unreadable)
    msgspec.json.encode(facts)


@needs_gcc
def test_what_has_not_changed_is_not_read_again(site: Path, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    install(site, "steady", {"pkg/libx.so": library(tmp_path)})
    roots = [str(site)]
    assert fingerprint_of(roots, cache) is None
    first, facts = read_roots(roots, cache)
    assert fingerprint_of(roots, cache) == first
    assert msgspec.msgpack.encode(read_roots(roots, cache)[1]) == msgspec.msgpack.encode(facts)
    # A file rewritten in place changes no folder, and is seen all the same.
    (site / "pkg/libx.so").write_bytes(library(tmp_path, "int g(void) { return 2; }"))
    assert fingerprint_of(roots, cache) is None
    second, changed = read_roots(roots, cache)
    assert second != first
    assert changed.libraries[0].exports == "g"
    (site / "pkg/new.so").write_bytes(library(tmp_path))
    assert {one.path for one in read_roots(roots, cache)[1].libraries} == {"pkg/libx.so", "pkg/new.so"}
    shutil.rmtree(site / "pkg")
    assert read_roots(roots, cache)[1].libraries == ()


def test_a_damaged_cache_is_no_error(site: Path, tmp_path: Path) -> None:
    install(site, "steady", {"pkg/__init__.py": b""})
    cache = Cache(tmp_path / "cache")
    _, facts = read_roots([str(site)], cache)
    for file in (tmp_path / "cache").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:-3] + b"\xc1\xc1\xc1")
    assert msgspec.msgpack.encode(read_roots([str(site)], cache)[1]) == msgspec.msgpack.encode(facts)


def test_environments_are_recognised(site: Path, tmp_path: Path) -> None:
    environment = find_environment(tmp_path / "env")
    assert environment.roots == (str(site),)
    assert environment.interpreter is not None
    assert environment.interpreter.version == "3.11.7"
    assert find_environment(site).interpreter is not None
    (site / "more.pth").write_text(f"import sys\n# words\n{tmp_path}/extra\nnot-there\n")
    (tmp_path / "extra").mkdir()
    assert find_environment(tmp_path / "env").roots == (str(site), f"{tmp_path}/extra")
    with pytest.raises(UnreadableError, match="holds no Python environment"):
        find_environment(tmp_path / "extra")
    with pytest.raises(UnreadableError, match="does not exist"):
        find_environment(tmp_path / "gone")


SOURCES = {
    "kern.__init__": b"from kern import loader\nfrom . import guarded\n",
    "kern.loader": b"import other\nfrom kern._C import f\n",
    "kern.guarded": b"try:\n    from . import _extra\nexcept ImportError:\n    _extra = None\n",
    "kern.lazy": b"def use():\n    import kern._lazy\n",
    "kern.tries": b"def load():\n    for n in ('a',):\n        try:\n            import kern._tried\n        except Exception as e:\n"
    b"            errors = [e]\n    raise ImportError(errors)\nload()\n",
    "kern.picks": b"import torch\nV = 3\ntorch.ops.load_library(f'libkern_torch{V}.so')\n",
}


@pytest.mark.parametrize(
    ("path", "when", "guarded", "chain"),
    [
        ("kern/_C.abi3.so", "import", False, ("kern", "kern.loader")),
        ("kern/_extra.cpython-311-x86_64-linux-gnu.so", "import", True, ("kern", "kern.guarded")),
        ("kern/_lazy.so", "call", False, ()),
        ("kern/_tried.so", "call", False, ()),
    ],
)
def test_the_code_that_opens_a_library(path: str, when: str, guarded: bool, chain: tuple[str, ...]) -> None:
    package = Package({name: lambda text=text: text for name, text in SOURCES.items()})  # type: ignore[misc]
    [site] = find_load_sites(package, [path], frozenset({"kern"}))
    assert (site.when, site.guarded, site.chain) == (when, guarded, chain)


def test_a_loader_that_keeps_errors_and_raises_at_the_end_catches_nothing() -> None:
    sources = {**SOURCES, "kern.__init__": b"from kern import tries\n"}
    package = Package({name: lambda text=text: text for name, text in sources.items()})  # type: ignore[misc]
    [site] = find_load_sites(package, ["kern/_tried.so"], frozenset({"kern"}))
    assert (site.when, site.guarded) == ("import", False)


def test_a_name_put_together_at_run_time_is_a_choice() -> None:
    package = Package({name: lambda text=text: text for name, text in SOURCES.items()})  # type: ignore[misc]
    [site] = find_load_sites(package, ["kern/libkern_torch4.so"], frozenset({"kern"}))
    assert site.choice
    assert site.how == "torch"
    assert site.preloads == ("torch",)


def test_what_is_imported_before_is_told() -> None:
    package = Package({name: lambda text=text: text for name, text in SOURCES.items()})  # type: ignore[misc]
    [site] = find_load_sites(package, ["kern/_C.abi3.so"], frozenset({"kern"}))
    assert site.preloads == ("other",)


def test_pipes_are_not_waited_for(site: Path) -> None:
    info = site / "piped-1.0.dist-info"
    info.mkdir()
    os.mkfifo(info / "METADATA")
    os.mkfifo(site / "more.pth")
    _, facts = read_roots([str(site)])
    assert [one.path for one in facts.unreadable] == ["piped-1.0.dist-info/METADATA"]
    assert find_environment(site).roots == (str(site),)


def test_a_variable_that_is_no_text_is_escaped() -> None:
    [found] = read_variables({"LD_LIBRARY_PATH": os.fsdecode(b"/tmp/\xff")})
    assert found.value == "/tmp/\\xff"
    msgspec.json.encode(found)


@needs_gcc
def test_a_shared_interpreter_finds_its_libpython_by_its_own_runpath(tmp_path: Path) -> None:
    """The C API is then libpython's, which lies in no folder that the stack's libraries lead to."""
    home = tmp_path / "home"
    (home / "lib").mkdir(parents=True)
    (home / "bin").mkdir()
    (tmp_path / "p.c").write_text("void PyObject_Call(void) {}\n")
    (tmp_path / "m.c").write_text("void PyObject_Call(void); int main(void) { PyObject_Call(); return 0; }\n")
    library_file = home / "lib/libpython3.11.so.1.0"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{library_file.name}", "-o", library_file, tmp_path / "p.c"],
        check=True,
    )
    subprocess.run(
        [
            "gcc",
            "-o",
            home / "bin/python3",
            tmp_path / "m.c",
            library_file,
            "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib",
        ],
        check=True,
    )
    executable = str(home / "bin/python3")
    system = read_system_libraries((), Host("x86_64"), [], executable)
    assert {Path(one.path).name for one in system} >= {"python3", library_file.name}
    known = Facts(
        target="/e",
        host=Known(Host("x86_64"), "here"),
        python=Known(Interpreter("3.11.7", executable=executable), "here"),
        system_libraries=Known(system, "here"),
    )
    assert World(known).python_api_known
    without = tuple(one for one in system if Path(one.path).name == "python3")
    assert not World(replace(known, system_libraries=Known(without, "here"))).python_api_known

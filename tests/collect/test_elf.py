"""ELF facts: libraries built here, one kind a test, and whole folders against pyelftools."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from bringup.collect.elf import library_from_buffer, read_library
from bringup.collect.filebytes import FileBytes
from bringup.errors import MalformedElfError, UnreadableError
from bringup.facts import Library, names
from tests.collect.oracles import differences, facts_by_pyelftools, facts_of, shared_objects

DATA = Path(__file__).parent / "data"
needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc on this machine")

SOURCE = """
__attribute__((visibility("hidden"))) int hidden_one(void) { return 1; }
__attribute__((visibility("protected"))) int protected_one(void) { return 2; }
__attribute__((weak)) int weak_one(void) { return 3; }
int plain_one(void) { return 4; }
int some_data = 5;
extern int strong_outside(void);
extern int weak_outside(void) __attribute__((weak));
int calls(void) { return strong_outside() + (weak_outside ? weak_outside() : 0) + hidden_one(); }
"""


def build(folder: Path, source: str, *options: str, name: str = "libx.so", language: str = "c") -> Path:
    """A library of that source. What gcc says ends the test."""
    target = folder / name
    subprocess.run(
        ["gcc", "-x", language, "-", "-x", "none", "-shared", "-fPIC", "-O1", "-o", str(target), *options],
        input=source, text=True, check=True, capture_output=True,
    )  # fmt: skip
    return target


def read(file: Path) -> Library:
    library = read_library(file, path=file.name)
    assert library is not None
    return library


def agrees_with_pyelftools(file: Path) -> Library:
    library = read(file)
    assert differences(facts_of(library), facts_by_pyelftools(file)) == []
    return library


def without_section_headers(file: Path) -> Path:
    """What sstrip leaves: e_shoff, e_shnum and e_shstrndx are zero, and so is the table itself."""
    data = bytearray(file.read_bytes())
    offset, count = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    data[offset : offset + 64 * count] = bytes(64 * count)
    struct.pack_into("<Q", data, 40, 0)
    struct.pack_into("<HH", data, 60, 0, 0)
    target = file.with_suffix(".stripped.so")
    target.write_bytes(data)
    return target


def symbols_of(library: Library) -> tuple[set[str], set[str], set[str]]:
    return set(names(library.imports)), set(names(library.weak_imports)), set(names(library.exports))


# --- kinds, built here ------------------------------------------------------------------------------------------------


@needs_gcc
def test_binding_and_visibility(tmp_path: Path) -> None:
    library = agrees_with_pyelftools(build(tmp_path, SOURCE, "-Wl,-soname,libx.so.3"))
    imports, weak, exports = symbols_of(library)
    assert library.soname == "libx.so.3"
    assert library.machine == os.uname().machine
    assert "strong_outside" in imports
    assert "weak_outside" in weak
    assert {"plain_one", "protected_one", "weak_one", "some_data", "calls"} <= exports
    assert "hidden_one" not in exports | imports | weak
    assert library.size == (tmp_path / "libx.so").stat().st_size


@needs_gcc
def test_gnu_unique(tmp_path: Path) -> None:
    source = "template<class T> struct S { static inline int value = 1; };\nint use() { return ++S<int>::value; }\n"
    file = build(tmp_path, source, "-std=c++17", language="c++")
    assert "_ZN1SIiE5valueE" in names(agrees_with_pyelftools(file).exports)


@needs_gcc
def test_symbol_versions(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("V1 { global: one; };\nV2 { global: two; moved; local: *; } V1;\n")
    source = """
    int one(void) { return 1; }  int two(void) { return 2; }  int gone(void) { return 0; }
    int moved_old(void) { return 3; }  int moved_new(void) { return 4; }
    __asm__(".symver moved_old,moved@V1");  __asm__(".symver moved_new,moved@@V2");
    """
    file = build(tmp_path, source, f"-Wl,--version-script,{script}", "-Wl,-soname,libv.so")
    library = agrees_with_pyelftools(file)
    assert {"one@@V1", "two@@V2", "moved@V1", "moved@@V2"} <= set(names(library.exports))
    assert "gone" not in library.exports
    assert library.version_definitions == ("libv.so", "V1", "V2")
    user = build(tmp_path, "extern int moved(void); int f(void) { return moved(); }", str(file), name="libuser.so")
    library = agrees_with_pyelftools(user)
    assert "moved@V2" in names(library.imports)
    assert ("libv.so", ("V2",)) in library.version_needs
    assert library.needed[0] == "libv.so"
    assert symbols_of(read(without_section_headers(user))) == symbols_of(library)


@needs_gcc
@pytest.mark.parametrize("style", ["sysv", "gnu", "both"])
def test_every_hash_table_counts_the_symbols(tmp_path: Path, style: str) -> None:
    file = build(tmp_path, SOURCE, f"-Wl,--hash-style={style}")
    whole, stripped = agrees_with_pyelftools(file), read(without_section_headers(file))
    assert symbols_of(stripped) == symbols_of(whole)
    assert (stripped.soname, stripped.needed, stripped.version_needs) == (
        whole.soname,
        whole.needed,
        whole.version_needs,
    )


@needs_gcc
def test_references_alone_are_counted_by_relocations(tmp_path: Path) -> None:
    """A GNU hash table holds definitions only: empty, it does not say how many references there are."""
    source = 'extern int outside(void); __attribute__((visibility("hidden"))) int f(void) { return outside(); }\n'
    source += "__attribute__((constructor)) static void g(void) { f(); }"
    file = build(tmp_path, source, "-Wl,--hash-style=gnu", "-nostartfiles", "-nostdlib")
    library = agrees_with_pyelftools(file)
    assert names(library.imports) == ["outside"]
    assert library.exports == ""
    assert symbols_of(read(without_section_headers(file))) == symbols_of(library)


@needs_gcc
def test_rpath_and_runpath(tmp_path: Path) -> None:
    path = "-Wl,-rpath,$ORIGIN/../lib:/opt/x"
    old = agrees_with_pyelftools(build(tmp_path, SOURCE, path, "-Wl,--disable-new-dtags", name="old.so"))
    new = agrees_with_pyelftools(build(tmp_path, SOURCE, path, "-Wl,--enable-new-dtags", name="new.so"))
    assert (old.rpath, old.runpath) == (("$ORIGIN/../lib", "/opt/x"), ())
    assert (new.rpath, new.runpath) == ((), ("$ORIGIN/../lib", "/opt/x"))


@needs_gcc
def test_flags(tmp_path: Path) -> None:
    options = ("-Wl,-z,now", "-Wl,-z,nodelete", "-Wl,-z,global", "-Wl,-Bsymbolic", "-Wl,-z,nodlopen")
    assert read(build(tmp_path, SOURCE, *options)).flags == ("global", "nodelete", "noopen", "now", "symbolic")
    source = "__thread int t; int f(void) { return ++t; }"
    assert "static_tls" in read(build(tmp_path, source, "-ftls-model=initial-exec", name="tls.so")).flags


@needs_gcc
def test_no_symbols_at_all(tmp_path: Path) -> None:
    file = build(tmp_path, "", "-nostdlib", "-nostartfiles")
    for one in (file, without_section_headers(file)):
        library = read(one)
        assert (library.imports, library.weak_imports, library.exports, library.needed) == ("", "", "", ())


@needs_gcc
def test_many_symbols(tmp_path: Path) -> None:
    count = 40_000
    source = "\n".join(f".globl s{n}\n.set s{n}, {n + 1}" for n in range(count))
    library = agrees_with_pyelftools(build(tmp_path, source, "-nostdlib", language="assembler"))
    assert set(names(library.exports)) >= {f"s{n}" for n in range(count)}


@needs_gcc
def test_names_that_share_a_tail(tmp_path: Path) -> None:
    source = "int a_long_name(void) { return 1; } int long_name(void) { return 2; } int name(void) { return 3; }"
    assert {"a_long_name", "long_name", "name"} <= set(names(agrees_with_pyelftools(build(tmp_path, source)).exports))


@needs_gcc
def test_executables_export_too(tmp_path: Path) -> None:
    """An extension module finds the interpreter's own symbols in the program that opened it."""
    source = tmp_path / "main.c"
    source.write_text(
        '#include <stdio.h>\nint offered(void) { fputs("", stdout); return 1; }\nint main(void) { return 0; }\n'
    )
    for option, flag in (("-pie", True), ("-no-pie", False)):
        target = tmp_path / f"main{option}"
        options = ["-fPIE" if flag else "-fno-pie", option, "-rdynamic"]
        subprocess.run(["gcc", *options, str(source), "-o", str(target)], check=True)
        library = agrees_with_pyelftools(target)
        assert "offered" in names(library.exports)
        assert ("pie" in library.flags) is flag


def test_the_running_interpreter() -> None:
    file = Path(sys.executable).resolve()
    library = agrees_with_pyelftools(file)
    # Its own, or libpython's; Debian builds both and lets the interpreter bring its own.
    assert "PyObject_Call" in names(library.exports) or any(name.startswith("libpython") for name in library.needed)


@needs_gcc
def test_what_is_no_library(tmp_path: Path) -> None:
    source = tmp_path / "x.c"
    source.write_text("int f(void) { return 1; }\n")
    subprocess.run(["gcc", "-c", str(source), "-o", str(tmp_path / "x.o")], check=True)
    assert read_library(tmp_path / "x.o", path="x.o") is None
    (tmp_path / "script.so").write_text("/* GNU ld script */\nINPUT(libx.so.1)\n")
    assert read_library(tmp_path / "script.so", path="script.so") is None
    (tmp_path / "empty.so").write_bytes(b"")
    assert read_library(tmp_path / "empty.so", path="empty.so") is None


@needs_gcc
@pytest.mark.skipif(not shutil.which("objcopy"), reason="no objcopy on this machine")
def test_separate_debug_information(tmp_path: Path) -> None:
    file = build(tmp_path, SOURCE, "-g")
    subprocess.run(["objcopy", "--only-keep-debug", str(file), str(tmp_path / "libx.so.debug")], check=True)
    library = read(tmp_path / "libx.so.debug")
    assert (library.needed, library.imports, library.exports) == ((), "", "")
    subprocess.run(["strip", str(file)], check=True)
    agrees_with_pyelftools(file)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=r"absent\.so: no such file or directory"):
        read_library(tmp_path / "absent.so", path="absent.so")
    with pytest.raises(UnreadableError, match="is a directory"):
        read_library(tmp_path, path="x")
    os.mkfifo(tmp_path / "pipe.so")
    with pytest.raises(UnreadableError, match="is no regular file"):
        read_library(tmp_path / "pipe.so", path="pipe.so")


# --- other machines, as bytes -----------------------------------------------------------------------------------------


def test_aarch64() -> None:
    library = agrees_with_pyelftools(DATA / "aarch64.so")
    assert library.machine == "aarch64"
    assert library.soname == "libsample.so.1"
    assert library.needed == ("libother.so.1",)
    assert library.version_definitions == ("libsample.so.1", "SAMPLE_1")
    assert names(library.imports) == ["outside@OTHER_1"]
    # GNU ld also defines an absolute symbol for each version.
    assert names(library.exports) == ["SAMPLE_1@@SAMPLE_1", "sample@@SAMPLE_1"]
    assert symbols_of(library_from(without_headers((DATA / "aarch64.so").read_bytes()))) == symbols_of(library)


def test_weak_versions_are_not_required() -> None:
    """Without a version that carries VER_FLG_WEAK the loader warns, and opens the library."""
    data = bytearray((DATA / "aarch64.so").read_bytes())
    verneed = 0x250  # as readelf -d says
    assert struct.unpack_from("<HHIII", data, verneed)[1] == 1
    struct.pack_into("<H", data, verneed + 16 + 4, 2)
    library = library_from(bytes(data))
    assert library.version_needs == (("libother.so.1", ()),)
    assert names(library.imports) == ["outside@OTHER_1"]


def library_from(data: bytes) -> Library:
    library = library_from_buffer(data, path="x.so")
    assert library is not None
    return library


def without_headers(data: bytes) -> bytes:
    return data[:40] + bytes(8) + data[48:60] + bytes(4) + data[64:]


@pytest.mark.parametrize(
    ("elf_class", "order", "machine", "said"),
    [(1, 1, 3, "em_3"), (1, 1, 40, "em_40"), (2, 2, 22, "em_22"), (1, 1, 62, "em_62")],
)
def test_other_machines_are_named_and_not_read(elf_class: int, order: int, machine: int, said: str) -> None:
    byte_order = "<" if order == 1 else ">"
    data = (
        b"\x7fELF"
        + bytes([elf_class, order, 1, 0])
        + bytes(8)
        + struct.pack(f"{byte_order}HHI", 3, machine, 1)
        + bytes(64)
    )
    library = library_from(data)
    assert (library.machine, library.needed, library.exports) == (said, (), "")
    assert library.size == len(data)


# --- damage -----------------------------------------------------------------------------------------------------------


@needs_gcc
def test_truncated_at_every_offset(tmp_path: Path) -> None:
    data = build(tmp_path, SOURCE, "-nostartfiles", "-Wl,-z,max-page-size=4096", "-s").read_bytes()
    said = [outcome(data[:length]) for length in range(len(data))]
    assert set(said) == {"no library", "malformed", "library"}
    # The tables that the loader needs stand in front: what may be missing is what stands behind them.
    assert said.index("library") > said.index("malformed")


def outcome(data: bytes) -> str:
    """Any other exception than MalformedElfError ends the test."""
    try:
        return "library" if library_from_buffer(data, path="x.so") is not None else "no library"
    except MalformedElfError as error:
        return "malformed" if str(error).startswith("x.so: ") and error.reason else "said nothing"


@needs_gcc
def test_a_file_cut_while_it_is_read(tmp_path: Path) -> None:
    file = build(tmp_path, SOURCE)
    with FileBytes(file) as data:
        os.truncate(file, 300)
        with pytest.raises(MalformedElfError, match="while it was read"):
            library_from_buffer(data, path="x.so")


def patched(data: bytes, tag: int, value: int) -> bytes:
    """The library with another value for a tag of its dynamic section."""
    dynamic = next(
        struct.unpack_from("<Q", data, start + 8)[0]
        for start in range(64, 64 + 56 * struct.unpack_from("<H", data, 56)[0], 56)
        if struct.unpack_from("<I", data, start)[0] == 2
    )
    at = dynamic
    while struct.unpack_from("<Q", data, at)[0] != tag:
        at += 16
    return data[: at + 8] + struct.pack("<Q", value) + data[at + 16 :]


@pytest.mark.parametrize(
    ("tag", "value", "reason"),
    [
        (5, 1 << 60, "is in no loaded segment"),  # DT_STRTAB
        (6, 1 << 60, "is in no loaded segment"),  # DT_SYMTAB
        (10, 1 << 60, "larger than any linker's"),  # DT_STRSZ
        (10, 1 << 22, "truncated"),
        (14, 1 << 30, "lies outside of its table"),  # DT_SONAME
        (1, 1 << 30, "lies outside of its table"),  # DT_NEEDED
        (0x6FFFFFFE, 1 << 60, "is in no loaded segment"),  # DT_VERNEED
    ],
)
def test_damage_is_named(tag: int, value: int, reason: str) -> None:
    with pytest.raises(MalformedElfError, match=reason):
        library_from_buffer(patched((DATA / "aarch64.so").read_bytes(), tag, value), path="x.so")


def test_a_name_is_one_line() -> None:
    data = (DATA / "aarch64.so").read_bytes().replace(b"outside\0", b"out\nide\0")
    assert names(library_from(data).imports) == ["out?ide@OTHER_1"]


# --- real files -------------------------------------------------------------------------------------------------------


def test_modules_of_this_python_agree_with_pyelftools() -> None:
    folder = Path(sysconfig.get_paths()["stdlib"]) / "lib-dynload"
    files = list(shared_objects(folder)) if folder.is_dir() else []
    if not files:
        pytest.skip("this Python has no extension modules as files")
    for file in files:
        agrees_with_pyelftools(file)


def test_installed_wheels_agree_with_pyelftools() -> None:
    """Wheels are linked on other systems, by other linkers, and repaired by auditwheel."""
    files = [file for file in shared_objects(Path(sysconfig.get_paths()["platlib"])) if file.stat().st_size < 4_000_000]
    assert files, "msgspec has an extension module"
    for file in files:
        agrees_with_pyelftools(file)


def test_libraries_of_this_system_agree_with_pyelftools() -> None:
    """The largest version tables are those of libc and libstdc++; libm, libgcc_s and the loader have their own habits."""
    found = [
        file.resolve()
        for folder in (f"/lib/{os.uname().machine}-linux-gnu", "/lib64", "/usr/lib64")
        for name in ("libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libpthread.so.0", "libz.so.1")
        if (file := Path(folder) / name).is_file()
    ]
    found += [Path(file).resolve() for file in ("/lib64/ld-linux-x86-64.so.2",) if Path(file).is_file()]
    if not found:
        pytest.skip("no glibc in the usual folders")
    for file in sorted(set(found)):
        library = agrees_with_pyelftools(file)
        assert library.version_definitions or file.name.startswith("libz")


def truth_environments() -> list[Path]:
    """Folders of BRINGUP_TRUTH_ENVS, separated as in PATH: environments or site-packages folders."""
    return [Path(one) for one in os.environ.get("BRINGUP_TRUTH_ENVS", "").split(os.pathsep) if one]


@pytest.mark.truth
def test_whole_environments_agree_with_pyelftools() -> None:
    environments = truth_environments()
    if not environments:
        pytest.skip("BRINGUP_TRUTH_ENVS names no environment")
    disagreements: list[str] = []
    seen: set[tuple[str, int]] = set()
    for file in (file for folder in environments for file in shared_objects(folder)):
        key = (file.name, file.stat().st_size)
        if key in seen:
            continue
        seen.add(key)
        library = read_library(file, path=file.name)
        if library is None or library.machine not in ("x86_64", "aarch64"):
            continue
        if said := differences(facts_of(library), facts_by_pyelftools(file)):
            disagreements.append(f"{file}: {'; '.join(said)}")
    print(f"pyelftools: {len(seen) - len(disagreements)} of {len(seen)} libraries agree")
    assert disagreements == []

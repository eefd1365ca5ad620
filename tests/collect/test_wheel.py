from __future__ import annotations

import os
import struct
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bringup.collect.archive import read_directory
from bringup.collect.elf import read_library
from bringup.collect.remote import LocalFile, RemoteFile, new_client, without_credentials
from bringup.collect.wheel import WheelFacts, installed_path, read_members, read_wheel
from bringup.errors import IndexUnreachableError, MalformedWheelError, UnreadableError
from bringup.facts import Library
from tests.collect.http_server import Manner, serving
from tests.collect.wheels import make_wheel, mutate, real_library

LIBRARY = real_library()


@pytest.fixture(autouse=True)
def _nothing_left_behind(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


def read(path: Path) -> WheelFacts:
    with LocalFile(path) as file:
        return read_wheel(file, name=path.name, root="/site", source=str(path))


def comparable(library: Library) -> tuple[object, ...]:
    return tuple(getattr(library, field) for field in library.__struct_fields__)


def comparable_facts(facts: WheelFacts) -> tuple[object, ...]:
    return (
        facts.distribution,
        [comparable(one) for one in facts.libraries],
        [comparable(one) for one in facts.programs],
        facts.device_files,
        facts.unreadable,
        facts.paths,
    )


def demo(folder: Path) -> Path:
    """Several libraries with gaps of other files in between that range requests can leave out."""
    big = os.urandom(3 << 20)
    return make_wheel(
        folder,
        files={
            "demo/__init__.py": b"from . import _C\n",
            "demo/_C.abi3.so": LIBRARY,
            "demo/static.a": big,
            "demo/lib/libdemo.so.1": LIBRARY + bytes(100_000),
            "demo/data.bin": big,
            "demo/script.so": b"/* GNU ld script */ INPUT(libdemo.so.1)",
            "demo/bin/tool": LIBRARY,
            "demo/kernels/a.ptx": b"//\n.version 8.7\n.target sm_90a\n.address_size 64\n",
            "demo/kernels/b.ptx": b"//\n.version 8.7\n.target sm_90a\n.address_size 64\n",
        },
    )


# --- what a wheel holds ---------------------------------------------------------------------------------------------------


def test_facts_equal_those_of_the_installed_file(tmp_path: Path) -> None:
    facts = read(demo(tmp_path))
    installed = tmp_path / "_C.so"
    installed.write_bytes(LIBRARY)
    expected = read_library(installed, path="demo/_C.abi3.so", root="/site", owner="demo", source="x")
    assert expected is not None
    found = {one.path: one for one in facts.libraries}
    assert list(found) == ["demo/_C.abi3.so", "demo/lib/libdemo.so.1"]
    for field in ("needed", "imports", "exports", "weak_imports", "version_needs", "machine", "owner", "root", "size"):
        assert getattr(found["demo/_C.abi3.so"], field) == getattr(expected, field)
    assert [one.path for one in facts.programs] == ["demo/bin/tool"]
    assert facts.distribution.name == "demo"
    assert facts.distribution.top_level == ("demo",)
    (device,) = facts.device_files
    assert (device.folder, device.files) == ("demo/kernels", 2)
    assert [(code.name, code.ptx_isa, code.count) for code in device.code] == [("compute_90a", "8.7", 2)]
    assert "demo/data.bin" in facts.paths


def test_data_folders_go_where_an_installer_puts_them(tmp_path: Path) -> None:
    files = {
        "demo-1.0.data/platlib/demo/_C.so": LIBRARY,
        "demo-1.0.data/purelib/other.py": b"",
        "demo-1.0.data/scripts/demo": b"#!python\n",
        "demo-1.0.data/headers/demo.h": b"",
    }
    facts = read(make_wheel(tmp_path, files=files))
    assert [one.path for one in facts.libraries] == ["demo/_C.so"]
    assert facts.distribution.top_level == ("demo", "other")
    assert not any(path.endswith((".h", "scripts/demo")) for path in facts.paths)
    assert installed_path("a.data/data/share/x") is None


def test_build_facts_of_torch_come_along(tmp_path: Path) -> None:
    files = {
        "torch/version.py": b"__version__ = '2.11.0+cu130'\ncuda: str | None = '13.0'\nhip = None\ngit_version = 'abc'\n",
        "torch/share/cmake/Torch/TorchConfig.cmake": b'set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=1")\n',
    }
    facts = read(make_wheel(tmp_path, "torch", "2.11.0+cu130", files=files))
    build = dict(facts.distribution.build)
    assert build["cuda"] == "13.0"
    assert build["cxx11_abi"] == "1"


def test_a_wheel_without_record_is_read_by_its_own_list(tmp_path: Path) -> None:
    facts = read(make_wheel(tmp_path, files={"demo/_C.so": LIBRARY}, record=False))
    assert facts.distribution.top_level == ("demo",)
    assert facts.distribution.files == 3


def test_a_damaged_library_is_a_result_and_no_error(tmp_path: Path) -> None:
    facts = read(make_wheel(tmp_path, files={"demo/_C.so": LIBRARY[:200], "demo/ok.so": LIBRARY, "demo/empty.so": b""}))
    assert [one.path for one in facts.libraries] == ["demo/ok.so"]
    (broken,) = facts.unreadable
    assert (broken.path, broken.owner) == ("demo/_C.so", "demo")


def test_members_of_small_files(tmp_path: Path) -> None:
    with LocalFile(demo(tmp_path)) as file:
        assert read_members(file, lambda name: name.endswith(".py")) == {"demo/__init__.py": b"from . import _C\n"}


def test_stored_and_zip64_members_are_read(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("demo/_C.so", "w", force_zip64=True) as member:
            member.write(LIBRARY)
        archive.writestr("demo-1.0.dist-info/METADATA", "Name: demo\nVersion: 1.0\n")
    assert len(read(path).libraries) == 1
    data = path.read_bytes()
    end = data.rfind(b"PK\x05\x06")
    _, _, _, _, count, length, start, _ = struct.unpack("<4sHHHHIIH", data[end:])
    record = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, length, start)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1)
    classic = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    path.write_bytes(data[:end] + record + locator + classic)
    assert len(read(path).libraries) == 1


# --- damaged and hostile ----------------------------------------------------------------------------------------------------


def malformed(path: Path, *said: str) -> None:
    with pytest.raises(MalformedWheelError) as caught:
        read(path)
    assert caught.value.subject.startswith(str(path))
    for text in said:
        assert text in caught.value.reason


@pytest.mark.parametrize("name", ["../evil.so", "/etc/evil.so", "a/../../evil.so", "C:/evil.so", "a\\..\\evil.so"])
def test_members_that_leave_their_folder_are_refused(tmp_path: Path, name: str) -> None:
    malformed(make_wheel(tmp_path, files={name: LIBRARY}), "name" if "\\" in name else "outside of its folder")


def test_symbolic_links_are_refused(tmp_path: Path) -> None:
    path = make_wheel(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo("demo/lib.so")
        link.create_system = 3
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    malformed(path, "symbolic link")


def test_a_zip_bomb_is_refused_before_it_grows(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, files={"demo/_C.so": b"\x7fELF" + bytes(200 << 20)})
    assert path.stat().st_size < 1 << 20
    started = time.perf_counter()
    malformed(path, "zip bomb")
    assert time.perf_counter() - started < 1


def patched(path: Path, name: bytes, offset: int, layout: str, value: int) -> Path:
    """Change a field of a member's entry in the directory."""
    data = bytearray(path.read_bytes())
    entry = data.rfind(b"PK\x01\x02", 0, data.rfind(name))
    struct.pack_into(layout, data, entry + offset, value)
    path.write_bytes(data)
    return path


def test_sizes_that_lie_are_refused(tmp_path: Path) -> None:
    files = {"demo/_C.so": LIBRARY}
    path = make_wheel(tmp_path, files=files)
    malformed(patched(path, b"demo/_C.so", 24, "<I", len(LIBRARY) - 1), "inflates to more")
    path = make_wheel(tmp_path, files=files)
    malformed(patched(path, b"demo/_C.so", 24, "<I", len(LIBRARY) + 1), f"inflates to {len(LIBRARY)} bytes instead of")
    path = make_wheel(tmp_path, files=files)
    malformed(patched(path, b"demo/_C.so", 24, "<I", 0xFFFFFFF0), "more than deflate can hold")


def test_a_wrong_checksum_encryption_and_strange_methods_are_refused(tmp_path: Path) -> None:
    files = {"demo/_C.so": LIBRARY}
    malformed(patched(make_wheel(tmp_path, files=files), b"demo/_C.so", 16, "<I", 1), "CRC")
    malformed(patched(make_wheel(tmp_path, files=files), b"demo/_C.so", 8, "<H", 1), "encrypted")
    malformed(make_wheel(tmp_path, files=files, compression=zipfile.ZIP_LZMA), "method 14")


def test_overlapping_and_repeated_members_are_refused(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, files={"demo/a.so": LIBRARY, "demo/b.so": LIBRARY})
    malformed(patched(path, b"demo/b.so", 42, "<I", 0), "overlaps")
    path = make_wheel(tmp_path, files={"demo/a.so": LIBRARY})
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("demo/a.so", b"")
    malformed(path, "twice")


def test_a_wheel_cut_short_is_refused_at_every_length(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, files={"demo/_C.so": LIBRARY})
    data = path.read_bytes()
    for length in range(0, len(data), max(1, len(data) // 60)):
        path.write_bytes(data[:length])
        malformed(path)


def test_what_is_no_wheel_is_named(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    path.write_bytes(b"<html>not here</html>")
    malformed(path, "no zip archive")
    malformed(make_wheel(tmp_path, metadata=b"Name: other\nVersion: 1.0\n"), "other by its METADATA")
    malformed(make_wheel(tmp_path, metadata=b"Name: demo\nVersion: 2\n"), "version 2 by its METADATA")
    malformed(make_wheel(tmp_path, metadata=b"\0\1"), "binary")
    malformed(make_wheel(tmp_path, files={"other-1.0.dist-info/METADATA": b""}), "several .dist-info")
    with pytest.raises(UnreadableError, match="No such file"):
        LocalFile(tmp_path / "absent.whl")


def test_too_many_members_are_refused_before_they_are_listed(tmp_path: Path) -> None:
    path = make_wheel(tmp_path)
    data = bytearray(path.read_bytes())
    end = data.rfind(b"PK\x05\x06")
    record = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 10**9, 10**9, 46 * 10**9, 0)
    path.write_bytes(data[:end] + record + struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1) + data[end:])
    malformed(path, "larger than any wheel's")


def outcome(path: Path) -> str:
    try:
        read(path)
    except UnreadableError as error:
        return "error" if error.subject.startswith(str(path)) else f"error that does not name the file: {error}"
    return "facts"


def test_damaged_wheels_give_facts_or_one_named_error(tmp_path: Path) -> None:
    source = make_wheel(tmp_path, files={"demo/_C.so": LIBRARY, "demo/a.ptx": b".version 8.0\n.target sm_80\n"})
    data = source.read_bytes()
    outcomes = {"facts": 0, "error": 0}
    for seed in range(500):
        source.write_bytes(mutate(data, seed))
        outcomes[outcome(source)] += 1
    assert outcomes["error"] > 200, outcomes
    assert outcomes["facts"] > 5, outcomes


# --- by range requests ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def remote_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("remote"))


def read_remote(
    wheel: Path, manner: Manner, *, size: int = 0, waits: list[float] | None = None
) -> tuple[WheelFacts, list[str]]:
    slept = waits if waits is not None else []
    with serving(wheel.parent, manner) as server, new_client() as client:
        url = f"{server.url}/{wheel.name}"
        with RemoteFile(url, client, size=size, sleep=slept.append) as file:
            return read_wheel(file, name=wheel.name, root="/site", source=str(wheel)), server.requests


@pytest.mark.parametrize("known_size", [True, False])
@pytest.mark.parametrize("manner", ["good", "ignores_range", "dies_midway", "too_many_requests", "fails_twice", "slow"])
def test_a_remote_wheel_gives_the_same_facts(remote_wheel: Path, manner: Manner, known_size: bool) -> None:
    facts, _ = read_remote(remote_wheel, manner, size=remote_wheel.stat().st_size if known_size else 0)
    assert comparable_facts(facts) == comparable_facts(read(remote_wheel))


def test_only_what_matters_travels(remote_wheel: Path) -> None:
    facts, requests = read_remote(remote_wheel, "good")
    assert facts.bytes_read < remote_wheel.stat().st_size - (5 << 20)
    assert all(one.startswith("bytes=") for one in requests)


def test_a_server_that_ignores_range_is_asked_once(remote_wheel: Path) -> None:
    facts, requests = read_remote(remote_wheel, "ignores_range")
    assert len(requests) == 1
    assert facts.bytes_read == remote_wheel.stat().st_size


def test_a_connection_that_dies_is_taken_up_where_it_stopped(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, files={"demo/_C.so": b"\x7fELF" + os.urandom(8 << 20)})
    with serving(tmp_path, "dies_midway") as server, new_client() as client:
        with RemoteFile(f"{server.url}/{wheel.name}", client, sleep=lambda _: None) as file:
            server.requests.clear()
            assert file.read_at(0, file.size) == wheel.read_bytes()
            assert file.bytes_read < file.size * 1.1
        starts = [int(one[6:].split("-")[0]) for one in server.requests]
    assert starts == sorted(starts)
    assert any(start > 0 for start in starts)


def test_a_busy_server_is_waited_for_as_it_asks(remote_wheel: Path) -> None:
    waits: list[float] = []
    read_remote(remote_wheel, "too_many_requests", waits=waits)
    assert waits == [1.0]


@pytest.mark.parametrize(
    ("manner", "said"),
    [
        ("redirects_endlessly", "redirects without end"),
        ("always_fails", "HTTP 503"),
        ("forbidden", "HTTP 403"),
        ("missing", "HTTP 404"),
        ("needs_password", "asks for credentials"),
        ("no_content_range", "without saying which bytes"),
        ("changes", "changed while it was read"),
        ("drips_then_dies", "tried"),
    ],
)
def test_a_server_that_does_not_help_is_one_error(remote_wheel: Path, manner: Manner, said: str) -> None:
    with pytest.raises(IndexUnreachableError, match=said) as caught:
        read_remote(remote_wheel, manner)
    assert caught.value.subject.endswith(remote_wheel.name)


def test_a_wrong_announced_length_is_corrected(remote_wheel: Path) -> None:
    facts, _ = read_remote(remote_wheel, "announces_too_much")
    assert comparable_facts(facts) == comparable_facts(read(remote_wheel))


def test_another_size_than_the_index_says_is_an_error(remote_wheel: Path) -> None:
    with pytest.raises(IndexUnreachableError, match="instead of"):
        read_remote(remote_wheel, "good", size=remote_wheel.stat().st_size - 7)


def test_nobody_listening_is_an_error() -> None:
    with new_client() as client, pytest.raises(IndexUnreachableError, match="connection fails"):
        RemoteFile("http://127.0.0.1:9/demo-1.0-py3-none-any.whl", client, sleep=lambda _: None)


def test_credentials_are_sent_and_never_shown(remote_wheel: Path) -> None:
    with serving(remote_wheel.parent, "needs_password") as server, new_client() as client:
        url = f"{server.url}/{remote_wheel.name}".replace("//", "//user:secret@", 1)
        with RemoteFile(url, client) as file:
            assert "secret" not in file.subject
            assert len(read_directory(file)) > 5
        absent = url.replace("demo-1.0", "absent-1.0")
        with pytest.raises(IndexUnreachableError) as caught:
            RemoteFile(absent, client)
    assert "secret" not in str(caught.value)
    assert without_credentials("https://u:p@host/a?sig=x#y") == "https://host/a"


def test_a_full_disk_is_said(remote_wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, 0))
    with pytest.raises(UnreadableError, match="TMPDIR"):
        read_remote(remote_wheel, "ignores_range")

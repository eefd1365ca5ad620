from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bringup.collect.index import PinnedWheel, Resolution, open_wheel, resolve
from bringup.collect.platforms import next_platforms, platform_for, ranked_tags
from bringup.collect.pylock import packages_of, rank_of
from bringup.collect.remote import LocalFile, RemoteFile, new_client
from bringup.collect.resolver import explanation, pip_index_url, without_secrets
from bringup.collect.wheel import read_wheel
from bringup.errors import IndexUnreachableError, UnreadableError, UnresolvableError, UsageError
from tests.collect.http_server import FileServer, serving
from tests.collect.wheels import make_wheel, real_library

PLATFORM = "x86_64-manylinux_2_28"
NEW = "cp310-abi3-manylinux_2_34_x86_64"
OLD = "cp310-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small world: an engine that wants torch 2, a kernel that wants torch 3 by its metadata, and what they depend on."""
    folder = tmp_path_factory.mktemp("index")
    for version in ("2.0", "3.0"):
        make_wheel(
            folder, "torchlike", version, requires=[f"companion=={version}"], files={"torchlike/_C.so": real_library()}
        )
        make_wheel(folder, "companion", version)
    make_wheel(folder, "kernel", "1.0", requires=["torchlike>=3"], tag=OLD)
    make_wheel(folder, "newkernel", "1.0", requires=["torchlike"], tag=NEW)
    make_wheel(folder, "engine", "1.0", requires=["torchlike==2.0", "preview>=4.0.0b1"])
    make_wheel(folder, "preview", "3.0")
    make_wheel(folder, "preview", "4.0.0b3")
    make_wheel(folder, "otherengine", "1.0", requires=["companion==3.0"])
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[FileServer]:
    with serving(folder) as server:
        yield server


@pytest.fixture(autouse=True)
def _own_resolver_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "uv-cache"))
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)


def ask(server: FileServer, *requirements: str, **options: object) -> Resolution:
    return resolve(
        requirements,
        python="3.11",
        platform=PLATFORM,
        index_url=f"{server.url}/simple/",
        **options,  # type: ignore[arg-type]
    )


def versions(found: Resolution) -> dict[str, str]:
    return {one.name: one.version for one in found.wheels}


def test_pins_are_exact_files(server: FileServer, folder: Path) -> None:
    found = ask(server, "torchlike==2.0")
    assert versions(found) == {"torchlike": "2.0", "companion": "2.0"}
    assert (found.notes, found.conflicts, found.sources) == ((), (), ())
    wheel = next(one for one in found.wheels if one.name == "torchlike")
    assert wheel.url == f"{server.url}/{wheel.filename}"
    assert wheel.size == (folder / wheel.filename).stat().st_size
    assert len(wheel.sha256) == 64
    with new_client() as client, open_wheel(wheel, lambda: client) as file:
        assert isinstance(file, RemoteFile)
        facts = read_wheel(file, name=wheel.filename, root="/r", source=wheel.filename)
    assert facts.distribution.version == "2.0"
    assert [one.path for one in facts.libraries] == ["torchlike/_C.so"]


def test_a_pair_that_contradicts_itself_is_judged_all_the_same(server: FileServer) -> None:
    found = ask(server, "kernel==1.0", "torchlike==2.0")
    assert versions(found) == {"kernel": "1.0", "torchlike": "2.0", "companion": "2.0"}
    (conflict,) = found.conflicts
    assert "kernel depend on torchlike>=3" in conflict
    assert any("contradict" in note for note in found.notes)


def test_contradictions_of_what_they_depend_on_are_decided_by_the_first(server: FileServer) -> None:
    found = ask(server, "torchlike==2.0", "otherengine==1.0")
    assert versions(found) == {"torchlike": "2.0", "companion": "2.0", "otherengine": "1.0"}
    assert "companion" in found.conflicts[0]


def test_a_newer_platform_is_taken_and_said(server: FileServer) -> None:
    found = ask(server, "newkernel==1.0")
    assert versions(found)["newkernel"] == "1.0"
    assert found.platform == "x86_64-manylinux_2_34"
    assert "manylinux_2_34" in found.notes[0]


def test_prereleases_that_pins_need_are_taken(server: FileServer) -> None:
    found = ask(server, "engine==1.0")
    assert versions(found)["preview"] == "4.0.0b3"
    assert found.notes == ("preview 4.0.0b3 is a pre-release, which the requirements ask for",)


def test_what_does_not_exist_carries_the_resolvers_words(server: FileServer) -> None:
    with pytest.raises(UnresolvableError) as caught:
        ask(server, "torchlike==9.0")
    assert caught.value.reason == (
        "Because there is no version of torchlike==9.0 and you require torchlike==9.0, "
        "we can conclude that your requirements are unsatisfiable."
    )
    assert caught.value.subject == "torchlike==9.0"
    with pytest.raises(UnresolvableError):
        ask(server, "torchlike==9.0", "kernel==1.0")


def test_constraints_overrides_and_no_dependencies(server: FileServer) -> None:
    assert versions(ask(server, "torchlike", constraints=["torchlike<3"]))["torchlike"] == "2.0"
    assert versions(ask(server, "kernel", overrides=["torchlike==2.0"]))["torchlike"] == "2.0"
    assert versions(ask(server, "kernel", no_deps=True)) == {"kernel": "1.0"}


def test_bad_requirements_are_a_matter_of_usage(server: FileServer) -> None:
    with pytest.raises(UsageError, match="no requirement"):
        ask(server, "torch = 2")
    with pytest.raises(UsageError):
        ask(server)


def test_an_index_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(IndexUnreachableError):
        resolve(["torchlike"], python="3.11", platform=PLATFORM, index_url="http://127.0.0.1:9/simple/")


def test_a_folder_of_wheels_without_network(folder: Path) -> None:
    found = resolve(["kernel"], python="3.11", platform=PLATFORM, find_links=[folder], offline=True)
    assert versions(found) == {"kernel": "1.0", "torchlike": "3.0", "companion": "3.0"}
    wheel = next(one for one in found.wheels if one.name == "kernel")
    with open_wheel(wheel, new_client) as file:
        assert isinstance(file, LocalFile)
        assert file.size == (folder / wheel.filename).stat().st_size
    with pytest.raises(UnresolvableError):
        resolve(["absent"], python="3.11", platform=PLATFORM, find_links=[folder], offline=True)


def test_a_wheel_that_is_named_by_its_path(folder: Path, server: FileServer, tmp_path: Path) -> None:
    wheel = next(folder.glob("kernel-*.whl"))
    copied = tmp_path / "with space" / wheel.name
    copied.parent.mkdir()
    shutil.copy(wheel, copied)
    found = ask(server, f"kernel @ {copied.as_uri()}", "torchlike==2.0")
    assert versions(found) == {"kernel": "1.0", "torchlike": "2.0", "companion": "2.0"}
    pinned = next(one for one in found.wheels if one.name == "kernel")
    with open_wheel(pinned, new_client) as file:
        assert file.subject == str(copied)
    assert found.conflicts


# --- small parts --------------------------------------------------------------------------------------------------------------


def test_tags_of_a_platform() -> None:
    rank = ranked_tags("3.11", PLATFORM)
    assert rank["cp311-cp311-manylinux_2_28_x86_64"] < rank["cp310-abi3-manylinux2014_x86_64"] < rank["py3-none-any"]
    assert "cp311-cp311-manylinux_2_34_x86_64" not in rank
    assert "cp312-cp312-manylinux_2_28_x86_64" not in rank
    assert rank_of("a-1-cp311-cp311-manylinux2010_x86_64.whl", rank) is not None
    assert rank_of("a-1-cp311-cp311-win_amd64.whl", rank) is None
    assert rank_of("a-1.tar.gz", rank) is None
    for python, platform in (("3", PLATFORM), ("x", PLATFORM), ("3.11", "windows")):
        with pytest.raises(UsageError):
            ranked_tags(python, platform)


def test_platforms_of_hosts() -> None:
    assert platform_for("x86_64", "glibc 2.36") == "x86_64-manylinux_2_36"
    assert platform_for("x86_64", "glibc 2.29") == "x86_64-manylinux_2_28"
    assert platform_for("aarch64", "") == "aarch64-manylinux_2_28"
    offered = ["manylinux_2_34_aarch64", "manylinux_2_39_x86_64", "manylinux_2_34_x86_64"]
    assert next_platforms(PLATFORM, offered) == "x86_64-manylinux_2_34"
    assert next_platforms("x86_64-manylinux_2_39", offered) is None
    assert next_platforms(PLATFORM, ["win_amd64", "macosx_11_0_arm64"]) is None


def test_explanations_are_plain_text() -> None:
    framed = (
        "  × No solution found when resolving dependencies:\n"
        "  ╰─▶ Because a==1 depends on b==2 and you\n      require b==3, we can conclude\n"
        "      that your requirements are unsatisfiable.\n\n"
        "      hint: look at http://user:secret@host/simple/b/\n"
    )
    assert explanation(framed) == (
        "Because a==1 depends on b==2 and you require b==3, we can conclude that your requirements are unsatisfiable.\n"
        "hint: look at http://host/simple/b/"
    )
    assert without_secrets("see https://u:p@host/x.") == "see https://host/x."


def test_pips_index_is_used_where_uv_has_none(tmp_path: Path) -> None:
    config = tmp_path / ".config" / "pip" / "pip.conf"
    config.parent.mkdir(parents=True)
    config.write_text("[global]\nindex-url = http://mirror/simple\n")
    assert pip_index_url({"HOME": str(tmp_path)}) == "http://mirror/simple"
    assert pip_index_url({"HOME": str(tmp_path), "PIP_INDEX_URL": "http://other"}) == "http://other"
    assert pip_index_url({"HOME": str(tmp_path), "UV_DEFAULT_INDEX": "http://uv"}) == ""
    config.write_text("not = ini")
    assert pip_index_url({"HOME": str(tmp_path), "PIP_CONFIG_FILE": "/nonexistent"}) == ""


@pytest.mark.parametrize("data", [b"\xff", b"a = ", b"packages = 3", b"[[packages]]\nversion = '1'", b""])
def test_what_is_no_lock(data: bytes) -> None:
    with pytest.raises(UnreadableError, match=r"pylock\.toml"):
        packages_of(data, "pylock.toml")


def test_a_wheel_that_is_gone(tmp_path: Path) -> None:
    pinned = PinnedWheel("a", "1", "a-1-py3-none-any.whl", (tmp_path / "a-1-py3-none-any.whl").as_uri())
    with pytest.raises(UnreadableError, match="No such file"):
        open_wheel(pinned, new_client)


# --- the real index -------------------------------------------------------------------------------------------------------------


@pytest.mark.wheels
def test_a_real_wheel_read_by_ranges_equals_the_same_wheel_downloaded(wheel_cache: Path) -> None:
    """sgl-kernel 0.3.21: 536 MB, nearly all of it libraries; the rest does not travel."""
    found = resolve(["sgl-kernel==0.3.21"], python="3.11", platform=PLATFORM, index_url=None, no_deps=True)
    (pinned,) = found.wheels
    name = pinned.filename
    with new_client() as client, open_wheel(pinned, lambda: client) as file:
        remote = read_wheel(file, name=name, root="/r", source=name)
        local = wheel_cache / name
        if not local.exists() or local.stat().st_size != pinned.size:
            part = local.with_suffix(".part")
            with open(part, "wb") as out:
                for piece in file.stream(0, file.size):
                    out.write(piece)
            part.rename(local)
    with LocalFile(local) as copy:
        downloaded = read_wheel(copy, name=name, root="/r", source=name)
    assert remote.bytes_read < pinned.size
    assert remote.distribution == downloaded.distribution
    assert remote.paths == downloaded.paths
    assert [one.path for one in remote.libraries] == [one.path for one in downloaded.libraries]
    for one, other in zip(remote.libraries, downloaded.libraries, strict=True):
        assert all(getattr(one, field) == getattr(other, field) for field in one.__struct_fields__)
    libraries = {one.path: one for one in remote.libraries}
    common = libraries["sgl_kernel/sm100/common_ops.abi3.so"]
    assert {code.name for code in common.device_code} >= {"sm_90a", "sm_100a", "sm_120a"}
    assert "libnvrtc.so.12" in common.needed


@pytest.mark.wheels
def test_a_real_engine_that_needs_a_newer_platform() -> None:
    found = resolve(["sglang==0.5.23"], python="3.11", platform=PLATFORM)
    assert {"sglang", "torch"} <= set(versions(found))
    assert found.platform == "x86_64-manylinux_2_34"

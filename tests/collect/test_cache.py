from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from bringup.collect import cache as module
from bringup.collect.cache import Cache


def files(cache: Cache) -> list[Path]:
    assert cache.folder is not None
    return [path for path in cache.folder.rglob("*") if path.is_file()]


def test_what_was_put_is_there(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "new" / "folder")
    assert cache.get("a") is None
    assert cache.put("a", b"one")
    assert cache.put("b", b"")
    assert cache.put("a", b"two")
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (b"two", b"", None)
    assert len(files(cache)) == 2


@pytest.mark.parametrize("damage", [b"", b"x", b"x" * 1000])
def test_a_damaged_entry_is_no_entry(tmp_path: Path, damage: bytes) -> None:
    cache = Cache(tmp_path)
    cache.put("a", b"content" * 100)
    (path,) = files(cache)
    path.write_bytes(damage)
    assert cache.get("a") is None
    cache.put("a", b"content" * 100)
    path.write_bytes(path.read_bytes()[:-1])
    assert cache.get("a") is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    cache = Cache(occupied)
    assert not cache.put("a", b"")
    assert cache.get("a") is None
    assert not Cache(None).put("a", b"")
    assert Cache(None).get("a") is None


def test_the_environment_chooses_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRINGUP_CACHE_DIR", str(tmp_path))
    assert Cache.open().folder == tmp_path
    monkeypatch.setenv("BRINGUP_NO_CACHE", "1")
    assert Cache.open().folder is None
    monkeypatch.delenv("BRINGUP_NO_CACHE")
    monkeypatch.delenv("BRINGUP_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert Cache.open().folder == tmp_path / "xdg" / "bringup"


def test_the_least_recently_used_leave_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    for index, key in enumerate("abc"):
        cache.put(key, bytes(1000))
        for path in files(cache):
            if path.stat().st_mtime > 1000:
                os.utime(path, (100 + index, 100 + index))
    assert cache.get("a") is not None  # used now
    monkeypatch.setattr(module, "LIMIT", 3500)
    cache.put("d", bytes(1000))
    assert cache.get("b") is None
    assert cache.get("a") is not None
    assert cache.get("d") is not None


def _put(arguments: tuple[str, int]) -> bool:
    folder, number = arguments
    cache = Cache(Path(folder))
    blob = bytes([number]) * 200_000
    good = True
    for _ in range(20):
        cache.put("shared", blob)
        found = cache.get("shared")
        good = good and found is not None and len(found) == 200_000 and len(set(found)) == 1
    return good


def test_processes_side_by_side_never_see_half_an_entry(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        assert all(pool.map(_put, [(str(tmp_path), number) for number in range(4)]))
    assert len(files(Cache(tmp_path))) == 1

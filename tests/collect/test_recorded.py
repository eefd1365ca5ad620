import json
import os
from pathlib import Path

import jsonschema
import pytest

from bringup.collect.recorded import MalformedFactsError, decode_facts, encode_facts, read_facts, write_atomically
from bringup.errors import UnreadableError
from bringup.facts import DeviceCode, Driver, Facts, Gpu, Known, Library

FACTS = Facts(
    target="somewhere",
    gpus=Known((Gpu("H200", 9, 0, 8),), "nvidia-smi"),
    driver=Known(Driver("580.95.05", "13.0"), "nvidia-smi"),
    libraries=Known((Library("a.so", imports="x\ny", device_code=(DeviceCode("sass", 90, "a"),)),), "site-packages"),
)


def test_what_is_written_is_read() -> None:
    assert encode_facts(decode_facts(encode_facts(FACTS), "x")) == encode_facts(FACTS)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is no facts file"),
        (b"\x7fELF\0\0", "is no facts file"),
        (b"[]", "is no facts file"),
        (b'{"a": 1}', "it has no"),
        (b'{"schema": "bringup.facts/9"}', "has the schema bringup.facts/9"),
        (b'{"schema": "bringup.facts/1"}', "damaged"),
        (encode_facts(FACTS)[:-40], "is no facts file"),
        (encode_facts(FACTS).replace(b'"sass"', b'"sauce"'), "damaged"),
        (b'{"schema": "bringup.facts/1", "target": ' + b"[" * 200_000, "is no facts file"),
        (b'\xff\xfe{"schema": 1}', "is no facts file"),
    ],
)
def test_anything_else_is_one_named_error(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedFactsError, match=reason) as caught:
        decode_facts(data, "f.json")
    assert str(caught.value).startswith("f.json: ")
    assert "\n" not in str(caught.value)


def test_every_truncation_is_refused() -> None:
    data = encode_facts(FACTS).rstrip()
    for length in range(len(data)):
        with pytest.raises(MalformedFactsError):
            decode_facts(data[:length], "f.json")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="No such file"):
        read_facts(tmp_path / "absent.json")


def test_a_write_keeps_mode_and_follows_links(tmp_path: Path) -> None:
    file, link = tmp_path / "f", tmp_path / "link"
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UnreadableError, match="cannot be written: No space left"):
        write_atomically(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="absent/f: cannot be written"):
        write_atomically(tmp_path / "absent/f", b"x")


def test_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_atomically(tmp_path / "f", b"x")
    finally:
        os.umask(old)
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, b"x")
    assert os.read(reader, 10) == b"x"
    os.close(reader)


def test_a_facts_file_fits_its_published_schema() -> None:
    schema = json.loads((Path(__file__).parents[2] / "docs/schema/facts.schema.json").read_text())
    jsonschema.validate(json.loads(encode_facts(FACTS)), schema)
    broken = json.loads(encode_facts(FACTS).replace(b'"sass"', b'"sauce"'))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)

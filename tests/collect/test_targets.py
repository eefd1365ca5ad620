from pathlib import Path

import pytest

from bringup.collect.targets import RequirementsFile, Target, parse_targets
from bringup.errors import UnreadableError, UsageError


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_nothing_is_the_active_environment() -> None:
    assert parse_targets([]).kind == "active"


@pytest.mark.parametrize(
    "text",
    [
        "torch",
        "torch==2.11.0",
        "sglang[all]>=0.5,<0.6",
        "torch ; python_version > '3.10'",
        "torch @ https://index.example/t.whl",
    ],
)
def test_requirements(here: Path, text: str) -> None:
    assert parse_targets([text]) == Target(kind="requirements", label=text, requirements=(text,))


def test_requirements_are_judged_together(here: Path) -> None:
    (here / "a-1-py3-none-any.whl").touch()
    (here / "requirements.txt").touch()
    found = parse_targets(["sgl-kernel==0.3.21", "torch==2.11.0", "./a-1-py3-none-any.whl", "requirements.txt"])
    assert found.kind == "requirements"
    assert found.requirements == ("sgl-kernel==0.3.21", "torch==2.11.0")
    assert found.wheels == (f"{here}/a-1-py3-none-any.whl",)
    assert found.files == (RequirementsFile(f"{here}/requirements.txt", "requirements"),)
    assert found.label == "sgl-kernel==0.3.21 torch==2.11.0 ./a-1-py3-none-any.whl requirements.txt"


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("requirements.txt", "requirements"),
        ("dev.in", "requirements"),
        ("pylock.toml", "pylock"),
        ("pylock.gpu.toml", "pylock"),
        ("uv.lock", "uv_lock"),
        ("pyproject.toml", "pyproject"),
        ("Dockerfile", "dockerfile"),
        ("Dockerfile.cuda", "dockerfile"),
        ("engine.Dockerfile", "dockerfile"),
        ("Containerfile", "dockerfile"),
    ],
)
def test_files_of_requirements(here: Path, name: str, form: str) -> None:
    (here / name).touch()
    assert [one.format for one in parse_targets([f"./{name}"]).files] == [form]


def test_a_folder_is_an_environment_or_wheels(here: Path) -> None:
    (here / "venv").mkdir()
    (here / "venv/pyvenv.cfg").touch()
    (here / "house").mkdir()
    (here / "house/x-1-py3-none-any.whl").touch()
    (here / "torch").mkdir()
    assert parse_targets(["venv"]).kind == "environment"
    assert parse_targets(["house"]).kind == "wheel_folder"
    assert parse_targets(["./torch"]).path == f"{here}/torch"
    assert parse_targets(["torch"]).kind == "requirements", "a folder of sources does not take a requirement's place"


def test_several_wheels_are_one_target(here: Path) -> None:
    for name in ("a-1-py3-none-any.whl", "b-1-py3-none-any.whl"):
        (here / name).touch()
    assert parse_targets(["a-1-py3-none-any.whl", "b-1-py3-none-any.whl"]).kind == "wheels"


@pytest.mark.parametrize(
    ("text", "place", "environment"),
    [
        ("ssh://user@box", "ssh://user@box", ""),
        ("ssh://box/pct/200?env=/opt/venv", "ssh://box/pct/200", "/opt/venv"),
        ("docker://engine?env=/v", "docker://engine", "/v"),
        ("kubectl://ns/pod", "kubectl://ns/pod", ""),
    ],
)
def test_places_elsewhere(text: str, place: str, environment: str) -> None:
    found = parse_targets([text])
    assert (found.kind, found.place, found.environment) == ("elsewhere", place, environment)


@pytest.mark.parametrize("text", ["torch==", "a b c", "ssh://", "docker://x?host=y", "ssh://[bad"])
def test_what_is_no_target_is_a_usage_error(here: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r".+"):
        parse_targets([text])


@pytest.mark.parametrize("text", ["./absent", "/absent/env", "absent.whl", "absent.json", "~/absent-7f3", "a\0.txt"])
def test_a_path_that_does_not_exist_is_named(here: Path, text: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        parse_targets([text])
    assert caught.value.subject == text


def test_a_file_of_no_known_kind_is_a_usage_error(here: Path) -> None:
    (here / "x.bin").touch()
    with pytest.raises(UsageError, match="is no target"):
        parse_targets(["./x.bin"])


def test_an_environment_goes_with_nothing_else(here: Path) -> None:
    (here / "env").mkdir()
    with pytest.raises(UsageError, match="cannot be judged together"):
        parse_targets(["./env", "torch==2.11.0"])


def test_a_path_that_is_not_utf_8_is_named_readably() -> None:
    with pytest.raises(UsageError, match=r"^/tmp/\\xff: is not UTF-8"):
        parse_targets(["/tmp/\udcff"])

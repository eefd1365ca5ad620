"""The command line: exit codes, where output goes, and what a person reads when something is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bringup.cli import VERBS, main, main_inner
from bringup.collect.recorded import encode_facts, read_facts
from bringup.commands import check
from bringup.commands.check import exit_code
from bringup.commands.common import private
from bringup.errors import UnreadableError, UsageError
from bringup.facts import Distribution, Facts, Known
from bringup.findings import Finding, Severity
from bringup.report import Evaluation, RuleFault, build, mask

BRINGUP = [sys.executable, "-m", "bringup"]


def facts(*distributions: Distribution, target: str = "a stack") -> Facts:
    return Facts(target=target, distributions=Known(distributions, "METADATA"))


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    file = tmp_path / "clean.json"
    file.write_bytes(encode_facts(facts(Distribution("torch", "2.11.0", build=(("cuda", "13.0"),)))))
    return file


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """torchvision's metadata asks for another torch."""
    file = tmp_path / "broken.json"
    wanted = Distribution("torchvision", "0.26.0", requires=("torch==2.11.0",))
    file.write_bytes(encode_facts(facts(Distribution("torch", "2.9.1"), wanted)))
    return file


def test_help_starts_quickly() -> None:
    code = "import sys; from bringup.cli import main\ntry: main(['--help'])\nexcept SystemExit: print(len(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stderr) < 80
    assert "bringup" in done.stdout


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_each_verb_has_help(verb: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main_inner([verb.name, "--help"])
    assert caught.value.code == 0
    assert f"usage: bringup {verb.name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [[], ["chek"], ["check", "--gpuu", "x"], ["check", "--fail-on", "maybe"], ["--gpu", "check"]]
)
def test_usage_errors_are_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().out == ""


def test_nothing_wrong_is_0(clean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(clean)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("a stack\n")
    assert "What to do first: nothing" in out
    assert err == ""


def test_findings_are_1(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(broken)]) == 1
    assert "torchvision" in capsys.readouterr().out
    assert main(["check", str(broken), "--fail-on", "never"]) == 0


@pytest.mark.parametrize(
    ("severity", "fail_on", "expected"),
    [
        ("error", "error", 1),
        ("warning", "error", 0),
        ("warning", "warning", 1),
        ("info", "warning", 0),
        ("error", "never", 0),
    ],
)
def test_fail_on(severity: Severity, fail_on: str, expected: int) -> None:
    finding = Finding("X001", "k", severity, "import", "s", (), "C")
    evaluation = Evaluation(mask([finding]), ())
    assert exit_code(build(facts(), evaluation, (), "0"), evaluation, fail_on) == expected


def test_a_failed_rule_never_passes_for_nothing_wrong() -> None:
    evaluation = Evaluation((), (), (RuleFault("X001", "Traceback"),), 1)
    report = build(facts(), evaluation, (), "0")
    assert exit_code(report, evaluation, "error") == 4
    assert exit_code(report, evaluation, "never") == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["check", "/absent/env"], 3, "bringup: /absent/env: does not exist"),
        (["check", "--gpu", "rtx-pro-6001x", "CLEAN"], 2, "nearest"),
        (["check", "--driver", "new", "CLEAN"], 2, "--driver new: expected"),
        (["check", "--python", "2.7", "CLEAN"], 2, "--python 2.7: expected"),
        (["explain", "ABI0001"], 2, "the nearest are"),
        (["facts", "CLEAN", "-o", "/absent/f.json"], 3, "/absent/f.json: cannot be written"),
    ],
)
def test_errors_are_one_line_on_stderr(
    arguments: list[str], code: int, words: str, clean: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(clean) if one == "CLEAN" else one for one in arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("bringup: ")
    assert err.count("\n") == 1
    assert words in err


def test_main_inner_raises(clean: Path) -> None:
    with pytest.raises(UnreadableError):
        main_inner(["check", "/absent/env"])
    with pytest.raises(UsageError):
        main_inner(["check", str(clean), "--gpu", "nothing-like-it"])


def test_an_unexpected_error_is_4_and_says_whose_fault(
    clean: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(check, "judge", fail)
    assert main(["check", str(clean)]) == 4
    err = capsys.readouterr().err
    assert "a fault of bringup's own: ZeroDivisionError: by zero" in err
    assert "BRINGUP_DEBUG=1" in err
    monkeypatch.setenv("BRINGUP_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["check", str(clean)])


def test_an_interrupt_is_130(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(check, "judge", interrupt)
    assert main(["check", str(clean)]) == 130


def test_a_reader_that_goes_away_is_no_fault(clean: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*BRINGUP, "check", str(clean)], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_piped_report_has_no_colour_and_keeps_to_100_columns(broken: Path) -> None:
    environment = os.environ | {"COLUMNS": "60", "FORCE_COLOR": "1"}
    done = subprocess.run(
        [*BRINGUP, "check", str(broken)], capture_output=True, text=True, check=False, env=environment
    )
    assert "\x1b" not in done.stdout
    assert 80 < max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize("form", check.FORMATS)
def test_a_file_gets_what_standard_output_would(
    form: str, broken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(broken), "--format", form]) == 1
    shown = capsys.readouterr().out
    assert main(["check", str(broken), "--format", form, "-o", str(tmp_path / "report")]) == 1
    assert capsys.readouterr().out == ""
    assert (tmp_path / "report").read_text() == shown


@pytest.mark.parametrize("form", check.FORMATS)
def test_facts_from_a_file_give_the_same_verdict_byte_for_byte(
    form: str, broken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--gpu", "rtx-pro-6000x8", "--driver", "580.95.05"]
    assert main(["facts", str(broken), *options, "-o", str(tmp_path / "again.json")]) == 0
    main(["check", str(broken), *options, "--format", form])
    first = capsys.readouterr().out
    main(["check", str(tmp_path / "again.json"), "--format", form])
    assert capsys.readouterr().out == first


def test_an_environment_and_its_facts_file_give_the_same_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The environment that runs the tests: a real one, with extension modules."""
    options = ["--gpu", "sm_120", "--format", "json", "-v"]
    assert main(["check", sys.prefix, *options]) in (0, 1)
    first = capsys.readouterr().out
    assert main(["facts", sys.prefix, "-o", str(tmp_path / "facts.json")]) == 0
    assert main(["check", str(tmp_path / "facts.json"), *options]) in (0, 1)
    assert capsys.readouterr().out == first
    assert json.loads(first)["target"] == sys.prefix


def test_options_take_the_place_of_what_was_found(broken: Path, tmp_path: Path) -> None:
    main(
        [
            "facts",
            str(broken),
            "--gpu",
            "h200x8",
            "--driver",
            "580.95.05",
            "--engine",
            "sglang",
            "-o",
            str(tmp_path / "f.json"),
        ]
    )
    found = read_facts(tmp_path / "f.json")
    assert isinstance(found.gpus, Known)
    assert [(one.compute_capability, one.count) for one in found.gpus.value] == [("9.0", 8)]
    assert isinstance(found.driver, Known)
    assert (found.driver.value.cuda, found.driver.source) == ("13.0", "--driver")
    assert found.goal.engine == "sglang"


def test_redact_takes_out_this_machine_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f.json"
    file.write_bytes(encode_facts(facts(target="/home/zaphod/venv on 10.1.2.3")))
    for form in check.FORMATS:
        main(["check", str(file), "--redact", "--format", form])
        shown = capsys.readouterr().out
        assert "zaphod" not in shown
        assert "10.1.2.3" not in shown
        assert "~/venv on [address]" in shown
    main(["facts", str(file), "--redact", "-o", str(tmp_path / "shared.json")])
    assert read_facts(tmp_path / "shared.json").target == "~/venv on [address]"


def test_redact_goes_for_errors_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--redact", "/home/zaphod/absent"]) == 3
    assert capsys.readouterr().err == "bringup: ~/absent: does not exist\n"


@pytest.mark.parametrize("form", ["text", "json"])
def test_redact_goes_for_many_targets_too(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f.json"
    file.write_bytes(encode_facts(facts(target="/home/zaphod/venv")))
    listed = tmp_path / "targets"
    listed.write_text(f"{file}\n/home/zaphod/absent\nssh://zaphod@heart.of.gold?env=\n")
    assert main(["check", "--targets", str(listed), "--redact", "--format", form]) in (1, 3)
    out, err = capsys.readouterr()
    assert "zaphod" not in out + err
    assert "heart" not in out + err
    assert "~/absent" in out


def test_errors_never_hold_credentials(
    clean: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise UnreadableError("https://bob:secret@index.example/simple", "answers 403")

    monkeypatch.setattr(check, "judge", refuse)
    assert main(["check", str(clean)]) == 3
    assert capsys.readouterr().err == "bringup: https://[credentials]@index.example/simple: answers 403\n"


def test_a_terminal_without_unicode_is_no_fault(broken: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [*BRINGUP, "check", "--redact", "\u201c/absent\u201d"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert "\\u201c/absent\\u201d" in done.stderr


def test_private_names_come_from_the_machine() -> None:
    assert private().hosts


def test_explain_prints_a_page_and_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "ABI001"]) == 0
    assert capsys.readouterr().out.startswith("# ABI001: ")
    assert main(["explain"]) == 0
    assert "LIB001  soname_missing_cuda_major_mismatch: " in capsys.readouterr().out

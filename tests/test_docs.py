"""What the documentation says exists: its commands parse, its links lead somewhere, its generated parts are what the code says."""

from __future__ import annotations

import argparse
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from bringup.cli import VERBS
from bringup.evaluate.registry import RULES
from bringup.explain.docs import differences, generated

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
_FENCE = re.compile(r"^```[a-z]*\n(.*?)^```", re.M | re.S)


def commands(page: Path) -> list[str]:
    """The lines of a page's code blocks, and its inline code, that call bringup."""
    text = page.read_text(encoding="utf-8")
    lines = [line.partition("  #")[0].strip() for block in _FENCE.findall(text) for line in block.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", _FENCE.sub("", text))
    found = []
    for line in lines:
        for part in re.split(r"\s*&&\s*", line.removeprefix("$ ")):
            part = part.removeprefix("uv run ")
            if re.match(r"bringup [a-z]+(\s|$)", part) and not re.search(r"\b[A-Z]+\b(?<!FILE)(?<!RULE)$", part):
                found.append(part)
    return found


def parser_of(verb: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=verb, exit_on_error=False)
    import_module(next(one.module for one in VERBS if one.name == verb)).add_arguments(parser)
    return parser


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    for command in commands(page):
        _, verb, *arguments = shlex.split(command)
        assert verb in {one.name for one in VERBS}, command
        if arguments:  # a verb alone is its name in a sentence
            parser_of(verb).parse_args(arguments)


def test_commands_are_found() -> None:
    assert len(commands(ROOT / "docs/guide.md")) > 10
    assert any("sgl-kernel==0.3.21" in command for command in commands(ROOT / "README.md"))


def test_the_readme_has_its_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "pip install uv && uv run bringup check sgl-kernel==0.3.21 torch==2.11.0 --gpu rtx-pro-6000\n" in text
    assert "uv run pytest\n" in text
    assert "uv run pytest" in (ROOT / ".ci/run").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not link.startswith(("http://", "https://", "#")):
            assert (page.parent / link.partition("#")[0]).exists(), link


def test_files_that_are_named_exist() -> None:
    for page in PAGES:
        for name in re.findall(
            r"`((?:tests|docs|scripts)/[\w./-]+|[a-z]+/[a-z_]+\.py)`", page.read_text(encoding="utf-8")
        ):
            assert (ROOT / name).exists() or (ROOT / "src/bringup" / name).exists(), f"{page.name} names {name}"


def test_rules_that_are_named_exist() -> None:
    codes = {module.RULE.code for module in RULES}
    prefixes = {re.sub(r"\d+$", "", code) for code in codes}
    for page in PAGES:
        for name in re.findall(rf"\b((?:{'|'.join(sorted(prefixes))})\d{{3}})\b", page.read_text(encoding="utf-8")):
            assert name in codes, f"{page.name} names {name}"


def test_generated_pages_are_what_the_code_says() -> None:
    assert differences(ROOT / "docs") == []


def test_a_stale_page_is_noticed(tmp_path: Path) -> None:
    for path, content in generated().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content, encoding="utf-8")
    assert differences(tmp_path) == []
    (tmp_path / "rules/ABI001.md").write_text("old")
    (tmp_path / "rules/LIB001.md").unlink()
    (tmp_path / "rules/OLD001.md").write_text("gone")
    assert [line.rpartition("/")[2] for line in differences(tmp_path)] == [
        "ABI001.md is not what the code says",
        "LIB001.md is missing",
        "OLD001.md belongs to no rule",
    ]

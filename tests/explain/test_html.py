import re
from html.parser import HTMLParser

import pytest

from bringup.explain.html import render_html
from bringup.report import Report

from .reports import CASCADE, CLEAN, HOSTILE

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Checker(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("report", [CASCADE, CLEAN, HOSTILE])
def test_is_one_well_formed_page_without_scripts_or_other_files(report: Report) -> None:
    checker = Checker()
    page = render_html(report)
    checker.feed(page)
    assert checker.open == []
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in checker.tags}
    assert not any(name.startswith("on") or name == "src" for _, attributes in checker.tags for name in attributes)
    assert "://" not in page
    assert "url(" not in page


def test_links_lead_to_findings() -> None:
    page = render_html(CASCADE)
    ids = set(re.findall(r'<article id="(F\d+)"', page))
    assert set(re.findall(r'href="#(F\d+)"', page)) <= ids == {"F1", "F2", "F3", "F4", "F5"}


def test_says_what_the_text_says() -> None:
    page = render_html(CASCADE)
    for words in ("uv pip install --upgrade sgl-kernel", "libnvrtc.so.12: cannot open", "taken for", "c10_cuda_check"):
        assert words in page

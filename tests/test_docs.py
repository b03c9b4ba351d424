"""The documentation: short pages, a site that lists every page, links into the code that hold what they promise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from veilkit.cli import app
from veilkit.methods import METHODS

ROOT = Path(__file__).resolve().parent.parent
METHOD_PAGES = sorted((ROOT / "docs" / "methods").glob("*.md"))
MOST_WORDS = {
    "README.md": 800,
    "docs/audit-report.md": 1200,
    **{f"docs/methods/{page.name}": 1000 for page in METHOD_PAGES},
}  # fmt: skip


@pytest.mark.parametrize("page", MOST_WORDS)
def test_pages_are_short(page: str) -> None:
    words = len((ROOT / page).read_text(encoding="utf-8").split())
    assert words <= MOST_WORDS[page]


def test_the_site_lists_every_page_once() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r"(\S+\.md)$", nav, re.M)
    pages = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("studies/*/README.md"),
        *ROOT.glob("models/*.md"),
    ]
    assert sorted(listed) == sorted(page.relative_to(ROOT).as_posix() for page in pages)
    assert listed[0] == "README.md"


def test_the_site_asks_no_other_server() -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "\n  font: false\n" in settings
    assert "http" not in settings


def test_lists_in_pages_are_lists_on_the_site_too() -> None:
    """Unlike a code host, the site's Markdown takes a list that follows a paragraph without a gap for text."""
    joined = [
        f"{page.relative_to(ROOT)}: {found[0].splitlines()[1]}"
        for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
        for found in re.finditer(r"^(?![-*#|>\s]|\d+\.|<!--).+\n(?:[-*] |1\. ).*$", _prose(page), re.M)
    ]
    assert not joined


def _prose(page: Path) -> str:
    """A page without its code."""
    return re.sub(r"^```.*?^```$|^ {4}.*$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def test_the_docs_list_all_methods() -> None:
    listed = CliRunner().invoke(app, ["methods", "list", "--markdown"])
    page = ROOT / "docs" / "methods.md"
    assert page.read_text() == listed.stdout, "write it anew: veilkit methods list --markdown > docs/methods.md"
    for name in METHODS:
        assert f"| `{name}` |" in listed.stdout

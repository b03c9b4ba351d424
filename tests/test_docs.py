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


def test_the_tests_that_the_threat_model_names_exist() -> None:
    table = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8").partition("## Which test shows it")[2]
    rows = [line for line in table.partition("\n## ")[0].splitlines() if line.startswith("| ")][1:]
    written = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    assert rows
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, row
        assert not [name for name in named if f"def {name}(" not in written], row


def test_the_site_lists_every_page_once() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r"(\S+\.md)$", nav, re.M)
    pages = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/*.md"),
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


def questions() -> list[tuple[str, list[str], list[str]]]:
    """What architecture.md asks: the question, the files that answer it, and what must be found in each of them."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("## Ten questions")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines() if line.startswith("|")
    ]
    return [(row[0], re.findall(r"\]\(([^)]+)\)", row[1]), re.findall(r"`([^`]+)`", row[2])) for row in rows[2:]]


def test_a_newcomer_asks_ten_questions() -> None:
    assert len(questions()) == 10
    assert all(links and len(names) == len(links) for _, links, names in questions())


@pytest.mark.parametrize(("question", "links", "names"), questions(), ids=[row[0] for row in questions()])
def test_the_answers_hold_what_they_name(question: str, links: list[str], names: list[str]) -> None:
    for link, name in zip(links, names, strict=True):
        file = ROOT / "docs" / link
        assert file.is_file(), f"{question} {link}"
        assert re.search(rf"(?<!\w){re.escape(name)}", file.read_text(encoding="utf-8")), f"{name} is not in {link}"


def test_the_tree_in_the_architecture_is_the_one_that_stands() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "veilkit"
    listed = set(re.findall(r"^      (\w+)/ ", text, re.M))
    assert listed == {path.parent.name for path in package.glob("*/__init__.py")}
    systems = text.partition("\n      methods/ ")[2].partition("\n      attacks/ ")[0]
    assert set(re.findall(r"(\w+)/ ", systems)) == {
        path.parent.name for path in (package / "methods").glob("*/__init__.py")
    }

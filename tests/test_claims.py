"""Figures in the docs are those that were measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import claims


def test_every_row_is_complete_and_its_verdict_follows_from_its_figure() -> None:
    rows = claims.load()
    assert rows
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert tuple(sorted(row)) == tuple(sorted(claims.FIELDS)), row["id"]
        assert row["holds"] == claims.reaches(row["figure"], row["bar"]), row["id"]
        assert row["holds"] or row["note"], f"{row['id']} falls short and does not say why"
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", row["date"])


def test_the_page_and_the_readme_show_the_measured_figures() -> None:
    rows = claims.load()
    assert claims.PAGE.read_text() == claims.page(rows), "run `make claims`"
    readme = claims.README.read_text()
    assert "<!-- claim:" in readme
    assert readme == claims.with_figures(readme, rows), "run `make claims`"


def test_a_readme_that_names_an_unknown_claim_is_told() -> None:
    with pytest.raises(SystemExit, match="nowhere"):
        claims.with_figures("<!-- claim:nowhere -->1<!-- /claim -->", claims.load())


def test_bars_are_compared_as_they_read() -> None:
    assert claims.reaches(1.0, "<= 1")
    assert not claims.reaches(1.0, "< 1")
    assert claims.reaches(2, ">= 1.5")
    assert claims.reaches(0, "== 0")
    with pytest.raises(ValueError, match="a bar looks like"):
        claims.reaches(1, "about 2")


def test_tables_go_between_their_marks_and_nowhere_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- some tables -->\nold\n<!-- /some tables -->\nafter\n")
    claims.put(page, "some", "new")
    claims.put(page, "some", "newer")
    assert page.read_text() == "before\n<!-- some tables -->\nnewer\n<!-- /some tables -->\nafter\n"
    with pytest.raises(SystemExit, match=r"page\.md has no place"):
        claims.put(page, "other", "new")
    assert "newer" in page.read_text()

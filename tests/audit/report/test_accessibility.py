"""Report, page to sign, comparison, benchmark in Chromium: axe-core finds nothing, phones show it all, it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from report_browser import NoAxeError, NoBrowserError, axe_source, chromium, violations, visit
from tests.audit.folders import plain
from veilkit.audit.benchmark.options import BenchmarkOptions
from veilkit.audit.benchmark.run import run_benchmark

pytestmark = [pytest.mark.browser]
PAGES = ("report.html", "sign.html", "compare.html", "benchmark.html")
WIDTHS = (390, 1300)


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    try:
        with chromium() as opened:
            yield opened
    except NoBrowserError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def pages(browser: object, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    data = plain(tmp_path_factory.mktemp("pages") / "people", people=8, shots=2)
    options = BenchmarkOptions(
        data, ("blur", "pixelate"), expert="histogram", judge="stripes", budget="none", kind="people",
        show_originals=True,
    )  # fmt: skip
    folder = run_benchmark(options).folder
    return {file.name: file for file in sorted(folder.rglob("*.html"), reverse=True)}


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_violation(browser: object, pages: dict[str, Path], name: str) -> None:
    try:
        axe = axe_source()
    except NoAxeError as error:
        pytest.skip(str(error))
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            page = visit(browser, pages[name], viewport={"width": width, "height": 900}, color_scheme=scheme).page
            assert violations(page, axe) == [], (width, scheme)


@pytest.mark.parametrize("name", PAGES)
def test_tables_fit_a_phone(browser: object, pages: dict[str, Path], name: str) -> None:
    seen = visit(browser, pages[name], viewport={"width": 390, "height": 800})
    assert seen.said == []
    assert seen.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    wide = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.ariaLabel)"
    assert seen.page.locator(".scroll:has(table)").evaluate_all(wide) == []


def test_the_page_to_sign_is_one_page_of_paper(browser: object, pages: dict[str, Path]) -> None:
    page = visit(browser, pages["sign.html"], color_scheme="dark").page
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    for words in ("Residual risk", "singling out", "Held by", "Next test by", "refused", "Attacks not made"):
        assert page.get_by_text(words).first.is_visible(), words

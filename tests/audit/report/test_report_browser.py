"""The report in a real browser, offline."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from report_browser import NoBrowserError, chromium, visit
from tests.audit.folders import blur, changed, plain
from veilkit.audit import AuditResult, run_audit, write_comparison

pytestmark = [pytest.mark.browser]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[AuditResult, Path]:
    root = tmp_path_factory.mktemp("audit")
    originals = plain(root / "originals", people=8)
    release = changed(originals, root / "release", blur)
    result = run_audit(originals, release, expert="histogram", judge="histogram", show_originals=True)
    return result, root / "release.audit" / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    try:
        with chromium() as opened:
            yield opened
    except NoBrowserError as error:
        pytest.skip(str(error))


def test_it_opens_offline_without_errors_and_asks_for_nothing(browser, report: tuple[AuditResult, Path]) -> None:
    result, file = report
    seen = visit(browser, file, viewport={"width": 1100, "height": 1400})
    page = seen.page
    assert seen.said == []
    assert seen.asked == []
    assert result.summary
    for finding in result.summary:
        assert page.get_by_text(finding.text.replace(" %", "\u00a0%")).first.is_visible()
        assert page.get_by_role("heading", name=finding.title).is_visible()
    pixels = np.asarray(Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("L"))
    assert pixels.std() > 5  # something is drawn
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_page_that_is_not_silent_is_noticed(browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<img src="other.png"><img src="http://nowhere.invalid/x.png"><script>throw Error("no")</script>')
    seen = visit(browser, page)
    assert {url.rpartition("/")[2] for url in seen.asked} == {"other.png", "x.png"}
    assert any("no" in said for said in seen.said)


def test_what_scrolls_is_reached_with_the_keyboard(browser, report: tuple[AuditResult, Path]) -> None:
    page = visit(browser, report[1]).page
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.tagName")
        )
    assert reached[0] == "A"  # to the summary
    assert {*page.locator("[tabindex='0'][aria-label]").evaluate_all("all => all.map(one => one.ariaLabel)")} <= {
        *reached
    }
    assert page.get_by_text("veilkit audit ORIGINALS PROTECTED").is_visible()


def test_it_prints_in_ink_on_paper_and_leaves_nothing_out(browser, report: tuple[AuditResult, Path]) -> None:
    seen = visit(browser, report[1], viewport={"width": 794, "height": 1123}, color_scheme="dark")
    seen.page.emulate_media(media="print")
    pixels = np.asarray(Image.open(io.BytesIO(seen.page.screenshot(full_page=True))).convert("L"))
    assert pixels.mean() > 180
    assert seen.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    for heading in seen.page.locator("h1, h2, h3").all():
        assert heading.is_visible()
    assert seen.page.pdf().startswith(b"%PDF")
    assert seen.said == []


def test_the_verdicts_come_first_and_fit_a_screen(browser, report: tuple[AuditResult, Path]) -> None:
    page = visit(browser, report[1], viewport={"width": 1280, "height": 1000}).page
    verdicts = page.locator(".verdicts > li")
    assert verdicts.count() == 4
    for place, verdict in enumerate(report[0].verdicts):
        assert verdict.text.replace(" %", "\u00a0%") in verdicts.nth(place).inner_text()
        assert verdict.grade in verdicts.nth(place).inner_text()
    for seen in (*verdicts.all(), page.get_by_text("Utility kept"), page.get_by_text("What this rests on")):
        box = seen.bounding_box()
        assert box["y"] + box["height"] <= 1000


def test_every_picture_and_figure_has_a_text(browser, report: tuple[AuditResult, Path]) -> None:
    page = visit(browser, report[1]).page
    assert page.locator("img").count() == 16
    assert page.locator("img:not([alt]), img[alt='']").count() == 0
    figures = page.locator("svg[role=img]")
    assert figures.count() == 6
    for part in ("title", "desc"):
        told = figures.locator(part).all_text_contents()
        assert len(told) == 6
        assert all(told)
    assert page.locator("img").evaluate_all("all => all.every(one => one.naturalWidth > 0)")


def test_both_pages_fit_a_narrow_window(browser, report: tuple[AuditResult, Path], tmp_path: Path) -> None:
    folder = report[1].parent
    write_comparison([folder, folder], tmp_path)
    for file in (report[1], tmp_path / "compare.html"):
        page = visit(browser, file, viewport={"width": 320, "height": 800}).page  # as at a zoom of 400 %
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), file.name


def test_it_fits_a_phone_and_follows_the_dark(browser, report: tuple[AuditResult, Path]) -> None:
    brightness = []
    for scheme in ("light", "dark"):
        page = visit(browser, report[1], viewport={"width": 390, "height": 800}, color_scheme=scheme).page
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        brightness.append(np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("L")).mean())
    assert brightness[0] > 180
    assert brightness[1] < 80

"""The report in a real browser, offline."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.audit.folders import blur, changed, plain
from veilkit.audit import AuditResult, run_audit

pytestmark = [pytest.mark.browser]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[AuditResult, Path]:
    root = tmp_path_factory.mktemp("audit")
    originals = plain(root / "originals", people=8)
    release = changed(originals, root / "release", blur)
    result = run_audit(originals, release, expert="histogram", judge="histogram", show_originals=True)
    return result, root / "release.audit" / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    if CHROMIUM is None:
        pytest.skip("no Chromium found (chromium, chromium-browser, google-chrome)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


def test_it_opens_offline_without_errors_and_asks_for_nothing(browser, report: tuple[AuditResult, Path]) -> None:
    result, file = report
    context = browser.new_context(offline=True, viewport={"width": 1100, "height": 1400})
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert result.summary
    for finding in result.summary:
        assert page.get_by_text(finding.text.replace(" %", "\u00a0%")).first.is_visible()
        assert page.get_by_role("heading", name=finding.title).is_visible()
    pixels = np.asarray(Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("L"))
    assert pixels.std() > 5  # something is drawn
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    context.close()


def test_details_open_with_the_keyboard(browser, report: tuple[AuditResult, Path]) -> None:
    page = browser.new_context(offline=True).new_page()
    page.goto(report[1].as_uri())
    reached: list[str] = []
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            reached.append(page.evaluate("document.activeElement.innerText"))
            page.keyboard.press("Enter")
        if len(reached) == 3:
            break
    assert reached == page.locator("summary").all_inner_texts()
    assert page.locator("details[open]").count() == 3
    assert page.get_by_text("veilkit audit ORIGINALS PROTECTED").is_visible()


def test_every_picture_and_figure_has_a_text(browser, report: tuple[AuditResult, Path]) -> None:
    page = browser.new_context(offline=True).new_page()
    page.goto(report[1].as_uri())
    assert page.locator("img").count() == 16
    assert page.locator("img:not([alt]), img[alt='']").count() == 0
    figures = page.locator("svg[role=img]")
    assert figures.count() == 4
    for part in ("title", "desc"):
        told = figures.locator(part).all_text_contents()
        assert len(told) == 4
        assert all(told)
    assert page.locator("img").evaluate_all("all => all.every(one => one.naturalWidth > 0)")


def test_it_fits_a_phone_and_follows_the_dark(browser, report: tuple[AuditResult, Path]) -> None:
    light, dark = (
        browser.new_context(offline=True, viewport={"width": 390, "height": 800}, color_scheme=scheme).new_page()
        for scheme in ("light", "dark")
    )
    brightness = []
    for page in (light, dark):
        page.goto(report[1].as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        brightness.append(np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("L")).mean())
    assert brightness[0] > 180
    assert brightness[1] < 80

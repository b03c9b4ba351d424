"""The page in a real browser: a folder is protected, corrected and looked up without a command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from PIL import Image

from report_browser import NoBrowserError, chromium
from tests.conftest import random_picture
from tests.web.serving import Serving, serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        with chromium() as opened:
            yield opened
    except NoBrowserError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    root = tmp_path_factory.mktemp("page") / "root"
    (root / "photos").mkdir(parents=True)
    for number in range(5):
        Image.fromarray(random_picture(number, 96, 64)).save(root / "photos" / f"p{number}.png")
    Image.fromarray(random_picture(7)).save(root / "photos" / "<img src=x onerror=alert(1)>.png")
    with serving(root, tmp_path_factory.mktemp("state")) as found:
        yield found


def _opened(browser: Any, web: Serving, **options: Any) -> tuple[Any, list[str]]:
    """A page that is signed in, and all that it says on the console or asks of others."""
    context = browser.new_context(**{"locale": "en", **options})
    page, said = context.new_page(), []
    page.set_default_timeout(90_000)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(f"a script ran: {dialog.message}"), dialog.dismiss()))
    own = f"http://{web.host}/"
    page.on("request", lambda request: None if request.url.startswith(own) else said.append(request.url))
    page.goto(f"{own}?code={web.session.code}")
    page.wait_for_selector("h1")
    return page, said


@pytest.mark.browser
@pytest.mark.slow
def test_a_folder_is_protected_and_reviewed_and_looked_up(browser: Any, web: Serving) -> None:
    page, said = _opened(browser, web, viewport={"width": 1300, "height": 900})
    page.click("text=photos")
    page.click("text=Use “photos”")
    page.locator("article:has-text('Pixelate everything') .compare").wait_for()
    page.locator("article:has-text('Blur faces')").get_by_text("Choose this").click()
    page.locator("summary", has_text="More options").click()
    page.get_by_label("Settings, as name=value; several with a semicolon").fill("finder=dlib;second=none;bodies=none")
    page.get_by_label("Worker processes").fill("0")
    page.click("text=Protect all pictures")
    page.get_by_text("Look through the pictures").click()
    page.locator("#main h2").get_by_text(".png").wait_for()
    page.keyboard.press("n")
    page.keyboard.press("ArrowRight")
    page.click("text=Apply changes")
    page.get_by_text("The release holds your changes now.").wait_for()
    (log,) = web.parts.roots.folders[0].glob("photos-faceblur.private/*.reviews.jsonl")
    decision = json.loads(log.read_text())
    assert decision["decision"] == "changed"
    assert decision["boxes"][0]["action"] == "hide"
    assert log.stat().st_mode & 0o777 == 0o600
    page.get_by_text("Box 1: to be hidden").wait_for()
    page.keyboard.press("a")
    page.get_by_text("5 of 6 not reviewed yet").wait_for()
    page.goto(f"http://{web.host}/#/ledger")
    form = page.get_by_role("form", name="Look up a picture")
    form.get_by_role("textbox", name="Release").fill("0/photos-faceblur")
    form.get_by_role("textbox", name="Names").fill(decision["picture"])
    form.get_by_role("button", name="Look up").click()
    page.get_by_role("cell", name=decision["picture"]).wait_for()
    assert said == []


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1300])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_and_says_nothing_on_the_console(browser: Any, web: Serving, width: int, scheme: str) -> None:
    page, said = _opened(browser, web, viewport={"width": width, "height": 844}, color_scheme=scheme, locale="de")
    assert page.locator("html").get_attribute("lang") == "de"
    for place in (
        "",
        "review",
        "audit",
        "jobs",
        "more",
        "compare",
        "recover",
        "ledger",
        "withdraw",
        "gallery",
        "study",
    ):
        page.goto(f"http://{web.host}/#/{place}")
        page.wait_for_selector("h1")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert said == []
    page.context.close()

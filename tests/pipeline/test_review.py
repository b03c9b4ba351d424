"""The review page: what stands in it, and the same in a real browser, by keyboard."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from report_browser import NoBrowserError, chromium
from veilkit.media.boxes import read_boxes
from veilkit.pipeline.review.page import FoundBox, ReviewPicture, write_review

HOSTILE = "</script><script>document.title='owned'</script>.png"


def picture(folder: Path, name: str, *, doubtful: bool = False) -> ReviewPicture:
    for place, value in (("before", 200), ("after", 60)):
        (folder / place).mkdir(exist_ok=True)
        Image.fromarray(np.full((120, 160, 3), value, np.uint8)).save(folder / place / f"{len(name)}.png")
    faces = [FoundBox((40, 20, 80, 70), "blurred", doubtful=False)]
    faces += [FoundBox((100, 60, 130, 100), "a region that may be a face: hidden", doubtful=True)] * doubtful
    notes = ("a region that may be a face: hidden",) * doubtful
    files = (folder / place / f"{len(name)}.png" for place in ("before", "after"))
    return ReviewPicture(name, name, *files, 160, 120, tuple(faces), notes)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    pictures = [
        picture(tmp_path, "a/plain.png"),
        picture(tmp_path, HOSTILE),
        picture(tmp_path, "z.png", doubtful=True),
    ]
    (tmp_path / "private").mkdir()
    file = tmp_path / "private" / "review.html"
    write_review(file, pictures, method="faceblur", release="one", summary="3 pictures <b>of</b> 2 people")
    return file


def test_doubtful_pictures_come_first(page: Path) -> None:
    data = json.loads(re.findall(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[0])
    assert [each["path"] for each in data["pictures"]] == ["z.png", HOSTILE, "a/plain.png"]
    assert data["pictures"][0]["before"].startswith("../before/")


def test_only_its_owner_may_read_it(page: Path) -> None:
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_names_and_words_of_others_are_text(page: Path) -> None:
    text = page.read_text()
    assert "<b>of</b>" not in text
    assert "</script><script>document" not in text


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        with chromium() as opened:
            yield opened
    except NoBrowserError as error:
        pytest.skip(str(error))


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1300])
def test_a_review_by_keyboard_ends_in_boxes_that_protect_takes(
    browser: Any, page: Path, tmp_path: Path, width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
    window, said = context.new_page(), []
    window.on("console", lambda message: said.append(message.text))
    window.on("pageerror", lambda error: said.append(str(error)))
    window.goto(page.as_uri())
    assert window.inner_text("#name") == "z.png"
    window.wait_for_function("document.getElementById('before').naturalWidth === 160")
    assert window.locator(".box.doubtful").count() == 1
    window.locator(".box").nth(0).focus()
    window.keyboard.press("l")
    window.locator(".box").nth(1).focus()
    window.keyboard.press("h")
    window.keyboard.press("a")
    assert window.inner_text("#name") == HOSTILE
    assert window.title() == "Review – faceblur"
    window.keyboard.press("n")
    for key in ("ArrowRight", "Shift+ArrowDown"):
        window.keyboard.press(key)
    assert window.evaluate("document.documentElement.scrollWidth") <= width
    with window.expect_download() as download:
        window.keyboard.press("s")
    assert said == []
    download.value.save_as(tmp_path / "boxes.csv")
    boxes = read_boxes(tmp_path / "boxes.csv")
    assert [(box.action, box.corners(160, 120)) for box in boxes["z.png"]] == [
        ("spare", (40, 20, 80, 70)),
        ("hide", (100, 60, 130, 100)),
    ]
    assert [(box.action, box.corners(160, 120)) for box in boxes[HOSTILE]] == [("hide", (66, 45, 96, 76))]
    window.reload()
    window.wait_for_function("document.getElementById('status').innerText.includes('2 of 3')")
    context.close()


@pytest.mark.browser
def test_a_box_is_drawn_with_the_mouse(browser: Any, page: Path) -> None:
    window = browser.new_page(viewport={"width": 1300, "height": 900})
    window.goto(page.as_uri())
    window.wait_for_function("document.getElementById('before').naturalWidth === 160")
    frame = window.locator("#before").bounding_box()
    scale = frame["width"] / 160
    window.mouse.move(frame["x"] + 5 * scale, frame["y"] + 80 * scale)
    window.mouse.down()
    window.mouse.move(frame["x"] + 25 * scale, frame["y"] + 110 * scale)
    window.mouse.up()
    with window.expect_download() as download:
        window.locator("#save").click()
    (box,) = read_boxes(Path(download.value.path()).rename(page.parent / "boxes.csv"))["z.png"]
    assert box.corners(160, 120) == pytest.approx((5, 80, 25, 110), abs=1)
    window.close()

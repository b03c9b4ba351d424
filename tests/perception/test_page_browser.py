"""The page in a real browser, offline: taken by keyboard, its answers saved and scored."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from perception import later_requests
from report_browser import NoBrowserError, Visit, chromium, visit
from tests.perception.studies import folders, make, wrong
from veilkit.perception import Made, score_study
from veilkit.perception.key import StudyKey, read_study_key
from veilkit.perception.plan import Design

pytestmark = [pytest.mark.browser]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("study")
    folders(root)
    return make(root, design=Design(questions=4, checks=2))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        with chromium() as opened:
            yield opened
    except NoBrowserError as error:
        pytest.skip(str(error))


def begin(page: Any, participant: str) -> None:
    """The first screen, by keyboard alone."""
    page.focus("#participant")
    page.keyboard.press("Control+A")
    page.keyboard.type(participant)
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#question[data-ready]")


def answer(page: Any, key: StudyKey, *, noisy_wrong: bool = False) -> str:
    """Answer the question that is shown by its key; returns its code."""
    page.wait_for_selector("#question[data-ready]")
    page.wait_for_timeout(200)  # nobody is that quick
    code = page.get_attribute("#question", "data-code")
    question = key.questions[code]
    given = wrong(code, question) if noisy_wrong and question.condition == "noisy" else question.answer
    page.keyboard.press(page.get_attribute(f'[data-answer="{given}"]', "data-key"))
    page.wait_for_function("code => document.querySelector('#question').dataset.code !== code "
                           "|| !document.querySelector('#end').hidden", arg=code)  # fmt: skip
    return code


def take(seen: Visit, study: Made, participant: str, target: Path) -> list[str]:
    """The whole study: right everywhere but on noise, and saved to `target`; returns the order of questions."""
    key, page = read_study_key(study.key), seen.page
    begin(page, participant)
    order = [answer(page, key, noisy_wrong=True) for _ in key.questions]
    assert page.locator("#end").is_visible()
    with page.expect_download() as saved:
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
    assert saved.value.suggested_filename == f"answers-{participant}.json"
    saved.value.save_as(target)
    return order


def test_it_is_taken_by_keyboard_saved_and_scored(browser, study: Made, tmp_path: Path) -> None:
    orders, files = [], []
    for participant in ("anna-1", "ben_2"):
        seen = visit(browser, study.page, viewport={"width": 1100, "height": 800})
        later = later_requests(seen.page)
        files.append(tmp_path / f"{participant}.json")
        orders.append(take(seen, study, participant, files[-1]))
        assert seen.said == []
        assert seen.asked == later == []
        assert seen.page.input_value("#text") == files[-1].read_text()  # the text to copy is the same
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]  # everybody has an order of their own
    scores = score_study(files, study.key)
    assert scores.participants == ("anna-1", "ben_2")
    assert {each.condition: each.accuracy.value for each in scores.rows} == {
        "blurred": 1.0, "noisy": 0.0, "originals": 1.0,
    }  # fmt: skip
    assert all(0.15 < each.median_seconds < 60 for each in scores.rows)
    whole = json.loads(files[0].read_text())
    assert set(whole) == {"format", "study", "participant", "answers"}
    assert {name for given in whole["answers"] for name in given} == {"question", "answer", "ms"}


def test_it_goes_on_after_a_break_in_the_same_order(browser, study: Made) -> None:
    key = read_study_key(study.key)
    seen = visit(browser, study.page)
    page = seen.page
    begin(page, "later")
    for _ in range(3):
        answer(page, key)
    page.wait_for_selector("#question[data-ready]")
    waiting = page.get_attribute("#question", "data-code")
    page.wait_for_timeout(500)  # Chromium writes what a page stores a moment later
    page.reload()
    page.wait_for_selector("#continue")
    assert "You have answered 3 of 14 questions as later." in page.inner_text("#intro")
    page.click("#continue")
    page.wait_for_selector("#question[data-ready]")
    assert page.get_attribute("#question", "data-code") == waiting
    assert page.inner_text("#count") == "Question 4 of 14"
    assert seen.said == []


def test_without_storage_it_works_all_the_same(browser, study: Made) -> None:
    context = browser.new_context(offline=True)
    context.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } })")
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(study.page.as_uri())
    begin(page, "nothing")
    answer(page, read_study_key(study.key))
    assert page.inner_text("#count") == "Question 2 of 14"
    assert said == []


def test_a_held_key_answers_one_question_only(browser, study: Made) -> None:
    page = visit(browser, study.page).page
    begin(page, "heavy")
    page.wait_for_timeout(200)
    for _ in range(6):  # repeats, as the keyboard sends them; also at once for the next question
        for letter in ("y", "1"):
            page.keyboard.down(letter)
    assert page.inner_text("#count") == "Question 2 of 14"


def test_nobody_starts_without_consent(browser, study: Made) -> None:
    page = visit(browser, study.page).page
    page.click("#start button")
    assert page.locator("#question").is_hidden()
    page.check("#consent")
    page.fill("#participant", "two words")
    page.click("#start button")
    assert page.locator("#question").is_hidden()
    page.fill("#participant", "one")
    page.click("#start button")
    page.wait_for_selector("#question[data-ready]")


def test_it_reads_aloud_and_by_touch(browser, study: Made) -> None:
    seen = visit(browser, study.page, viewport={"width": 390, "height": 780}, has_touch=True)
    page = seen.page
    begin(page, "aloud")
    kinds = set()
    for number in range(1, 15):
        page.wait_for_selector("#question[data-ready]")
        assert page.evaluate("document.activeElement.id") == "asked"  # a screen reader says the question
        assert page.inner_text("[role=status]") == f"Question {number} of 14"
        texts = page.locator("#pictures img").evaluate_all("all => all.map(one => one.alt)")
        pair = page.locator("#pictures.pair").count() == 1
        kinds.add(pair)
        assert texts == (
            ["First picture", "Second picture"] if pair else ["The person", *(f"Choice {n}" for n in range(1, 5))]
        )
        assert page.locator("#pictures img").evaluate_all("all => all.every(one => one.naturalWidth > 0)")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.wait_for_timeout(200)
        page.locator("#pictures button").first.tap()
    assert kinds == {True, False}
    assert page.locator("#end").is_visible()
    assert seen.said == []


def test_it_follows_light_and_dark(browser, study: Made) -> None:
    brightness = []
    for scheme in ("light", "dark"):
        page = visit(browser, study.page, color_scheme=scheme).page
        brightness.append(np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("L")).mean())
    assert brightness[0] > 180
    assert brightness[1] < 80


def test_a_request_that_comes_later_is_noticed(browser, study: Made) -> None:
    page = visit(browser, study.page).page
    later = later_requests(page)
    page.evaluate("location.href = 'http://nowhere.invalid/x'")
    page.wait_for_timeout(300)
    assert later == ["http://nowhere.invalid/x"]


def test_nothing_else_may_run_in_the_page(browser, study: Made, tmp_path: Path) -> None:
    page_file = tmp_path / "study.html"
    text = study.page.read_text()
    page_file.write_text(
        text.replace("<main", '<img src="x" onerror="window.bad=1"><script>window.bad=1</script><main')
    )
    page = browser.new_context(offline=True).new_page()
    page.goto(page_file.as_uri())
    assert page.evaluate("window.bad") is None
    assert page.locator("#intro").is_visible()

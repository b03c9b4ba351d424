"""The perception study: what its page tells apart from its pictures, and whether it works without a network.

Nobody takes part: programs answer by the coarse colours of what the page shows. Their table goes to the docs.
"""

from __future__ import annotations

import base64
import io
import json
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from claims import ROOT, put, record
from process import completed
from report_browser import NoBrowserError, chromium, visit
from veilkit.metrics import clopper_pearson
from veilkit.perception import make_study, score_study
from veilkit.perception.key import StudyKey, read_study_key
from veilkit.perception.plan import Design
from veilkit.perception.scores import study_table
from veilkit.synthetic.people import generate_people

COMMAND = "python benchmarks/perception.py"
PAGE = ROOT / "docs" / "perception-study.md"
SCREENSHOTS = ROOT / "runs"
PEOPLE: dict[str, int] = {"identities": 40, "images": 4, "cameras": 2, "seed": 5, "height": 128}
METHODS = ("blur", "pixelate")
DATA = f"generated people, methods {' and '.join(METHODS)}"
PAGES, CHOICES = 12, 40  # pages, and choices on each, on which readers of the structure try themselves
CONFIDENCE = 0.999


def write_folders(work: Path) -> None:
    generate_people(work / "people", workers=1, **PEOPLE)
    for method in METHODS:
        completed("protect", work / "people", work / method, "--method", method, "--workers", "0")


def page_data(page: Path) -> dict[str, Any]:
    return json.loads(page.read_text().partition('id="data">')[2].partition("</script>")[0])


def words(work: Path, key: StudyKey) -> set[str]:
    """What a page must not hold: folders, file names and methods; who is who is in the file names."""
    files = [file for folder in ("people", *METHODS) for file in (work / folder).rglob("*.*")]
    return {file.stem for file in files} | {c.name for c in key.conditions if not c.control} | {"people", str(work)}


def found(text: str, secret: set[str]) -> Counter[str]:
    """Secret words in a page's own text (its pictures' bytes are random letters) and in what its pictures say."""
    pictures = [base64.b64decode(each) for each in re.findall(r"base64,([A-Za-z0-9+/=]+)", text)]
    written = re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)
    written = re.sub(
        r"<style>.*?</style>|<section id=\"intro\".*?</section>", "", written, flags=re.S
    )  # our own words
    said = " ".join(str(Image.open(io.BytesIO(each)).info or "") for each in pictures)
    return Counter({word: count for word in secret if (count := written.count(word) + said.count(word))})


def structure_rules(question: dict[str, Any]) -> dict[str, int]:
    """Guesses of the right choice by a reader who looks at no picture."""
    sizes = [len(option["image"]) for option in question["options"]]
    codes = [int(option["code"], 16) for option in question["options"]]
    own = int(question["code"], 16)
    return {
        **{f"place {place}": place for place in range(len(sizes))},
        "largest file": int(np.argmax(sizes)),
        "smallest file": int(np.argmin(sizes)),
        "code nearest to the question's": min(range(len(codes)), key=lambda place: abs(codes[place] - own)),
        "code most unlike the question's": max(range(len(codes)), key=lambda place: (codes[place] ^ own).bit_count()),
    }


def read_structures(work: Path) -> dict[str, tuple[int, int]]:
    """For each rule the choices that it got right, and all."""
    right: Counter[str] = Counter()
    asked = 0
    for number in range(PAGES):
        made = make_study(
            work / "people", [work / "pixelate"], work / f"page{number}",
            design=Design(kinds=("choice",), questions=CHOICES, checks=0), control=False,
        )  # fmt: skip
        key = read_study_key(made.key)
        for question in page_data(made.page)["questions"]:
            asked += 1
            for rule, place in structure_rules(question).items():
                right[rule] += question["options"][place]["code"] == key.questions[question["code"]].answer
    return {rule: (right[rule], asked) for rule in structure_rules(question)}


def colours(address: str) -> np.ndarray:
    with Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))) as image:
        return np.asarray(image.resize((3, 6), Image.Resampling.BOX), dtype=float)[
            :, 1
        ]  # the middle, from top to toe


def program(page: Path, participant: str, seed: int) -> dict[str, Any]:
    """A participant who sees six colours of each picture, and those not quite."""
    random, data = np.random.default_rng(seed), page_data(page)
    answers = []
    for question in data["questions"]:
        shown = colours(question["shown"])
        far = [np.abs(colours(option["image"]) - shown).mean() for option in question["options"]]
        if question["kind"] == "pair":
            answer = "same" if far[0] * random.uniform(0.8, 1.25) < 28 else "different"
        else:
            answer = question["options"][int(np.argmin(far * random.uniform(0.8, 1.25, len(far))))]["code"]
        answers.append({"question": question["code"], "answer": answer, "ms": int(random.uniform(900, 6000))})
    return {
        "format": "veilkit-study-answers-1", "study": data["study"], "participant": participant, "answers": answers,
    }  # fmt: skip


def later_requests(page: Any) -> list[str]:
    """Addresses that a page asks for from now on, as a list that grows; its own data: and blob: excepted."""
    asked: list[str] = []
    page.on("request", lambda request: request.url.startswith(("data:", "blob:")) or asked.append(request.url))
    return asked


def taken(work: Path, page: Path, key: StudyKey) -> tuple[int, Path]:
    """The study taken by keyboard: messages and requests, and the answers saved."""
    with chromium() as browser:
        for scheme in ("light", "dark"):
            seen = visit(browser, page, viewport={"width": 1100, "height": 800}, color_scheme=scheme)
            shot, later = seen.page, later_requests(seen.page)
            shot.check("#consent")
            shot.keyboard.press("Enter")
            shot.wait_for_selector("#question[data-ready]")
            shot.screenshot(path=SCREENSHOTS / f"study-{scheme}.png")
        for _ in key.questions:
            shot.wait_for_selector("#question[data-ready]")
            shot.wait_for_timeout(200)
            code = shot.get_attribute("#question", "data-code")
            shot.keyboard.press(shot.get_attribute(f'[data-answer="{key.questions[code].answer}"]', "data-key"))
        with shot.expect_download() as saved:
            shot.click("#download")
        saved.value.save_as(work / "answers.json")
        lines = [*seen.said, *seen.asked, *later]
        for line in lines:
            print(line)
        return len(lines), work / "answers.json"


def main() -> None:
    SCREENSHOTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_folders(work)
        made = make_study(work / "people", [work / method for method in METHODS], work / "study", seed=PEOPLE["seed"])
        key = read_study_key(made.key)
        scale = f"{made.questions} questions, {made.checks} checks, {made.size / 1e6:.1f} MB"
        secret = words(work, key)
        if not found(made.key.read_text(), secret):
            raise SystemExit("the search finds nothing in the key either, so it proves nothing")
        told = found(made.page.read_text(), secret)
        print(f"searched for {len(secret)} words; found {dict(told)}")
        record(
            id="study-blind",
            claim="A perception study's page: file names, folders and methods found in it and in its pictures' "
            "metadata",
            figure=told.total(),
            bar="== 0",
            unit="words",
            data=DATA,
            scale=scale,
            seed=PEOPLE["seed"],
            command=COMMAND,
        )
        beaten = 0
        for rule, (right, asked) in read_structures(work).items():
            interval = clopper_pearson(right, asked, confidence=CONFIDENCE)
            print(f"{rule}: {interval.value:.1%} ({interval.low:.1%} to {interval.high:.1%}), chance 25 %")
            beaten += interval.low > 0.25 or interval.high < 0.25
        record(
            id="study-structure",
            claim="Rules that name the right choice from a page's structure (places, codes, sizes) better or "
            "worse than chance",
            figure=beaten,
            bar="== 0",
            unit="rules of 8",
            data=DATA,
            scale=f"{PAGES * CHOICES} choices on {PAGES} pages",
            seed=None,
            command=COMMAND,
        )
        files = []
        for number in range(6):
            files.append(work / f"program{number}.json")
            files[-1].write_text(json.dumps(program(made.page, f"program-{number}", number)))
        put(PAGE, "perception", f"```text\n{study_table(score_study(files, made.key))}```")
        try:
            messages, answers = taken(work, made.page, key)
        except NoBrowserError as error:
            print(f"not taken: {error}")
            return
        rates = {row.accuracy.value for row in score_study([answers], made.key).rows}
        if rates != {1.0}:
            raise SystemExit(f"right answers were scored as {rates}")
        record(
            id="study-offline",
            claim="A perception study taken by keyboard in Chromium without a network: console messages and requests",
            figure=messages,
            bar="== 0",
            unit="messages",
            data=DATA,
            scale=scale,
            seed=PEOPLE["seed"],
            command=COMMAND,
        )


if __name__ == "__main__":
    main()

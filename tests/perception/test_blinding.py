"""What a page may not tell: answers, names, paths, methods; neither in words nor by its structure."""

from __future__ import annotations

import base64
import io
import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, PngImagePlugin
from scipy.stats import binomtest, chisquare

from tests.audit.folders import blur, changed, person
from tests.perception.studies import folders, make, page_data
from veilkit.perception import make_study
from veilkit.perception.key import DIFFERENT, SAME, Blinded, blind, read_study_key
from veilkit.perception.material import Picture
from veilkit.perception.plan import Design, Question
from veilkit.rng import Randomness

CANARY = "canary7f3a"
HERE = Path("originals")


def _picture(person: int, shot: int) -> Picture:
    return Picture(HERE, f"{person}/{shot}", str(person), None, f"{person}/{shot}")


def _address(picture: Picture) -> str:
    return f"data:,{picture.path}"


def _many(count: int) -> list[Question]:
    """Questions whose first half is of one method, and whose pairs are first all the same, then all different."""
    questions: list[Question] = []
    for n in range(count):
        method = "a" if n < count // 2 else "b"
        options = tuple(_picture(n if k == 0 else n + k, 1) for k in range(4))
        questions.append(Question("choice", method, _picture(n, 0), options, 0))
        same = n < count // 2
        questions.append(
            Question("pair", method, _picture(n, 0), (_picture(n if same else n + 1, 1),), 0 if same else None)
        )
    return questions


def _bits(code: str) -> list[int]:
    return [int(bit) for bit in f"{int(code, 16):072b}"]


@pytest.fixture(scope="module")
def blinded() -> Blinded:
    return blind(_many(600), Randomness(b"a secret of sixteen"), _address)


def test_the_right_choice_stands_anywhere(blinded: Blinded) -> None:
    places = Counter(
        [option["code"] for option in question["options"]].index(blinded.key[question["code"]].answer)
        for question in blinded.page
        if question["kind"] == "choice"
    )
    assert set(places) == {0, 1, 2, 3}
    assert chisquare(list(places.values())).pvalue > 1e-3


def test_the_order_of_questions_follows_neither_method_nor_answer(blinded: Blinded) -> None:
    for labels in (
        [blinded.key[each["code"]].condition == "a" for each in blinded.page],
        [blinded.key[each["code"]].answer == SAME for each in blinded.page if each["kind"] == "pair"],
        [each["kind"] == "pair" for each in blinded.page],
    ):
        first, all_of_them = sum(labels[: len(labels) // 2]), sum(labels)
        assert binomtest(first, all_of_them).pvalue > 1e-3
        changes = sum(a != b for a, b in pairwise(labels))
        assert binomtest(changes, len(labels) - 1).pvalue > 1e-3


def test_no_bit_of_a_code_goes_with_the_answer_or_the_method(blinded: Blinded) -> None:
    pairs = [(code, question) for code, question in blinded.key.items() if question.kind == "pair"]
    bits = np.array([_bits(code) for code, _ in pairs])
    for labels in ([q.answer == SAME for _, q in pairs], [q.condition == "a" for _, q in pairs]):
        found = np.array([np.corrcoef(bits[:, place], labels)[0, 1] for place in range(bits.shape[1])])
        assert np.abs(found).max() < 4.5 / len(pairs) ** 0.5
    options = [(code, code == q.answer) for q in blinded.key.values() if q.kind == "choice" for code in q.options]
    bits = np.array([_bits(code) for code, _ in options])
    found = np.array([np.corrcoef(bits[:, place], [right for _, right in options])[0, 1] for place in range(72)])
    assert np.abs(found).max() < 4.5 / len(options) ** 0.5


def test_all_questions_of_a_kind_have_one_structure(blinded: Blinded) -> None:
    def shape(value: object) -> object:
        if isinstance(value, dict):
            return tuple((name, shape(each)) for name, each in value.items())
        return tuple(shape(each) for each in value) if isinstance(value, list) else type(value).__name__

    for kind in ("pair", "choice"):
        assert len({shape(question) for question in blinded.page if question["kind"] == kind}) == 1
    assert all(len(code) == 18 for code in blinded.key)
    assert len({o["code"] for q in blinded.page for o in q["options"]} | set(blinded.key)) == 600 * 5 + 1200


def test_swapped_answers_give_the_very_same_page() -> None:
    """The page follows from pictures and secret alone, whatever is said to be right, and of which method."""
    questions = _many(10)
    swapped = [
        Question(q.kind, "other", q.shown, q.options, (q.right or 0) + 1 if q.kind == "choice" else None)
        for q in questions
    ]
    secret = Randomness(b"a secret of sixteen")
    one, other = blind(questions, secret, _address), blind(swapped, secret, _address)
    assert json.dumps(one.page) == json.dumps(other.page)
    assert all(q.answer == DIFFERENT for q in other.key.values() if q.kind == "pair")
    assert all(other.key[c].answer != q.answer for c, q in one.key.items() if q.kind == "choice")


def test_codes_cannot_be_guessed_from_content() -> None:
    questions = _many(10)
    one, other = (blind(questions, Randomness(secret * 2), _address) for secret in (b"secret a", b"secret b"))
    assert not set(one.key) & set(other.key)


def test_every_study_has_codes_of_its_own_unless_a_seed_is_given(tmp_path: Path) -> None:
    folders(tmp_path)
    design = Design(questions=4, checks=2)
    keys = [
        read_study_key(make(tmp_path, f"s{n}", design, seed=seed).key) for n, seed in enumerate((None, None, 5, 5))
    ]
    assert not set(keys[0].questions) & set(keys[1].questions)
    assert keys[0].study != keys[1].study
    assert keys[2].questions == keys[3].questions
    assert keys[2].page_sha256 == keys[3].page_sha256


def test_the_page_holds_no_name_no_path_no_method_and_no_metadata(tmp_path: Path) -> None:
    originals = tmp_path / f"{CANARY}-originals"
    for number in range(6):
        (originals / f"{CANARY}-person{number}").mkdir(parents=True)
        for shot in range(2):
            comment = PngImagePlugin.PngInfo()
            comment.add_text("Comment", f"{CANARY} comment")
            exif = Image.Exif()
            exif[270] = f"{CANARY} description"
            Image.fromarray(person(number, shot)).save(
                originals / f"{CANARY}-person{number}" / f"{CANARY}-{shot}.png", pnginfo=comment, exif=exif
            )
    release = changed(originals, tmp_path / f"{CANARY}-pixelate", blur)
    made = make_study(originals, [release], tmp_path / "study", design=Design(questions=8))
    assert CANARY in made.key.read_text()  # the key knows the folder; the search works
    text = made.page.read_text()
    pictures = [base64.b64decode(each) for each in re.findall(r"base64,([A-Za-z0-9+/=]+)", text)]
    assert len(pictures) > 40
    for data in (text.encode(), *pictures):
        assert CANARY.encode() not in data
        assert b"pixelate" not in data
    for data in pictures:
        with Image.open(io.BytesIO(data)) as image:
            assert image.format == "PNG"
            assert not image.info
            assert not image.getexif()
        assert set(re.findall(rb"IHDR|IDAT|IEND|tEXt|iTXt|zTXt|eXIf|tIME|pHYs|iCCP", data)) <= {
            b"IHDR",
            b"IDAT",
            b"IEND",
        }
    key = read_study_key(made.key)
    data = page_data(made)
    assert set(data) == {"study", "questions"}
    for question in data["questions"]:
        known = key.questions[question["code"]]
        assert set(question) == {"code", "kind", "shown", "options"}
        if known.kind == "choice":
            assert text.count(known.answer) == 1  # as an option like any other


def test_pictures_of_all_shapes_come_out_alike(tmp_path: Path) -> None:
    """A protected picture has the shape of its original; it must not be found by it."""
    originals = tmp_path / "originals"
    for number in range(6):
        (originals / str(number)).mkdir(parents=True)
        for shot in range(2):
            image = Image.fromarray(person(number, shot, (40 + 6 * number, 20 + 3 * shot)))
            image.save(originals / str(number) / f"{shot}.{'jpg' if number % 2 else 'png'}")
    release = tmp_path / "release"
    for file in originals.rglob("*.*"):
        made_file = (release / file.relative_to(originals)).with_suffix(".png")
        made_file.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(file) as image:
            image.convert("RGB").save(made_file)
    made = make_study(originals, [release], tmp_path / "study", design=Design(questions=6))
    addresses = re.findall(r"data:image/\w+;base64,[A-Za-z0-9+/=]+", made.page.read_text())
    shapes = set()
    for address in addresses:
        assert address.startswith("data:image/png;")
        with Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))) as image:
            shapes.add((image.size, image.mode))
    assert len(shapes) == 1


def test_large_pictures_are_made_smaller(tmp_path: Path) -> None:
    originals = tmp_path / "originals"
    for number in range(2):
        (originals / str(number)).mkdir(parents=True)
        for shot in range(2):
            Image.fromarray(person(number, shot, (900, 450))).save(originals / str(number) / f"{shot}.png")
    release = changed(originals, tmp_path / "release", blur)
    design = Design(kinds=("pair",), questions=2, checks=0)
    data = page_data(make_study(originals, [release], tmp_path / "study", design=design))
    with Image.open(io.BytesIO(base64.b64decode(data["questions"][0]["shown"].partition(",")[2]))) as image:
        assert image.size == (128, 256)

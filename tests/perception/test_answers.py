"""Files that participants hand in, and what is wrong with some."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.perception.studies import folders, hand_in, make, sheet, truth, wrong
from veilkit.errors import DataError, KeyFileError
from veilkit.perception import Made, score_study
from veilkit.perception.key import read_study_key
from veilkit.perception.plan import Design


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("study")
    folders(root)
    return make(root, design=Design(questions=4, checks=2))


def _first(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    return lambda whole: change(whole["answers"][0])


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "another study": (lambda s: s.update(study="0" * 16), "answers another study"),
    "a question twice": (lambda s: s["answers"].append(s["answers"][0]), "answers a question twice"),
    "a question missing": (lambda s: s["answers"].pop(), "lacks 1 of 14 answers"),
    "a question of its own": (_first(lambda a: a.update(question="00" * 9)), "questions that the study does not ask"),
    "an answer of its own": (_first(lambda a: a.update(answer="perhaps")), "that its question does not offer"),
    "no time": (_first(lambda a: a.pop("ms")), r"answers\.0\.ms"),
    "time as text": (_first(lambda a: a.update(ms="5")), r"answers\.0\.ms"),
    "time before the question": (_first(lambda a: a.update(ms=-5)), r"answers\.0\.ms"),
    "a year": (_first(lambda a: a.update(ms=31_536_000_000)), "more than a day"),
    "another field": (lambda s: s.update(score=1.0), "score"),
    "a name that is a path": (lambda s: s.update(participant="../x"), "participant"),
    "another format": (lambda s: s.update(format="other"), "format"),
    "no answers": (lambda s: s.update(answers=None), "answers"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_answers_are_refused_with_the_reason(study: Made, tmp_path: Path, name: str) -> None:
    change, message = CHANGES[name]
    whole = copy.deepcopy(sheet(read_study_key(study.key), "one", truth))
    change(whole)
    file = tmp_path / "answers.json"
    file.write_text(json.dumps(whole))
    with pytest.raises(DataError, match=message):
        score_study([file], study.key)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b"{", b"null", b"[" * 100_000])
def test_what_is_no_file_of_answers_is_refused(study: Made, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "answers.json"
    file.write_bytes(content)
    with pytest.raises(DataError, match="no file of answers"):
        score_study([file], study.key)


def test_one_participant_counts_once(study: Made, tmp_path: Path) -> None:
    first = hand_in(study, "one", truth)
    other = tmp_path / "again.json"
    other.write_text(json.dumps(sheet(read_study_key(study.key), "one", wrong)))
    with pytest.raises(DataError, match="are both of participant one"):
        score_study([first, other], study.key)
    other.write_text(json.dumps(sheet(read_study_key(study.key), "two", truth)))
    with pytest.raises(DataError, match="one is a copy under another code"):
        score_study([first, other], study.key)
    other.write_text(json.dumps(sheet(read_study_key(study.key), "two", truth, ms=900)))
    assert score_study([first, other], study.key).participants == ("one", "two")


def test_only_those_who_were_given_a_code_take_part(tmp_path: Path) -> None:
    folders(tmp_path)
    made = make(tmp_path, design=Design(questions=2, checks=0), participants=2)
    codes = read_study_key(made.key).participants or ()
    assert score_study([hand_in(made, codes[0], truth)], made.key).participants == codes[:1]
    with pytest.raises(DataError, match="none of the codes that were given out"):
        score_study([hand_in(made, "stranger", truth)], made.key)


def test_missing_files_and_keys_are_told(study: Made, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected files of answers, but got none"):
        score_study([], study.key)
    with pytest.raises(DataError, match="cannot be read"):
        score_study([tmp_path / "nothing.json"], study.key)
    with pytest.raises(KeyFileError, match="there is no key"):
        score_study([tmp_path], tmp_path / "key.json")
    with pytest.raises(KeyFileError, match="is not the key of a study"):
        score_study([tmp_path], hand_in(study, "one", truth))

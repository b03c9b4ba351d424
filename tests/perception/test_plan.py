"""Which questions are drawn."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from veilkit.errors import DataError
from veilkit.perception.material import CONTROL, Condition, Material, Picture
from veilkit.perception.plan import CHECK, Design, Planner, Question
from veilkit.rng import Randomness

HERE, THERE = Path("originals"), Path("protected")


def material(people: int = 30, shots: int = 4, cameras: int = 2, control: bool = True) -> Material:
    originals, made = [], []
    for person in range(people):
        for shot in range(shots):
            path, camera = f"{person}/{shot}", str(shot % cameras) if cameras else None
            originals.append(Picture(HERE, path, str(person), camera, path))
            made.append(Picture(THERE, path, str(person), camera, path))
    conditions = [Condition("made", None, tuple(made))]
    if control:
        conditions.append(Condition(CONTROL, None, tuple(originals), control=True))
    return Material(tuple(conditions), tuple(originals), (), True)


def look(picture: Picture) -> np.ndarray:
    return np.full((8, 4, 3), float(picture.person), dtype=np.float32)


def plan(subject: Material, design: Design | None = None, seed: int = 0, look=look) -> list[Question]:
    return Planner(subject, design or Design(), Randomness.from_seed(seed), look).questions()


def test_there_are_as_many_questions_as_asked_for_half_of_the_pairs_the_same() -> None:
    questions = plan(material(), Design(questions=20, checks=6))
    asked = Counter((question.condition, question.kind) for question in questions)
    assert asked == {
        ("made", "pair"): 10, ("made", "choice"): 10, (CONTROL, "pair"): 10, (CONTROL, "choice"): 10,
        (CHECK, "pair"): 3, (CHECK, "choice"): 3,
    }  # fmt: skip
    for condition in ("made", CONTROL):
        pairs = [question for question in questions if (question.condition, question.kind) == (condition, "pair")]
        assert sum(question.right is not None for question in pairs) == 5


def test_what_is_right_is_the_person_and_what_is_wrong_is_not() -> None:
    for question in plan(material(), Design(choices=5)):
        right = [place for place, each in enumerate(question.options) if each.person == question.shown.person]
        assert right == ([] if question.right is None else [question.right])
        assert len(question.options) == (1 if question.kind == "pair" else 5)
        assert len({each.person for each in question.options}) == len(question.options)
        assert all(each.root == HERE for each in question.options)


def test_right_and_wrong_come_from_another_camera_and_never_from_the_own_original() -> None:
    for question in plan(material()):
        if question.condition != CHECK:
            assert not question.own
            assert all(each.camera != question.shown.camera for each in question.options)
            assert all(each.path != question.shown.own for each in question.options)


def test_without_another_original_the_own_one_is_taken_and_told() -> None:
    questions = plan(material(shots=1, control=False))
    right = [q for q in questions if q.condition != CHECK and q.right is not None]
    assert all(question.own for question in right)
    assert not any(question.own for question in questions if question not in right)


def test_a_control_never_shows_a_picture_beside_itself_but_checks_do() -> None:
    for seed in range(5):
        for question in plan(material(shots=2, cameras=0), seed=seed):
            beside = [each.path for each in question.options if each.person == question.shown.person]
            if question.condition == CONTROL:
                assert question.shown.path not in beside
            elif question.condition == CHECK:
                assert beside in ([], [question.shown.path])


def test_nobody_is_asked_about_twice_while_there_are_others() -> None:
    questions = [question for question in plan(material(people=40)) if question.condition != CHECK]
    assert len({question.shown.person for question in questions}) == len(questions) == 40
    few = [question for question in plan(material(people=12)) if question.condition != CHECK]
    for kind in ("pair", "choice"):
        for condition in ("made", CONTROL):
            here = [q.shown.person for q in few if (q.kind, q.condition) == (kind, condition)]
            assert len(set(here)) == 10


def test_a_check_that_must_be_denied_takes_somebody_who_looks_different() -> None:
    differences = [
        abs(int(question.shown.person) - int(question.options[0].person))
        for question in plan(material(people=30), Design(kinds=("pair",), checks=40))
        if question.condition == CHECK and question.right is None
    ]
    assert len(differences) == 20
    assert np.mean(differences) > 15  # 10 by chance


def test_what_cannot_be_read_is_never_shown() -> None:
    def half(picture: Picture) -> np.ndarray | None:
        return None if int(picture.path.rpartition("/")[2]) % 2 else look(picture)

    for question in plan(material(), look=half):
        assert all(half(each) is not None for each in (question.shown, *question.options))


def test_too_few_people_are_told() -> None:
    with pytest.raises(DataError, match="but there are 3: take more people"):
        plan(material(people=3), Design(kinds=("choice",)))
    with pytest.raises(DataError, match=r"needs 2 people .* but there is 1: take more people$"):
        plan(material(people=1), Design(kinds=("pair",)))
    with pytest.raises(DataError, match="none of its pictures can be read"):
        plan(material(control=False), look=lambda picture: None)
    with pytest.raises(DataError, match="--no-control"):
        plan(Material((material(shots=1).conditions[1],), material(shots=1).originals, (), True))


def test_the_same_seed_draws_the_same_questions() -> None:
    assert plan(material(), seed=3) == plan(material(), seed=3)
    assert plan(material(), seed=3) != plan(material(), seed=4)

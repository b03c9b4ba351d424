"""Scores of participants who answer in known ways."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from tests.perception.studies import attentive, folders, hand_in, make, truth, wrong
from veilkit.errors import DataError
from veilkit.perception import Made, StudyScores, score_study
from veilkit.perception.key import DIFFERENT, SAME, KeyQuestion, read_study_key
from veilkit.perception.plan import Design
from veilkit.perception.scores import Row, study_table


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("study")
    folders(root, people=24)
    return make(root, design=Design(questions=40, checks=6), seed=1)


def row(scores: StudyScores, condition: str, kind: str) -> Row:
    return next(each for each in scores.rows if (each.condition, each.kind) == (condition, kind))


def guessing(seed: int, share: float = 0.0):
    """Knows a share of the answers and guesses the rest, on noise; knows all on originals and the blurred ones."""
    random = np.random.default_rng(seed)

    def answer(code: str, question: KeyQuestion) -> str:
        knows = question.condition != "noisy" or random.random() < share
        return question.answer if knows else question.options[random.integers(len(question.options))]

    return answer


def test_accuracy_chance_and_questions_are_counted_by_condition_and_kind(study: Made) -> None:
    files = [hand_in(study, f"g{seed}", guessing(seed), 500 * seed) for seed in range(6)]
    scores = score_study(files, study.key)
    assert len(scores.rows) == 6
    key = read_study_key(study.key)
    given = [json.loads(file.read_text())["answers"] for file in files]
    for each in scores.rows:
        codes = {c for c, q in key.questions.items() if (q.condition, q.kind) == (each.condition, each.kind)}
        right = [
            a["answer"] == key.questions[a["question"]].answer for s in given for a in s if a["question"] in codes
        ]
        assert each.accuracy.value == pytest.approx(np.mean(right))
        assert (each.questions, each.answers) == (20, 120)
        assert each.chance == (0.5 if each.kind == "pair" else 0.25)
        times = [a["ms"] for s in given for a in s if a["question"] in codes]
        assert each.median_seconds == pytest.approx(np.median(times) / 1000)
    noisy, blurred = row(scores, "noisy", "choice"), row(scores, "blurred", "choice")
    assert noisy.accuracy.low < 0.25 < noisy.accuracy.high
    assert "draws of 6 participants and 20 people" in noisy.interval_by
    assert noisy.against_chance == "not told"
    assert blurred.against_chance == "recognised"
    assert noisy.minus_control is not None
    assert noisy.minus_control.high < 0
    assert noisy.minus_control.value == pytest.approx(noisy.accuracy.value - 1)
    assert blurred.accuracy.low == pytest.approx(0.025 ** (1 / 20))  # exact, 20 people of 20
    assert "exact (Clopper-Pearson) over 20 people" in blurred.interval_by


def test_sensitivity_is_told_apart_from_bias(study: Made) -> None:
    scores = score_study([hand_in(study, "yes", attentive(lambda code, question: question.options[0]))], study.key)
    found = row(scores, "noisy", "pair").detection
    assert found is not None
    assert (found.hits, found.false_alarms) == (1.0, 1.0)
    assert found.d_prime.value == pytest.approx(0)
    assert found.criterion < -1
    found = row(score_study([hand_in(study, "all", truth)], study.key), "noisy", "pair").detection
    assert found is not None
    z = NormalDist().inv_cdf
    assert found.d_prime.value == pytest.approx(z(10.5 / 11) - z(0.5 / 11))
    assert found.d_prime.low > 1
    assert row(scores, "noisy", "choice").detection is None


def test_one_participant_has_an_exact_interval(study: Made) -> None:
    key = read_study_key(study.key)
    asked = [c for c, q in key.questions.items() if (q.condition, q.kind) == ("noisy", "choice")]

    def half(code: str, question: KeyQuestion) -> str:
        return wrong(code, question) if code in asked[:10] else question.answer

    scores = score_study([hand_in(study, "half", half)], study.key)
    found = row(scores, "noisy", "choice")
    assert (found.accuracy.low, found.accuracy.high) == (
        pytest.approx(0.2720, abs=1e-4),
        pytest.approx(0.7280, abs=1e-4),
    )
    assert found.interval_by == "exact (Clopper-Pearson) over 20 questions of one participant"
    assert found.agreement.kappa is None
    assert "one participant" in found.agreement.why
    assert any(note.startswith("1 participant: ") and "take at least 5" in note for note in scores.notes)
    assert "1 participant counts, 0 do not." in study_table(scores)


def test_agreement_is_cohens_for_two_and_fleiss_for_more(study: Made) -> None:
    key = read_study_key(study.key)
    pairs = [c for c, q in key.questions.items() if (q.condition, q.kind) == ("noisy", "pair")]

    def says(same: list[str]):
        return attentive(lambda code, q: q.answer if q.kind == "choice" else SAME if code in same else DIFFERENT)

    # Two raters, 20 pairs: both "same" on 5, only one of them on 5 each, both "different" on 5: 50 % and chance 50 %.
    one, two = hand_in(study, "c1", says(pairs[:10])), hand_in(study, "c2", says(pairs[5:15]), 50)
    agreed = row(score_study([one, two], study.key), "noisy", "pair").agreement
    assert agreed.name == "Cohen's kappa"
    assert agreed.kappa == pytest.approx(0)
    # A third who answers like the first: of each pair of raters' 60 comparisons 20 + 10 + 10 agree; half say "same".
    three = hand_in(study, "c3", says(pairs[:10]), 70)
    agreed = row(score_study([one, two, three], study.key), "noisy", "pair").agreement
    assert agreed.name == "Fleiss' kappa"
    assert agreed.kappa == pytest.approx((40 / 60 - 0.5) / 0.5)
    assert row(score_study([one, two], study.key), "noisy", "choice").agreement.kappa == pytest.approx(1)


def test_agreement_that_is_not_defined_is_said_to_be(study: Made) -> None:
    files = [hand_in(study, f"n{n}", attentive(lambda code, q: q.options[1]), 100 * n) for n in range(2)]
    scores = score_study(files, study.key)
    assert row(scores, "noisy", "pair").agreement.kappa is None
    assert "Agreement: noisy, same or not: not defined" in study_table(scores)


def test_the_careless_are_left_out_by_a_rule_that_is_told(study: Made) -> None:
    def always(code: str, question: KeyQuestion) -> str:
        return SAME if question.kind == "pair" else wrong(code, question)

    files = [hand_in(study, "good", truth), hand_in(study, "always", always)]
    scores = score_study(files, study.key)
    assert scores.participants == ("good",)
    assert [each.participant for each in scores.dropped] == ["always"]
    assert "at least 5 of 6 attention checks" in scores.rule
    assert "Left out: always" in study_table(scores)
    with pytest.raises(DataError, match="of 1 participant none passed"):
        score_study(files[1:], study.key)


def test_one_slip_is_forgiven(study: Made) -> None:
    key = read_study_key(study.key)
    slip = next(code for code, question in key.questions.items() if question.is_check)
    file = hand_in(study, "slip", lambda code, q: wrong(code, q) if code == slip else q.answer)
    assert score_study([file], study.key).participants == ("slip",)


def test_a_low_number_proves_nothing_where_the_control_is_not_recognised(study: Made) -> None:
    def blind(seed: int):
        random = np.random.default_rng(seed)
        return attentive(lambda code, q: q.options[random.integers(len(q.options))])

    scores = score_study([hand_in(study, f"b{seed}", blind(seed), seed) for seed in range(5)], study.key)
    assert {each.against_chance for each in scores.rows} <= {"invalid", "worse than chance", "recognised"}
    assert all(each.invalid for each in scores.rows if each.kind == "choice")
    assert "INVALID" in study_table(scores)


def test_few_right_answers_on_the_control_are_not_called_a_failure(tmp_path: Path) -> None:
    folders(tmp_path)
    made = make(tmp_path, design=Design(questions=4))

    def control_only(code: str, question: KeyQuestion) -> str:
        return question.answer if question.condition in ("originals", "check") else wrong(code, question)

    scores = score_study([hand_in(made, "one", control_only)], made.key)
    found = row(scores, "noisy", "choice")
    assert found.invalid == (
        "on unprotected pictures, too, these participants are not told from chance (100.0 % right, at least 15.8 % "
        "for sure)",
    )  # two people of two: 0.025 ** (1 / 2)
    assert found.minus_control is not None
    assert found.minus_control.value == -1.0
    assert (found.minus_control.low, found.minus_control.high) == (-1.0, pytest.approx(1 - 2 * 0.025 ** (1 / 2)))


def test_json_holds_everything_and_the_same_draws_come_again(study: Made) -> None:
    files = [hand_in(study, f"j{seed}", guessing(seed), seed) for seed in range(3)]
    one, other = (score_study(files, study.key).to_json() for _ in range(2))
    assert one == other
    assert score_study(files, study.key, draw_seed=1).to_json() != one
    table = json.loads(one)
    assert {"study", "participants", "dropped", "rule", "rows", "notes"} == set(table)
    assert {"accuracy", "interval_by", "chance", "against_chance", "detection"} <= set(table["rows"][0])


def test_a_study_without_control_or_checks_says_so(tmp_path: Path) -> None:
    folders(tmp_path)
    made = make(tmp_path, design=Design(kinds=("pair",), questions=4, checks=0), control=False)
    scores = score_study([hand_in(made, "one", wrong)], made.key)
    assert scores.rule == "no attention checks: everybody counts"
    assert any("no control" in note for note in scores.notes)
    assert all(each.minus_control is None for each in scores.rows)
    assert {each.accuracy.value for each in scores.rows} == {0.0}

"""Verdicts against cases worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.audit.results import attacked, result_of
from veilkit.attacks.base import LACKING, Need
from veilkit.attacks.gated import reaches_clean_bound
from veilkit.attacks.learned.learning import loss_levelled
from veilkit.attacks.recovered import beats_mean_image
from veilkit.audit.cells.differences import tallied_difference
from veilkit.audit.report.markdown import write_markdown
from veilkit.audit.report.model import rests_on
from veilkit.audit.report.tables import attack_rows
from veilkit.audit.result import Tallies, Tally
from veilkit.audit.verdicts.findings import summarise
from veilkit.audit.verdicts.levels import level_verdicts
from veilkit.audit.verdicts.remedies import for_invalid, needed
from veilkit.audit.verdicts.verdict import Grade, Thresholds, grade, over_chance, read_thresholds
from veilkit.audit.verdicts.wording import described
from veilkit.errors import ConfigError
from veilkit.types import Evidence, Level, Reason, ReasonCode, Role, Score


@pytest.mark.parametrize(
    ("value", "low", "high", "chance", "expected"),
    [
        (0.55, 0.50, 0.60, 0.10, Grade.BROKEN),  # (0.55 - 0.1) / 0.9 = 0.5
        (0.549, 0.50, 0.60, 0.10, Grade.SERIOUS),
        (0.19, 0.15, 0.25, 0.10, Grade.SERIOUS),  # (0.19 - 0.1) / 0.9 = 0.1
        (0.18, 0.11, 0.25, 0.10, Grade.SLIGHT),
        (0.18, 0.10, 0.25, 0.10, Grade.UNCLEAR),  # not surely more than chance, up to 0.17 of the way
        (0.10, 0.08, 0.145, 0.10, Grade.NOTHING_FOUND),  # at most (0.145 - 0.1) / 0.9 = 0.05
        (0.10, 0.08, 0.146, 0.10, Grade.UNCLEAR),
        (0.75, 0.70, 0.80, 0.50, Grade.BROKEN),  # an area: (0.75 - 0.5) / 0.5 = 0.5
        (0.40, 0.35, 0.45, 0.50, Grade.NOTHING_FOUND),
        (1.00, None, None, 0.10, Grade.UNCLEAR),  # one person alone
    ],
)
def test_grades(value: float, low: float | None, high: float | None, chance: float, expected: Grade) -> None:
    assert grade(value, low, high, chance, Thresholds()) is expected


def test_the_way_from_chance_to_certainty() -> None:
    assert over_chance(1.0, 0.2) == 1.0
    assert over_chance(0.2, 0.2) == 0.0
    assert over_chance(0.6, 0.2) == pytest.approx(0.5)
    assert over_chance(1.0, 1.0) == 0.0  # nothing can be found where all are right


def test_thresholds_are_read_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "bars.toml"
    file.write_text("[thresholds]\nserious = 0.02\nbroken = 0.2\n")
    assert read_thresholds(file) == Thresholds(serious=0.02, broken=0.2)
    file.write_text("broken = 0.3\n")
    assert read_thresholds(file).broken == 0.3
    for text, message in (
        ("brokn = 1", "broken"),
        ("broken = 2", "between 0 and 1"),
        ("serious = 0.9", "at most"),
        ("x", "not TOML"),
        ("thresholds = 3", "expected a table"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError, match=message):
            read_thresholds(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_thresholds(tmp_path / "nowhere.toml")


NOT_RUN = Reason(ReasonCode.GATES_NOT_RUN, "its gates could not be run")
IN_NOISE = Reason(ReasonCode.FOUND_IN_NOISE, "on independent noise it scores 9 %")


def test_a_level_is_as_bad_as_its_worst_valid_attack() -> None:
    result = result_of(
        attacked("stock_recogniser", Level.L0, 0.9, 0.8, 0.95, invalid=(IN_NOISE,)),
        attacked("linkage", Level.L0, 0.2, 0.15, 0.25),
        attacked("own_original", Level.L0, 0.06, 0.03, 0.09),
        people=200,
    )
    verdicts = {each.level: each for each in level_verdicts(result, Thresholds())}
    first = verdicts[Level.L0]
    assert first.grade is Grade.SERIOUS  # (0.2 - 0.05) / 0.95 = 0.16
    assert "names the person in a protected one 20.0 % of the time (95 % interval 15.0 % to 25.0 %)" in first.text
    assert "Blind guessing names 5.0 %" in first.text
    assert "1 of 3 attacks gave no verdict (stock_recogniser)" in first.aside
    assert [each.attack for each in first.attacks] == ["linkage", "own_original", "stock_recogniser"]
    assert first.attacks[1].grade is Grade.NOTHING_FOUND  # up to (0.09 - 0.05) / 0.95 = 0.042
    assert first.attacks[-1].grade is Grade.NO_VERDICT
    assert first.worst is not None
    assert first.worst.attack == "linkage"


WEAK = (Reason(ReasonCode.NOT_TRAINED, "its training was stopped early: the loss fell"),)


def tried(evidence: Evidence) -> Evidence:
    """The same, whose gates were run."""
    gates = {"metric": "rank-1", "pictures": 9, "on originals": 0.4, "clean bound": 0.5, "on noise": 0, "chance": 0.1}
    return replace(evidence, details={**evidence.details, "gates": gates})


def test_what_a_weak_attacker_found_is_a_leak_of_at_least_so_much() -> None:
    result = summarise(result_of(
        attacked("own_original", Level.L0, 0.06, 0.03, 0.09),
        tried(attacked("recovery", Level.L1, 0.3, 0.2, 0.4, invalid=WEAK)),
        tried(attacked("retrained", Level.L2, 0.3, 0.2, 0.4, invalid=(*WEAK, IN_NOISE))),
        attacked("feature_decoder", Level.L3, 0.3, 0.2, 0.4, invalid=(NOT_RUN,)),
        people=200,
    ))  # fmt: skip
    _, l1, l2, l3 = level_verdicts(result, Thresholds())
    assert (l1.grade, l2.grade, l3.grade) == (Grade.SERIOUS, Grade.NO_VERDICT, Grade.NO_VERDICT)
    assert "30.0 %" in l1.text
    assert (
        "This attacker was too weak (its training was stopped early: the loss fell): a stronger one finds no less."
        in l1.text
    )
    assert l1.worst is not None
    assert l1.worst.invalid == (WEAK[0].text,)
    assert l1.needs == {"more updates (--learn)": ("recovery",)}
    assert "gave no verdict" not in l1.aside
    told = {finding.title: finding for finding in result.summary}
    shown = told[described("recovery").headline.title]
    assert shown.figure == "≥ 30.0 %"
    assert shown.invalid == ()
    assert "not safe" in shown.text
    assert told[described("retrained").headline.title].invalid
    assert {row.evidence.attack: row.void for row in attack_rows(result)} == {
        "own_original": False, "recovery": False, "retrained": True, "feature_decoder": True,
    }  # fmt: skip
    assert "| ~~30.0 %~~ |" in write_markdown(replace(result, measurements=()))
    assert rests_on(replace(result, verdicts=(l1, l2, l3)))["Attacks"].startswith("3 made, 0 passed their gates")


def test_a_weak_attacker_who_may_have_guessed_gets_no_verdict() -> None:
    result = result_of(tried(attacked("recovery", Level.L1, 0.08, 0.05, 0.4, invalid=WEAK)))
    assert level_verdicts(result, Thresholds())[1].grade is Grade.NO_VERDICT


def test_what_was_not_attacked_or_is_invalid_gets_no_verdict() -> None:
    result = result_of(
        attacked("own_original", Level.L0, 0.9, 0.8, 0.95),
        attacked("recovery", Level.L1, 0.0, 0.0, 0.1, invalid=WEAK),
        Evidence("silhouette", Level.L1, missing=(Reason(ReasonCode.TOO_FEW_PEOPLE, "to attack 3"),)),
        Evidence("stolen_decoder", Level.L3, missing=(LACKING[Need.DECODER],)),
    )
    l0, l1, l2, l3 = level_verdicts(result, Thresholds())
    assert (l0.grade, l1.grade, l2.grade, l3.grade) == (
        Grade.BROKEN, Grade.NO_VERDICT, Grade.NOT_ATTACKED, Grade.NOT_ATTACKED,
    )  # fmt: skip
    assert l1.text.startswith("No verdict at L1: recovery (its training was stopped early")
    assert l3.text == "Not attacked at L3: stolen_decoder (no decoder of this release is at hand)."
    assert "there is no such attack" in l2.text
    assert all("At least “broken”" in each.aside for each in (l1, l2, l3))
    assert all("safe" not in each.text for each in (l0, l1, l2, l3))
    assert needed((l0, l1, l2, l3)) == (
        "more updates (--learn), for recovery; more people who are known (--labels), for silhouette; the method's "
        "decoder, if it has one (--decoder), for stolen_decoder"
    )


def test_few_hits_leave_room_that_the_bootstrap_does_not_see() -> None:
    evidence = attacked("own_original", Level.L0, 0.0125, 0.0, 0.0375, chance=0.0125)
    few = level_verdicts(result_of(evidence, people=20), Thresholds())[0]
    assert few.grade is Grade.UNCLEAR
    assert "up to 16.8 % is possible" in few.text  # 0 of 20: 1 - 0.025 ** (1 / 20)
    many = level_verdicts(result_of(evidence, people=400), Thresholds())[0]
    assert many.grade is Grade.NOTHING_FOUND
    assert "nothing beyond chance; up to 3.8 % is possible" in many.text


def test_people_found_in_recovered_pictures_are_told() -> None:
    evidence = attacked("recovery", Level.L1, 0.5, 0.4, 0.6)
    person = Score("person rank-1", 0.25, Role.PRIVACY, False, 0.2, 0.3)
    details = {"chance": {"rank-1": 0.05, "person rank-1": 0.02}}
    found = replace(evidence, scores=(*evidence.scores, person), details=details)
    verdict = level_verdicts(result_of(found), Thresholds())[1]
    assert verdict.text.endswith("the right person is found 25.0 % of the time (chance 2.0 %).")


def test_one_of_anything_is_told_as_one() -> None:
    rests = rests_on(result_of(people=1, pictures=1, queries=1))
    assert rests["Data"] == "1 picture, 1 person, 1 search"
    found = result_of(attacked("own_original", Level.L0, 0.5, 0.4, 0.6))
    found = replace(found, verdicts=level_verdicts(found, Thresholds()))
    assert rests_on(found)["Attacks"].startswith("1 made, 1 passed its gates, 0 not made")


def test_outlines_do_not_grade_a_level() -> None:
    outline = attacked("silhouette", Level.L1, 0.95, 0.9, 0.99, metric="AUC beyond place", chance=0.5)
    verdict = level_verdicts(result_of(outline), Thresholds())[1]
    assert verdict.grade is Grade.NOT_ATTACKED
    assert verdict.attacks[0].grade is Grade.BROKEN


def test_what_gates_say_leads_to_what_is_needed() -> None:
    """The remedies know the gates' reasons by their words."""
    weak = Score("rank-1", 0.0, Role.PRIVACY, False, 0.0, 0.1)
    reasons = {
        reaches_clean_bound(weak, 0.0, 0.05): "a judge that",
        reaches_clean_bound(weak, 0.9, 0.05): "a judge that",
        loss_levelled([1.0, 0.9]): "more updates",
        loss_levelled(list(np.linspace(1, 0, 100))): "more updates",
        beats_mean_image(10.0, 20.0, "PSNR"): "more updates",
    }
    for reason, start in reasons.items():
        assert reason is not None
        assert for_invalid(attacked("linkage", Level.L0, 0, 0, 1, invalid=(reason,))).startswith(start)
    low = reaches_clean_bound(weak, 0.9, 0.05)
    assert low is not None
    assert for_invalid(attacked("recovery", Level.L1, 0, 0, 1, invalid=(low,))).startswith("more updates")
    retrained = attacked("retrained", Level.L2, 0, 0, 1, invalid=(low,))
    for start, told in (("scratch", "weights to start from (--start)"), ("0123456789ab", "more updates (--learn)")):
        details = {**retrained.details, "started from": start}
        assert for_invalid(replace(retrained, details=details)).endswith(told)


def test_tallies_give_the_paired_difference() -> None:
    first = Tallies("x", (2, 1, 3), (Tally("expert", "protected-protected", (2, 1, 0)),))
    second = replace(first, tallies=(Tally("expert", "protected-protected", (1, 1, 3)),))
    score = tallied_difference(first, second, "expert", "protected-protected")
    assert score is not None
    assert score.value == pytest.approx((3 - 5) / 6)
    assert score.low is not None
    assert score.low <= score.value <= (score.high or 0.0)
    same = tallied_difference(first, first, "expert", "protected-protected")
    assert same is not None
    assert same.value == 0.0
    assert tallied_difference(first, replace(second, order="y"), "expert", "protected-protected") is None
    assert tallied_difference(first, second, "judge", "protected-protected") is None

"""What every attack on unpaired releases must keep, whoever wrote it: one table, one set of tests."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from tests.attacks.unpaired_targets import innocent, leaking, members, target
from veilkit.attacks import UNPAIRED_ATTACKS, UnpairedNeed, UnpairedTrial, run_unpaired
from veilkit.attacks.gated import scores_chance
from veilkit.attacks.synthetic_release.base import UnpairedRelease, UnpairedTarget
from veilkit.errors import UnknownNameError
from veilkit.types import Evidence, Level, Role

ALL = sorted(UNPAIRED_ATTACKS)
TAKEN_AWAY: dict[UnpairedNeed, dict[str, object]] = {
    UnpairedNeed.UNSEEN: {"unseen": None},
    UnpairedNeed.HELD_OUT: {"held_out": None},
    UnpairedNeed.NON_MEMBERS: {"unseen": None, "held_out": None},
    UnpairedNeed.EXPERT: {"recogniser": None},
    UnpairedNeed.SHADOWS: {"shadows": None},
}


@cache
def targets(kind: str) -> tuple[UnpairedTarget, UnpairedTrial]:
    made = target() if kind == "leaking" else target(innocent())
    return made, UnpairedTrial.of(made)


@cache
def run(name: str, kind: str = "leaking") -> Evidence:
    attacked, trial = targets(kind)
    return run_unpaired(UNPAIRED_ATTACKS[name], attacked, trial=trial)


@pytest.mark.parametrize("name", ALL)
def test_it_says_what_it_is(name: str) -> None:
    attack = UNPAIRED_ATTACKS[name]
    assert attack.name == name
    assert attack.summary
    assert attack.level in Level
    assert attack.needs
    assert attack.needs <= set(UnpairedNeed)


@pytest.mark.parametrize("name", ALL)
def test_its_scores_have_role_direction_interval_and_note(name: str) -> None:
    evidence = run(name)
    assert (evidence.attack, evidence.level, evidence.applicable) == (name, UNPAIRED_ATTACKS[name].level, True)
    for score in evidence.scores:
        assert score.role is Role.PRIVACY
        assert score.higher_is_better == score.metric.startswith("distance ratio")
        assert score.low is not None
        assert score.high is not None
        assert score.low <= score.value + 1e-9
        assert score.high >= score.value - 1e-9
    assert "chance" in evidence.scores[0].note
    assert evidence.scores[0].metric in evidence.details["chance"]
    assert len({score.metric for score in evidence.scores}) == len(evidence.scores)


@pytest.mark.parametrize("name", ALL)
def test_it_passes_its_gates(name: str) -> None:
    for kind in ("leaking", "innocent"):
        evidence = run(name, kind)
        assert evidence.invalid == ()
        gates = evidence.details["gates"]
        assert gates["on originals"] > gates["chance"]
        assert gates["clean bound"] is None or gates["on originals"] >= gates["clean bound"] - 1e-6


@pytest.mark.parametrize("name", ALL)
def test_it_finds_what_a_leaking_release_shows_and_nothing_in_an_innocent_one(name: str) -> None:
    leak, nothing = run(name).scores[0], run(name, "innocent").scores[0]
    chance = run(name).details["chance"][leak.metric]
    assert leak.low > chance
    assert scores_chance(nothing, chance, run(name, "innocent").details["people"]) is None


@pytest.mark.parametrize("name", ALL)
def test_the_same_target_gives_the_same_evidence(name: str) -> None:
    assert UNPAIRED_ATTACKS[name]().run(target()).scores == run(name).scores


@pytest.mark.parametrize("name", ALL)
def test_the_target_is_untouched(name: str) -> None:
    run(name)
    attacked, before = targets("leaking")[0], members()
    for held in (attacked.members.pictures, attacked.release.synthetic):
        assert all(torch.equal(held.load(i), before.pictures.load(i)) for i in range(len(before)))


@pytest.mark.parametrize("name", ALL)
def test_without_what_it_needs_it_is_not_applicable(name: str) -> None:
    for need in UNPAIRED_ATTACKS[name].needs:
        if need in TAKEN_AWAY:
            attacked = target(**TAKEN_AWAY[need])
        else:
            full = leaking()
            attacked = target(UnpairedRelease(full.synthetic, full.classes))
        evidence = run_unpaired(UNPAIRED_ATTACKS[name], attacked)
        assert not evidence.applicable
        assert evidence.why_missing
        assert not evidence.scores


def test_an_unknown_attack_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="class_linkage"):
        UNPAIRED_ATTACKS["class_linkages"]

"""What every attack must keep, whoever wrote it: one table, one set of tests."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from tests.attacks.learners import make_of
from tests.attacks.targets import noise, target, target_of
from veilkit.attacks import ATTACKS, UNPAIRED_ATTACKS, AttackTarget, Need, run_gated
from veilkit.cli import app
from veilkit.errors import UnknownNameError
from veilkit.rng import Randomness
from veilkit.types import Level, Role

ALL = sorted(ATTACKS)
ADVERSARIES = [name for name in ALL if not ATTACKS[name].baseline]
TAKEN_AWAY = {
    Need.IMAGES: "protected",
    Need.FEATURES: "features",
    Need.PAIRS: "originals",
    Need.IDENTITIES: "search",
    Need.EXPERT: "recogniser",
    Need.BUDGET: "budget",
    Need.PROTECTOR: "protector",
    Need.AUTHORISED: "authorised",
    Need.MASKS: "masks",
    Need.DECODER: "decoder",
    Need.NEUTRAL: "neutral",
    Need.IDENTITY: "identity",
}


def run(name: str, attacked: AttackTarget | None = None):
    attacked = target_of(name) if attacked is None else attacked
    return run_gated(make_of(name), attacked)


@pytest.mark.parametrize("name", ALL)
def test_it_says_what_it_is(name: str) -> None:
    attack = ATTACKS[name]
    assert attack.name == name
    assert attack.summary
    assert attack.level in Level
    assert attack.needs
    assert attack.needs <= set(Need)


@pytest.mark.parametrize("name", ALL)
def test_its_scores_have_role_direction_interval_and_note(name: str) -> None:
    evidence = run(name)
    assert (evidence.attack, evidence.level, evidence.applicable) == (name, ATTACKS[name].level, True)
    assert evidence.scores
    for score in evidence.scores:
        assert score.role is Role.PRIVACY
        assert not score.higher_is_better
        assert score.low is not None
        assert score.high is not None
        assert score.low <= score.value + 1e-9
        assert score.high >= score.value - 1e-9
    assert "chance" in evidence.scores[0].note or ATTACKS[name].baseline


@pytest.mark.parametrize("name", ALL)
def test_the_same_target_gives_the_same_evidence(name: str) -> None:
    assert run(name) == run(name)


@pytest.mark.parametrize("name", ALL)
def test_the_target_is_untouched(name: str) -> None:
    attacked, same = target_of(name), target_of(name)
    run(name, attacked)
    assert attacked.protected is not None
    assert same.protected is not None
    assert all(torch.equal(attacked.protected.load(i), same.protected.load(i)) for i in range(len(same.protected)))


@pytest.mark.parametrize("name", ALL)
def test_without_what_it_needs_it_is_not_applicable(name: str) -> None:
    for need in ATTACKS[name].needs & TAKEN_AWAY.keys():
        evidence = run(name, target_of(name, **{TAKEN_AWAY[need]: None}))
        assert not evidence.applicable
        assert evidence.why_missing
        assert not evidence.scores


@pytest.mark.parametrize("name", ADVERSARIES)
def test_it_passes_its_gates_where_people_can_be_recognised(name: str) -> None:
    evidence = run(name)
    assert evidence.invalid == ()
    gates = evidence.details["gates"]
    assert gates["on originals"] > gates["chance"]
    assert gates["clean bound"] is None or gates["on originals"] >= gates["clean bound"] - 1e-6 > gates["chance"]


@pytest.mark.parametrize("name", ADVERSARIES)
def test_it_finds_nothing_in_noise_and_something_in_the_originals(name: str) -> None:
    forgets = Randomness.from_seed(6).uniform  # whatever a release is made of
    clean, noisy = run(name), run(name, target(noise(), neutral=lambda images: forgets(*images.shape)))
    if not noisy.applicable:  # there is nothing to undo in noise, and it says so
        assert noisy.why_missing
        assert not noisy.scores
        return
    chance = clean.details["chance"].get(clean.scores[0].metric, 0.0)
    assert clean.scores[0].value - chance > 2 * (noisy.scores[0].value - chance)


def test_an_unknown_attack_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="stock_recogniser"):
        ATTACKS["stock_recognizer"]


def test_the_docs_list_all_attacks() -> None:
    listed = CliRunner().invoke(app, ["attacks", "list", "--markdown"])
    page = Path(__file__).parents[2] / "docs" / "attacks.md"
    assert page.read_text() == listed.stdout, "write it anew: veilkit attacks list --markdown > docs/attacks.md"
    for name in (*ATTACKS, *UNPAIRED_ATTACKS):
        assert f"| `{name}` |" in listed.stdout

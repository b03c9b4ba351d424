"""Gates: what they refuse, and attacks that run through them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from tests.attacks.targets import Blind, noise, originals, target
from veilkit.attacks import Attack, AttackTarget, Masks, Need, run_gated
from veilkit.attacks.gated import reaches_clean_bound, scores_chance, trial_pictures
from veilkit.attacks.learned.learning import loss_levelled
from veilkit.attacks.own_original import OwnOriginal
from veilkit.attacks.person_search import Linkage, StockRecogniser
from veilkit.attacks.pictures import HeldPictures
from veilkit.attacks.recovered import beats_mean_image
from veilkit.types import Evidence, Level, Role, Score


def rate(value: float, low: float | None = None, high: float | None = None) -> Score:
    return Score("rank-1", value, Role.PRIVACY, False, low, high)


def test_reaching_the_clean_bound_passes() -> None:
    assert reaches_clean_bound(rate(0.8, 0.7, 0.9), 0.8, 0.1) is None


def test_less_than_what_is_possible_is_invalid() -> None:
    assert "80.00% is possible" in str(reaches_clean_bound(rate(0.5, 0.4, 0.6), 0.8, 0.1))


def test_a_recogniser_that_recognises_nobody_is_invalid() -> None:
    assert "not surely better than chance" in str(reaches_clean_bound(rate(0.12, 0.08, 0.2), 0.12, 0.1))


def test_chance_on_noise_passes_and_more_is_invalid() -> None:
    assert scores_chance(rate(0.02, 0.0, 0.05), 0.025, 40) is None
    assert "on independent noise" in str(scores_chance(rate(0.5, 0.4, 0.6), 0.025, 40))


def test_no_hit_at_all_on_noise_is_chance_where_people_are_few() -> None:
    assert scores_chance(rate(0.0, 0.0, 0.0), 0.02, 50) is None
    assert scores_chance(rate(0.0, 0.0, 0.0), 0.5, 50) is not None


def test_sound_attacks_seldom_fail_the_noise_gate() -> None:
    """Binomial hits at exactly the chance level: at most a few of a thousand may be called invalid."""
    random = np.random.default_rng(0)
    chance, people = 0.05, 60
    failed = 0
    for _ in range(1000):
        value = random.binomial(people, chance) / people
        spread = 1.96 * np.sqrt(value * (1 - value) / people)
        failed += scores_chance(rate(value, max(0.0, value - spread), value + spread), chance, people) is not None
    assert failed <= 5


def test_a_recovery_must_beat_the_mean_image() -> None:
    assert beats_mean_image(20.0, 16.0, "PSNR") is None
    assert "below the mean image" in str(beats_mean_image(12.0, 16.0, "PSNR"))


def test_a_loss_that_has_levelled_passes() -> None:
    assert loss_levelled(1.0 / np.arange(1, 401) + 0.2) is None


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        (np.linspace(1.0, 0.1, 100), "still falling"),
        (np.linspace(0.1, 1.0, 100), "rose"),
        (np.r_[np.ones(50), np.full(50, np.nan)], "not finite"),
        (np.ones(5), "too short"),
    ],
)
def test_a_loss_that_has_not_is_invalid(losses: np.ndarray, said: str) -> None:
    assert said in str(loss_levelled(losses))


def test_a_blind_recogniser_is_invalid_and_not_good_news() -> None:
    evidence = run_gated(StockRecogniser, target(noise(), recogniser=Blind()))
    assert any("not surely better than chance" in str(reason) for reason in evidence.invalid)


def test_a_release_of_noise_is_a_valid_nothing() -> None:
    for attack in (StockRecogniser, Linkage, OwnOriginal):
        evidence = run_gated(attack, target(noise()))
        assert evidence.invalid == ()
        headline = evidence.scores[0]
        assert headline.low <= evidence.details["chance"]["rank-1"] <= headline.high


class Leaking(Attack):
    """Knows the answers whatever the release: a bug that the noise gate must catch."""

    name, summary, level, needs = "leaking", "", Level.L0, frozenset({Need.PAIRS})

    def run(self, target: AttackTarget) -> Evidence:
        return Evidence(
            self.name,
            self.level,
            (Score("rank-1", 1.0, Role.PRIVACY, False, 0.9, 1.0),),
            details={"chance": {"rank-1": 0.1}},
        )

    def clean_bound(self, target: AttackTarget) -> float | None:
        return 1.0


def test_an_attack_that_finds_people_in_noise_is_invalid() -> None:
    assert any("independent noise" in str(reason) for reason in run_gated(Leaking, target()).invalid)


class Lazy(StockRecogniser):
    """Looks at a constant instead of the release: it cannot reach the clean bound."""

    def run(self, target: AttackTarget) -> Evidence:
        grey = HeldPictures(torch.full((len(originals()), 3, 8, 8), 0.5))
        return super().run(AttackTarget(**{**_fields(target), "protected": grey}))


def _fields(target: AttackTarget) -> dict[str, object]:
    return {field.name: getattr(target, field.name) for field in dataclasses.fields(target)}


def test_an_attack_that_misses_what_is_there_is_invalid() -> None:
    assert any("is possible" in str(reason) for reason in run_gated(Lazy, target()).invalid)


class Learner(Leaking):
    """Notes how many were made: whoever learned from one release must not attack the next."""

    name, needs = "learner", frozenset({Need.PROTECTOR, Need.MASKS, Need.PAIRS})
    runs: list[Learner] = []  # noqa: RUF012

    def run(self, target: AttackTarget) -> Evidence:
        self.runs.append(self)
        return super().run(target)


def test_attackers_learn_afresh_for_each_gate() -> None:
    Learner.runs.clear()
    run_gated(
        Learner, target(protector=lambda images, draw: images, masks=Masks(np.ones((36, 8, 8), dtype=bool), "all"))
    )
    assert len({id(attack) for attack in Learner.runs}) == len(Learner.runs) == 3


def test_without_what_it_needs_an_attack_is_listed_with_the_reason() -> None:
    evidence = run_gated(Learner, target())
    assert not evidence.applicable
    assert "under other keys" in evidence.why_missing
    assert "where the people stand" in evidence.why_missing
    assert run_gated(Linkage, target(search=None)).why_missing.startswith("people cannot")


def test_without_originals_nothing_can_be_called_valid() -> None:
    evidence = run_gated(StockRecogniser, target(originals=None))
    assert evidence.applicable
    assert "originals are not at hand" in evidence.invalid[0].text


def test_the_trial_takes_whole_people(monkeypatch) -> None:
    monkeypatch.setattr("veilkit.attacks.gated.TRIAL_PICTURES", 10)
    chosen = trial_pictures(target())
    people, counts = np.unique(chosen // 3, return_counts=True)
    assert len(people) == 4
    assert (counts == 3).all()

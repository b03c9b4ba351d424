from __future__ import annotations

import dataclasses

import numpy as np
import torch

from tests.attacks.targets import Blind, noise, originals, target
from veilkit.attacks import Attack, AttackTarget, Need, run_gated
from veilkit.attacks.gated import trial_pictures
from veilkit.attacks.own_original import OwnOriginal
from veilkit.attacks.person_search import Linkage, StockRecogniser
from veilkit.attacks.pictures import HeldPictures, Pictures
from veilkit.types import Evidence, Level, Role, Score


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
    """Notes what it was given to learn from."""

    name, needs = "learner", frozenset({Need.ORACLE, Need.PUBLIC, Need.PAIRS})
    seen: list[torch.Tensor] = []  # noqa: RUF012

    def fit(self, oracle, public: Pictures | None):
        assert public is not None
        self.seen.append(oracle(public.load(0)[None]))
        return self


def test_trained_attackers_learn_afresh_for_each_gate() -> None:
    public = originals()
    Learner.seen.clear()
    run_gated(Learner, target(), oracle=lambda images: 1 - images, public=public)
    attack, identity, noisy = Learner.seen
    assert torch.equal(attack, 1 - public.load(0)[None])
    assert torch.equal(identity, public.load(0)[None])
    assert not torch.equal(noisy, identity)


def test_without_what_it_needs_an_attack_is_listed_with_the_reason() -> None:
    evidence = run_gated(Learner, target())
    assert not evidence.applicable
    assert "cannot be run" in evidence.why_missing
    assert "no public pictures" in evidence.why_missing
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

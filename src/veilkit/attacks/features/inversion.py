"""Inversion of features: of an authorised expert's, by somebody who holds it (L3), and of released ones (L1)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.base import Attack, AttackTarget, Need, Oracle
from veilkit.attacks.features.decoding import DecodingConfig, train_decoder
from veilkit.attacks.features.matching import MatchingConfig, match_features
from veilkit.attacks.headline import Cost, undoing_headline
from veilkit.attacks.learned.learning import unfinished
from veilkit.attacks.people_split import Division, divide, pixels, some_people, victims_of
from veilkit.attacks.pictures import Pictures
from veilkit.attacks.recovered import mean_of, own_bound, score_recovered
from veilkit.training.fitting import Fitted
from veilkit.types import Evidence, Level, Reason, ReasonCode

_TIMES = 3.0  # chance, at least, on the originals' own features: how much more these keep, nobody knows beforehand


@dataclass(frozen=True, slots=True, eq=False)
class Inverted:
    """answers: (N, 3, H, W) in [0, 1] to the victims' features. fitted: the training, where there was one."""

    answers: Tensor
    fitted: Fitted | None
    details: dict[str, object]


class FeatureInversion(Attack):
    """What the inversions share: features of the release, under the authorised expert unless told, and the scores.

    A protection that keeps features for its expert gives them to whoever holds that expert. Gates: on the originals'
    own features it must find three times what blind guessing does, as nobody knows how much of a picture features
    keep; on features of noise, chance.
    """

    level = Level.L3
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.EXPERT, Need.AUTHORISED, Need.BUDGET})

    def __init__(self) -> None:
        self._oracle: Oracle | None = None
        self._public: Pictures | None = None

    def fit(self, oracle: Oracle | None, public: Pictures | None) -> Self:
        """Keep the protection and public pictures; learning waits for the target, whose size and budget it takes."""
        self._oracle, self._public = oracle, public
        return self

    @abstractmethod
    def invert(self, target: AttackTarget, division: Division, public: Tensor, mean: Tensor) -> Inverted:
        """Answers to the victims' features. public: originals, uint8 (N, 3, H, W). mean: of them, (3, H, W)."""

    def unsuitable(self, target: AttackTarget) -> tuple[Reason, ...]:
        """Why this attack cannot use what the target holds, or nothing."""
        return ()

    def victims(self, target: AttackTarget, victims: AttackTarget) -> AttackTarget:
        """Those of the victims whom the budget reaches: all of them, unless a subclass says otherwise."""
        return victims

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-1 of the very original, of the person, and similarity on the fixed and on the paper's scale."""
        division = divide(target, self._oracle, self._public)
        if missing := division.missing or self.unsuitable(target):
            return self.not_applicable(*missing)
        public = pixels(division.public.originals, division.size)
        mean = mean_of(public, division.size)
        reached = self.victims(target, division.victims)
        division = Division(division.public, reached, division.source, division.size)
        inverted = self.invert(target, division, public, mean)
        found = score_recovered(reached, inverted.answers, mean)
        details = {**division.details, **found.details, **inverted.details}
        details |= {} if target.authorised is None else {"expert": target.authorised.name}
        invalid = (
            () if inverted.fitted is None else unfinished(inverted.fitted, found.scores[0].value, own_bound(reached))
        )
        return Evidence(self.name, self.level, found.scores, invalid=(*invalid, *found.invalid), details=details)

    def clean_bound(self, target: AttackTarget) -> float | None:
        """Three times chance, or all that the recogniser finds among the originals where that is less."""
        given = self._oracle is not None and self._public is not None
        victims = self.victims(target, victims_of(target, given))
        bound = own_bound(victims)
        assert victims.originals is not None
        return None if bound is None else min(bound, _TIMES / len(victims.originals))


class FeatureDecoding(FeatureInversion):
    """Trains a decoder on (feature, original) of public people and decodes the victims' features.

    Features are the authorised expert's, of protected pictures. Its loss must have levelled off.
    """

    name = "feature_decoder"
    summary = "a decoder from the authorised expert's features to pictures, learned on other people"
    headline = undoing_headline(
        "Pictures decoded from features",
        "who holds the authorised recogniser",
        "decodes its features of protected pictures",
    )
    cost = Cost.TRAINING

    def __init__(self, config: DecodingConfig | None = None) -> None:
        super().__init__()
        self.config = config or DecodingConfig()

    def invert(self, target: AttackTarget, division: Division, public: Tensor, mean: Tensor) -> Inverted:
        """Train on the public pairs, decode the victims' features."""
        assert target.budget is not None
        assert target.authorised is not None
        learned = division.public.protected.features(target.authorised)
        people = division.public.people
        decoder = train_decoder(learned, public, people, target.budget, self.config, work=target.work, name=self.name)
        details: dict[str, object] = {"updates": len(decoder.fitted.losses)}
        return Inverted(decoder.decode(_features(target, division.victims)), decoder.fitted, details)


class FeatureReconstruction(FeatureInversion):
    """Trains a decoder on (released feature, original) of public people and decodes the victims' released features.

    Whoever can have pictures of their own turned into features, with the noise, can do it; the model is not needed.
    """

    name = "feature_reconstruction"
    summary = "a decoder from released features to pictures, learned on other people"
    level = Level.L1
    headline = undoing_headline(
        "Pictures decoded from released features", "whose decoder learned from other people", "recovers the originals"
    )
    cost = Cost.TRAINING
    needs = frozenset({Need.FEATURES, Need.PAIRS, Need.EXPERT, Need.BUDGET})

    def __init__(self, config: DecodingConfig | None = None) -> None:
        super().__init__()
        self.config = config or DecodingConfig()

    def fit(self, oracle: Oracle | None, public: Pictures | None) -> Self:
        """Nothing is learned here: an oracle that gives pictures is of no use against a release of features."""
        return self

    def unsuitable(self, target: AttackTarget) -> tuple[Reason, ...]:
        """Pairs of other people are of use only with the features that were released of them."""
        if target.pairs is None or target.pairs.features is not None:
            return ()
        text = "it is not known what was released of the people to learn from"
        return (Reason(ReasonCode.NO_FEATURES, text),)

    def invert(self, target: AttackTarget, division: Division, public: Tensor, mean: Tensor) -> Inverted:
        """Train on the public people's released features, decode the victims'."""
        assert target.budget is not None
        learned, seen = division.public.features, division.victims.features
        assert learned is not None
        assert seen is not None
        people = division.public.people
        decoder = train_decoder(learned, public, people, target.budget, self.config, work=target.work, name=self.name)
        return Inverted(decoder.decode(seen), decoder.fitted, {"updates": len(decoder.fitted.losses)})


class FeatureMatching(FeatureInversion):
    """Changes the mean image until the authorised expert sees the victim's features in it, and it stays smooth.

    White box: gradients go through the expert. The budget's updates x batch picture-steps bound how many victims are
    attacked.
    """

    name = "feature_matching"
    summary = "changes a picture until the authorised expert sees the protected picture's features in it"
    headline = undoing_headline(
        "Pictures matched to features",
        "who holds the authorised recogniser",
        "changes pictures until it sees the same features in them",
    )
    cost = Cost.RECOGNISER

    def __init__(self, config: MatchingConfig | None = None) -> None:
        super().__init__()
        self.config = config or MatchingConfig()

    def unsuitable(self, target: AttackTarget) -> tuple[Reason, ...]:
        """An expert without a gradient can only be decoded."""
        assert target.authorised is not None
        if target.authorised.differentiable:
            return ()
        text = f"no gradient reaches pictures through the authorised recogniser {target.authorised.name!r}"
        return (Reason(ReasonCode.NO_AUTHORISED, text),)

    def victims(self, target: AttackTarget, victims: AttackTarget) -> AttackTarget:
        """As many whole people as the budget's steps are enough for."""
        assert target.budget is not None
        assert victims.originals is not None
        most = max(2, target.budget.updates * target.budget.batch // self.config.steps)
        people = np.arange(len(victims.originals)) if victims.people is None else victims.people
        return victims.only(some_people(people, most, target.rng.child(self.name)))

    def invert(self, target: AttackTarget, division: Division, public: Tensor, mean: Tensor) -> Inverted:
        """Start every victim from the mean image."""
        assert target.budget is not None
        assert target.authorised is not None
        wanted = _features(target, division.victims)
        answers = match_features(target.authorised.embed, wanted, mean, self.config, batch=target.budget.batch)
        return Inverted(answers, None, {"steps": self.config.steps})


def _features(target: AttackTarget, victims: AttackTarget) -> NDArray[np.float32]:
    assert target.authorised is not None
    assert victims.protected is not None
    return victims.protected.features(target.authorised)

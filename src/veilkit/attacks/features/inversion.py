"""Inversion of features: of an authorised expert's, by somebody who holds it (L3), and of released ones (L1)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

from torch import Tensor

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.features.decoding import DecodingConfig, MatchingConfig, match_features, train_decoder
from veilkit.attacks.headline import Cost, undoing_headline
from veilkit.attacks.learned.learning import unfinished
from veilkit.attacks.people_split import Division, divide, pixels, some_people, victims_of
from veilkit.attacks.pictures import Features, HeldPictures
from veilkit.attacks.quick.choices import BLIND, PAIRED, own_original_scores
from veilkit.attacks.quick.descriptors import layout
from veilkit.attacks.recovered import Recovered, mean_of, own_bound, score_recovered
from veilkit.attacks.target import given
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
    """What the inversions share: features of the release, by default under the authorised expert, and the scores.

    A protection that keeps features for its expert gives them to whoever holds that expert. Gates: on the originals'
    own features it must find three times what blind guessing does, as nobody knows how much of a picture features
    keep; on features of noise, chance.
    """

    level = Level.L3
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.EXPERT, Need.AUTHORISED, Need.BUDGET})

    @abstractmethod
    def invert(self, target: AttackTarget, division: Division, public: Tensor, mean: Tensor) -> Inverted:
        """Answers to the victims' features. public: originals, uint8 (N, 3, H, W). mean: of them, (3, H, W)."""

    def unsuitable(self, target: AttackTarget) -> tuple[Reason, ...]:
        """Why this attack cannot use what the target holds, or nothing."""
        return ()

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-1 of the very original, of the person, and similarity on the fixed and on the paper's scale."""
        division = divide(target)
        if missing := division.missing or self.unsuitable(target):
            return self.not_applicable(*missing)
        public = pixels(division.public.originals, division.size)
        mean = mean_of(public, division.size)
        victims = self.reached(target, division.victims)
        division = replace(division, victims=victims)
        inverted = self.invert(target, division, public, mean)
        found = self.score(victims, inverted.answers, mean)
        details = {**division.details, **found.details, **inverted.details}
        details |= {} if target.authorised is None else {"expert": target.authorised.name}
        invalid = found.invalid
        if inverted.fitted is not None:
            invalid = (*unfinished(inverted.fitted, found.scores[0].value, own_bound(victims)), *invalid)
        return Evidence(self.name, self.level, found.scores, invalid=invalid, details=details)

    def score(self, victims: AttackTarget, answers: Tensor, mean: Tensor) -> Recovered:
        """What is recognised in the answers, and how near they come to the originals."""
        return score_recovered(victims, answers, mean)

    def reached(self, target: AttackTarget, victims: AttackTarget) -> AttackTarget:
        """Those of the victims whom the budget reaches: all of them, unless a subclass says otherwise."""
        return victims

    def clean_bound(self, target: AttackTarget) -> float | None:
        """Three times chance, or all that the recogniser finds among the originals where that is less."""
        victims = self.reached(target, victims_of(target))
        bound = own_bound(victims)
        return None if bound is None else min(bound, _TIMES / len(victims.clusters))


class _Decoding(FeatureInversion):
    """Trains a decoder on public people's features and originals; a subclass says on which features."""

    cost = Cost.TRAINING

    def __init__(self, config: DecodingConfig | None = None) -> None:
        self.config = config or DecodingConfig()

    @abstractmethod
    def features(self, target: AttackTarget, division: Division) -> tuple[Features, Features]:
        """(N, D) of the public people, to learn from, and of the victims."""

    def invert(self, target: AttackTarget, division: Division, public: Tensor, mean: Tensor) -> Inverted:
        """Train on the public people's features, decode the victims'."""
        known, asked = self.features(target, division)
        people, budget = division.public.people, given(target.budget)
        expert = target.authorised
        embed = expert.embed if expert is not None and expert.differentiable else None
        decoder = train_decoder(
            known, public, people, budget, self.config, work=target.work, name=self.name, embed=embed
        )
        return Inverted(decoder.decode(asked), decoder.fitted, {"updates": len(decoder.fitted.losses)})


class FeatureDecoding(_Decoding):
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

    def features(self, target: AttackTarget, division: Division) -> tuple[Features, Features]:
        """Those that the authorised expert sees in protected pictures."""
        sides, expert = (division.public, division.victims), given(target.authorised)
        known, asked = (given(side.protected).features(expert) for side in sides)
        return known, asked


class PublicDecoding(_Decoding):
    """Trains a decoder of full size on (feature, original) of public originals, and gives it the release's features.

    A protection that keeps the expert's features makes f(protected) about f(original): no protected pair is needed.
    The loss adds edges, and that the expert sees the same features in the answer. "paired choice": by where colours
    are, an answer is nearer to its own original than to a stranger's.
    """

    name = "public_decoder"
    summary = "a decoder of full size from the authorised expert's features to pictures, learned on public originals"
    headline = undoing_headline(
        "Pictures decoded, from public originals",
        "who holds the authorised recogniser and has seen no protected picture before",
        "decodes its features",
    )
    cost = Cost.RECOGNISER

    def __init__(self, config: DecodingConfig | None = None) -> None:
        super().__init__(config or DecodingConfig(width=64, edges=0.5, identity=0.05))

    def features(self, target: AttackTarget, division: Division) -> tuple[Features, Features]:
        """Those that the authorised expert sees in public originals, and in the victims' protected pictures."""
        expert = given(target.authorised)
        return division.public.originals.features(expert), given(division.victims.protected).features(expert)

    def score(self, victims: AttackTarget, answers: Tensor, mean: Tensor) -> Recovered:
        """As the others, with paired choices first: many of them tell what few first places do not."""
        found = super().score(victims, answers, mean)
        sides = (layout(each) for each in (HeldPictures(answers), given(victims.originals)))
        (paired, _), chance = own_original_scores(victims, *(side - side.mean(axis=0) for side in sides))
        details = {**found.details, "chance": {**found.details["chance"], PAIRED: chance[PAIRED]}}
        return Recovered((paired, *found.scores), details, () if (paired.low or 0.0) > BLIND else found.invalid)

    def clean_bound(self, target: AttackTarget) -> float | None:
        """Surely more than blind guessing: nobody knows how much of a picture features keep."""
        return None


class FeatureReconstruction(_Decoding):
    """Trains a decoder on (released feature, original) of public people and decodes the victims' released features.

    Whoever can have pictures of their own turned into features, with the noise, can do it; the model is not needed.
    """

    name = "feature_reconstruction"
    summary = "a decoder from released features to pictures, learned on other people"
    level = Level.L1
    headline = undoing_headline(
        "Pictures decoded from released features", "whose decoder learned from other people", "recovers the originals"
    )
    needs = frozenset({Need.FEATURES, Need.PAIRS, Need.EXPERT, Need.BUDGET})

    def unsuitable(self, target: AttackTarget) -> tuple[Reason, ...]:
        """Pairs of other people are of use only with the features that were released of them."""
        if target.pairs is None or target.pairs.features is not None:
            return ()
        text = "it is not known what was released of the people to learn from"
        return (Reason(ReasonCode.NO_FEATURES, text),)

    def features(self, target: AttackTarget, division: Division) -> tuple[Features, Features]:
        """Those that were released."""
        return given(division.public.features), given(division.victims.features)


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
        self.config = config or MatchingConfig()

    def unsuitable(self, target: AttackTarget) -> tuple[Reason, ...]:
        """An expert without a gradient can only be decoded."""
        expert = given(target.authorised)
        if expert.differentiable:
            return ()
        text = f"no gradient reaches pictures through the authorised recogniser {expert.name!r}"
        return (Reason(ReasonCode.NO_AUTHORISED, text),)

    def reached(self, target: AttackTarget, victims: AttackTarget) -> AttackTarget:
        """As many whole people as the budget's steps are enough for."""
        budget = given(target.budget)
        most = max(2, budget.updates * budget.batch // self.config.steps)
        return victims.only(some_people(victims.clusters, most, target.rng.child(self.name)))

    def invert(self, target: AttackTarget, division: Division, public: Tensor, mean: Tensor) -> Inverted:
        """Start every victim from the mean image."""
        expert, batch = given(target.authorised), given(target.budget).batch
        wanted = given(division.victims.protected).features(expert)
        return Inverted(
            match_features(expert.embed, wanted, mean, self.config, batch=batch), None, {"steps": self.config.steps}
        )

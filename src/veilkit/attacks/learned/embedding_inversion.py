"""Inversion of embeddings: from a recogniser's view of a protected face to its view of the original.

By anybody with a recogniser (L1), or by somebody who has stolen the protection's model, identity expert and all (L3).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from veilkit.attacks.base import AttackTarget, Need
from veilkit.attacks.headline import Cost, Headline
from veilkit.attacks.learned.learning import Learning, LearningAttack, digest, learn, unfinished
from veilkit.attacks.people_split import Division, divide
from veilkit.attacks.pictures import Features, HeldPictures, Pictures
from veilkit.attacks.recovered import own_bound, recognised
from veilkit.attacks.target import Budget, Pairs, Protector, given
from veilkit.errors import ConfigError
from veilkit.experts import Embedder
from veilkit.metrics import CrossPairs
from veilkit.rng import Randomness
from veilkit.training.fitting import Fitted, seeded
from veilkit.types import Evidence, Level, Role, Score

DRAWS = 4  # of each public picture, by who can run the stolen protection
RATES = (1e-2, 1e-3)
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class InversionConfig:
    """widths: between input and output, both as long as an embedding. epochs: over the public pictures, at most.

    The paper's: 512-2048-1024-512, Adam at 1e-3, 100 epochs. It names no loss; ours is 1 - cosine.
    """

    widths: tuple[int, ...] = (2048, 1024)
    epochs: int = 100
    learning: Learning = field(default_factory=Learning)

    def __post_init__(self) -> None:
        if not self.widths or min(self.widths) < 1 or self.epochs < 1:
            raise ConfigError(f"widths and epochs must be positive, but got {self.widths} and {self.epochs}")


@dataclass(frozen=True, slots=True, eq=False)
class Inverter:
    """A fitted map, with the means (D,) and spreads of the unit vectors that it learned from and answers with."""

    network: nn.Module
    given: tuple[Tensor, float]
    wanted: tuple[Tensor, float]
    fitted: Fitted

    @torch.no_grad()
    def invert(self, features: Features) -> Features:
        """(N, D) embeddings of protected pictures -> (N, D) guesses of their originals' embeddings."""
        return _answer(self.network, _units(features), self.given, self.wanted).numpy()


def train_inverter(
    protected: Features,
    originals: Features,
    people: NDArray[np.int64],
    budget: Budget,
    config: InversionConfig,
    *,
    work: Path | None = None,
    name: str = "embedding_inversion",
) -> Inverter:
    """Fit the map to embeddings (N, D) of public pictures, before and after protection, of people (N,)."""
    seen, truth = _units(protected), _units(originals)
    given, wanted = _scale(seen), _scale(truth)
    updates = config.epochs * max(1, len(seen) // budget.batch)
    spent = replace(budget, updates=min(budget.updates, updates))
    start = Randomness.from_seed(budget.seed).child(name, "start")
    network = seeded(lambda: _network(seen.shape[1], config.widths), start)

    def loss(at: NDArray[np.int64]) -> Tensor:
        return 1 - F.cosine_similarity(_answer(network, seen[at], given, wanted), truth[at]).mean()

    facts = {"data": digest(protected, originals), "widths": list(config.widths)}
    fitted = learn(network, loss, people, config.learning, spent, name=name, facts=facts, work=work)
    return Inverter(network, given, wanted, fitted)


class EmbeddingInversion(LearningAttack):
    """Learns on other people where a recogniser sees the original of a face that it sees protected.

    No picture is recovered, and none is needed: who can guess the embedding can search with it. "rank-1": the very
    original is found by the guess. "person rank-1": the person, by other originals. "TPR at FPR": pairs of a guess
    and another original of the person that are accepted, with a threshold set on guesses and originals of
    different people (Disguise, Figure 5e).

    Gates: where nothing is protected it must find half of what the recogniser does; its loss must have levelled off.
    """

    name = "embedding_inversion"
    summary = "a network from embeddings of protected faces to those of their originals, learned on other people"
    level = Level.L1
    headline = Headline(
        "Embeddings inverted",
        "An attacker whose network learned on other people how protection moves embeddings guesses the original's; "
        "by {value} of the guesses{interval} {judge} finds the very original",
        undoes=True,
    )
    cost = Cost.TRAINING
    clean_share = 0.5  # a map that was learned on others blurs what it maps
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.EXPERT, Need.BUDGET})

    def __init__(self, config: InversionConfig | None = None) -> None:
        self.config = config or InversionConfig()

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-1 of the very original and of the person, and TPR, by what the network makes of embeddings."""
        division = divide(target)
        if division.missing:
            return self.not_applicable(*division.missing)
        victims, recogniser = division.victims, given(target.recogniser)
        released, learned = victims.protected_features(), self.inverter(target, division)
        guesses = learned.invert(released)
        scores, chance, before = recognised(victims, guesses, released)
        rates = _rates(victims, guesses)
        chance |= {score.metric: rate for score, rate in zip(rates, RATES, strict=False)}
        details = {
            **division.details,
            "chance": chance,
            "as released": before,
            "recogniser": recogniser.name,
            "updates": len(learned.fitted.losses),
        }
        invalid = unfinished(learned.fitted, scores[0].value, own_bound(victims))
        return Evidence(self.name, self.level, (*scores, *rates), invalid=invalid, details=details)

    def inverter(self, target: AttackTarget, division: Division) -> Inverter:
        """The map that the public people's pictures teach."""
        known, wanted, people = self.lessons(target, division.public, given(target.recogniser))
        budget = given(target.budget)
        return train_inverter(known, wanted, people, budget, self.config, work=target.work, name=self.name)

    def lessons(
        self, target: AttackTarget, public: Pairs, recogniser: Embedder
    ) -> tuple[Features, Features, NDArray[np.int64]]:
        """Embeddings (N, D) of public pictures after and before protection, and their people (N,)."""
        return public.protected.features(recogniser), public.originals.features(recogniser), public.people


class IdentityInversion(EmbeddingInversion):
    """As embedding inversion, by somebody who holds the protection's weights.

    Two things come with them: the expert that read the identity which was replaced, to which the swapper was trained
    to show the new one; and a way to make more lessons. The public pictures can be protected anew under keys of the
    attacker's own, so that the network sees several synthetic identities of each, `DRAWS` more than were released.

    Guesses are searched for among the originals in that expert's features. Gates: as of embedding inversion.
    """

    name = "identity_inversion"
    summary = "embedding inversion with the protection's stolen model: its own identity expert, and more lessons"
    level = Level.L3
    headline = Headline(
        "Identities inverted with the stolen model",
        "An attacker who has stolen the protection's model, and learned with its own identity expert how it moves "
        "identities, guesses the original's; by {value} of the guesses{interval} that expert finds the very original",
        undoes=True,
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.BUDGET, Need.PROTECTOR, Need.IDENTITY})

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-1 of the very original and of the person, and TPR, as the protection's own expert sees them."""
        return super().run(replace(target, recogniser=target.identity))

    def lessons(
        self, target: AttackTarget, public: Pairs, recogniser: Embedder
    ) -> tuple[Features, Features, NDArray[np.int64]]:
        """Those of embedding inversion, and as many more under each further key."""
        more = protected_by_draw(public.originals, given(target.protector), recogniser)
        seen, truth, people = super().lessons(target, public, recogniser)
        return np.concatenate([seen, *more]), np.tile(truth, (DRAWS + 1, 1)), np.tile(people, DRAWS + 1)

    def clean_bound(self, target: AttackTarget) -> float | None:
        """Half of the originals that the protection's own expert finds among the originals."""
        return super().clean_bound(replace(target, recogniser=target.identity))


def _rates(victims: AttackTarget, answers: Features) -> tuple[Score, ...]:
    """TPR over all pairs of a guess and another original; nothing where nobody is known by two pictures."""
    if victims.people is None or len(np.unique(victims.people)) in (1, len(victims.people)):
        return ()
    raw = _units(victims.original_features()).numpy()
    pairs = CrossPairs.of(_units(answers).numpy() @ raw.T, victims.people)
    found = pairs.tpr(RATES, generator=victims.rng.child("bootstrap").numpy())
    scores = []
    for place, rate in enumerate(RATES):
        interval = found.interval(place)
        low, high = min(interval.low, interval.value), max(interval.high, interval.value)
        note = f"chance {rate:.2%}; {found.genuine} pairs of one person, {found.impostors} of two"
        scores.append(Score(f"TPR at FPR {rate:g}", interval.value, Role.PRIVACY, False, low, high, note))
    return tuple(scores)


def _network(dim: int, widths: tuple[int, ...]) -> nn.Module:
    layers: list[nn.Module] = []
    for into, out in zip((dim, *widths), (*widths, dim), strict=True):
        layers += [nn.Linear(into, out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _answer(network: nn.Module, seen: Tensor, given: tuple[Tensor, float], wanted: tuple[Tensor, float]) -> Tensor:
    """Unit vectors (N, D) to guesses (N, D); means and spreads are taken off and put on outside of the network."""
    made: Tensor = network((seen - given[0]) / given[1])
    return wanted[0] + wanted[1] * made


def _scale(vectors: Tensor) -> tuple[Tensor, float]:
    return vectors.mean(0), float(vectors.std(0, unbiased=False).mean()) + _TINY


def _units(features: Features) -> Tensor:
    return F.normalize(torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32)))


def protected_by_draw(pictures: Pictures, protector: Protector, expert: Embedder) -> Features:
    """(DRAWS, N, D) what an expert sees in pictures protected under other keys, 8-bit as in a release."""
    features = np.empty((DRAWS, len(pictures), expert.dim), dtype=np.float32)
    for part, images in pictures.batches():
        for draw in range(DRAWS):  # all draws of a batch: a protector may make several at once
            made: Tensor = (protector(images, draw).clamp(0, 1) * 255).round() / 255
            features[draw, part] = HeldPictures(made).features(expert)
    return features

"""Inversion of embeddings: from a recogniser's view of a protected face to its view of the original."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from veilkit.attacks.adversary import Budget
from veilkit.attacks.base import Attack, AttackTarget, Need, Oracle
from veilkit.attacks.headline import Cost, Headline
from veilkit.attacks.learned.learning import Learning, digest, learn, unfinished
from veilkit.attacks.people_split import Division, divide, victims_of
from veilkit.attacks.pictures import Pictures
from veilkit.attacks.recovered import own_bound
from veilkit.attacks.undone import recognised
from veilkit.errors import ConfigError
from veilkit.metrics import CrossPairs
from veilkit.rng import Randomness
from veilkit.training.fitting import Fitted, seeded
from veilkit.types import Evidence, Level, Role, Score

Features = NDArray[np.float32]
RATES = (1e-2, 1e-3)
_CLEAN = 0.5  # of what the recogniser finds among the originals: a map that was learned on others blurs it
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


class EmbeddingInversion(Attack):
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
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.EXPERT, Need.BUDGET})

    def __init__(self, config: InversionConfig | None = None) -> None:
        self.config = config or InversionConfig()
        self._oracle: Oracle | None = None
        self._public: Pictures | None = None

    def fit(self, oracle: Oracle | None, public: Pictures | None) -> Self:
        """Keep the protection and public pictures; learning waits for the target."""
        self._oracle, self._public = oracle, public
        return self

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-1 of the very original and of the person, and TPR, by what the network makes of embeddings."""
        division = divide(target, self._oracle, self._public)
        if division.missing:
            return self.not_applicable(*division.missing)
        victims = division.victims
        answers, fitted = self.answers(target, division)
        assert victims.protected is not None
        assert victims.recogniser is not None
        released = victims.protected.features(victims.recogniser)
        scores, chance, before = recognised(victims, answers, released)
        rates = _rates(victims, answers)
        chance |= {score.metric: rate for score, rate in zip(rates, RATES, strict=False)}
        details = {
            **division.details,
            "chance": chance,
            "as released": before,
            "recogniser": victims.recogniser.name,
            "updates": len(fitted.losses),
        }
        invalid = unfinished(fitted, scores[0].value, own_bound(victims))
        return Evidence(self.name, self.level, (*scores, *rates), invalid=invalid, details=details)

    def answers(self, target: AttackTarget, division: Division) -> tuple[Features, Fitted]:
        """Guesses (N, D) of the victims' embeddings, and the training."""
        assert target.budget is not None
        assert target.recogniser is not None
        assert division.victims.protected is not None
        public = division.public
        learned = train_inverter(
            public.protected.features(target.recogniser), public.originals.features(target.recogniser),
            public.people, target.budget, self.config, work=target.work, name=self.name,
        )  # fmt: skip
        return learned.invert(division.victims.protected.features(target.recogniser)), learned.fitted

    def clean_bound(self, target: AttackTarget) -> float | None:
        """Half of the originals that the recogniser finds among the originals."""
        bound = own_bound(victims_of(target, self._oracle is not None and self._public is not None))
        return None if bound is None else _CLEAN * bound


def _rates(victims: AttackTarget, answers: Features) -> tuple[Score, ...]:
    """TPR over all pairs of a guess and another original; nothing where nobody is known by two pictures."""
    if victims.people is None or len(np.unique(victims.people)) in (1, len(victims.people)):
        return ()
    assert victims.originals is not None
    assert victims.recogniser is not None
    raw = _units(victims.originals.features(victims.recogniser)).numpy()
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

"""Shadow models: the same recipe on random halves of a public population, to learn what membership looks like.

LiRA (Carlini et al. 2022) compares a candidate's statistic with Gaussians of the same statistic under models trained
with it and without it. Its online form trains shadows on the candidates themselves; here people who train shadows are
never tested, so a candidate's "without" is measured on itself, and how much "with" differs from it on public people.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.pictures import Pictures
from veilkit.attacks.synthetic_release.base import UnpairedRelease
from veilkit.errors import ConfigError, DataError
from veilkit.rng import Randomness

Mask = NDArray[np.bool_]
Values = NDArray[np.float64]
Recipe: TypeAlias = Callable[[NDArray[np.int64]], UnpairedRelease]
"""The protection, as the adversary runs it on the public pictures at these positions."""

FEWEST = 8
_TINY = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class ShadowPlan:
    """Who and what trains each of S shadows, among N public pictures.

    known: (S, N) whether the picture's person is in the shadow's training set; each person is in half of the shadows.
    trained: (S, N) whether the picture itself is.
    """

    known: Mask
    trained: Mask

    @property
    def unseen(self) -> Mask:
        """(S, N) pictures of a shadow's training people that it was not trained on."""
        return self.known & ~self.trained


def plan_shadows(people: NDArray[np.int64], count: int, share: float, rng: Randomness) -> ShadowPlan:
    """Random halves of the people, in complementary pairs; of each person a random `share` of the pictures.

    people: (N,) codes. At least one picture of each chosen person is trained on.
    """
    if count < FEWEST or count % 2:
        raise ConfigError(f"expected an even number of at least {FEWEST} shadows, but got {count}")
    if not 0.0 < share <= 1.0:
        raise ConfigError(f"the share of a person's pictures that train a shadow must be in (0, 1], but got {share}")
    names, person = np.unique(people, return_inverse=True)
    if len(names) < 4:
        raise DataError(f"shadows need a public population of at least 4 people, but got {len(names)}")
    known = np.zeros((count, len(people)), dtype=np.bool_)
    trained = np.zeros_like(known)
    for shadow in range(count):
        order = rng.child("people", shadow // 2).permutation(len(names))
        half = len(names) // 2
        known[shadow] = np.isin(person, order[:half] if shadow % 2 == 0 else order[half:])
        place = rng.child("pictures", shadow).permutation(len(people))
        for code in np.unique(person[known[shadow]]):
            own = np.flatnonzero(person == code)
            kept = max(1, round(share * len(own)))
            trained[shadow, own[np.argsort(place[own])[:kept]]] = True
    return ShadowPlan(known, trained)


class Shadows:
    """Shadows of one recipe on a public population; they are trained once, when first asked for.

    people: (N,) codes of the public pictures, in the numbering of the target. share: of each person's pictures that
    are trained on; the target's own, 1 where all pictures of its people were.
    """

    def __init__(
        self,
        public: Pictures,
        people: NDArray[np.int64],
        train: Recipe,
        *,
        rng: Randomness,
        count: int = FEWEST,
        share: float = 0.5,
    ) -> None:
        if people.shape != (len(public),):
            raise DataError(f"expected one person's code for each of {len(public)} pictures, but got {people.shape}")
        self.public, self.people, self.share = public, people, share
        self.plan = plan_shadows(people, count, share, rng.child("shadows"))
        self._train = train

    def __len__(self) -> int:
        return len(self.plan.known)

    @cached_property
    def releases(self) -> tuple[UnpairedRelease, ...]:
        """What the recipe makes of each shadow's training pictures."""
        return tuple(self._train(np.flatnonzero(trained)) for trained in self.plan.trained)


Gaussian: TypeAlias = tuple[float, float]
"""Mean and standard deviation."""


@dataclass(frozen=True, slots=True)
class Shift:
    """What membership does to a statistic under shadows.

    A statistic is taken as its distance from the same picture's mean under models that do not know the person, in
    units of how such distances spread: `unknown` gives their mean and spread. inside, outside: of members and of
    non-members, in these units.
    """

    unknown: Gaussian
    inside: Gaussian
    outside: Gaussian


def measure_shift(values: Values, unknown: Mask, inside: Mask, outside: Mask) -> Shift:
    """The shift over all shadows and public pictures; all arrays are (S, N).

    values: the statistic. unknown: where the picture's person is not in the shadow (such an entry is left out of its
    own mean). inside, outside: where the picture plays a member, a non-member.
    """
    others = unknown.sum(axis=0) - unknown
    if (others < 1).any() or not inside.any() or not outside.any():
        raise DataError("each public picture must be in some shadows and out of at least two; take more shadows")
    away = values - ((values * unknown).sum(axis=0) - values * unknown) / others
    base = _gaussian(away[unknown])
    units = standardised(away, base)
    return Shift(base, _gaussian(units[inside]), _gaussian(units[outside]))


def _gaussian(values: Values) -> Gaussian:
    return float(values.mean()), float(values.std())


def standardised(values: Values, gaussian: Gaussian) -> Values:
    """Values in deviations from the mean; where there is no spread, almost so."""
    mean, spread = gaussian
    units: Values = (values - mean) / max(spread, _TINY)
    return units


def log_likelihood_ratio(values: Values, inside: Gaussian, outside: Gaussian) -> Values:
    """log N(value; inside) - log N(value; outside), kept at its extreme where it would turn back.

    With two variances the ratio is a parabola. Its branch through both means is taken: a value still farther out than
    the members' is no evidence against membership.
    """
    (mean_in, std_in), (mean_out, std_out) = inside, outside
    # Spreads of no more than rounding, or of a few lucky values, would make one picture decide everything.
    floor = max(_TINY, 1e-3 * max(std_in, std_out, abs(mean_in - mean_out)))
    var_in, var_out = max(std_in, floor) ** 2, max(std_out, floor) ** 2
    if var_in != var_out and mean_in != mean_out:
        turn = (mean_out * var_in - mean_in * var_out) / (var_in - var_out)
        values = np.minimum(values, turn) if turn > max(mean_in, mean_out) else np.maximum(values, turn)
    ratio: Values = (
        (values - mean_out) ** 2 / (2 * var_out)
        - (values - mean_in) ** 2 / (2 * var_in)
        - np.log(var_in / var_out) / 2
    )
    return ratio


def offline_score(values: Values, shadows: Values) -> Values:
    """How many deviations values (N,) lie above those of shadows (S, N), none of which knows the candidate.

    With few shadows a candidate's own variance is rough: it is averaged with that of all candidates.
    """
    own = shadows.var(axis=0, ddof=1)
    score: Values = (values - shadows.mean(axis=0)) / np.sqrt((own + own.mean()) / 2 + _TINY**2)
    return score

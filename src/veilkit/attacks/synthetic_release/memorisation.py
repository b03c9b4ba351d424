"""Memorisation: are synthetic pictures nearer to training pictures than to equally many pictures never trained on?

Where nothing is memorised a synthetic picture's nearest neighbour is of either set alike, so half of them lie nearer
to the training set. Against *held-out people* a set that shows its people at all is found; against *other pictures of
the same people* only one that copies pictures.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.attacks.headline import Headline
from veilkit.attacks.intervals import CONFIDENCE, DRAWS
from veilkit.attacks.pictures import Pictures, SomePictures, resized
from veilkit.attacks.synthetic_release.base import LabelledPictures, UnpairedAttack, UnpairedNeed, UnpairedTarget
from veilkit.attacks.synthetic_release.nearest import RememberedPictures, Vectors, feature_vectors, pixel_vectors
from veilkit.attacks.synthetic_release.neighbours import (
    Matched,
    Neighbours,
    distance_ratio,
    matched_people,
    matched_pictures,
    nearest_people,
)
from veilkit.attacks.target import given
from veilkit.experts import Embedder
from veilkit.metrics import bootstrap_means, clopper_pearson, ssim
from veilkit.rng import Randomness
from veilkit.types import Evidence, Level, Reason, ReasonCode, Role, Score

Indices = NDArray[np.int64]
SSIM_SIZE = (32, 32)
SSIM_PEOPLE = 2  # nearest by pixels, of each set, among whose pictures SSIM chooses
_PEOPLE = 10  # nearest people kept of each set
_MOST = 1000  # synthetic pictures that are compared: evenly chosen
_SHARE = "nearer"
_ENDS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)


class Memorisation(UnpairedAttack):
    """Compares each synthetic picture's nearest training picture with its nearest control, in three views.

    Views: small pixels, SSIM at 32 x 32 among the nearest by pixels, and the recogniser's features. Only classes are
    compared whose person is among the training people drawn to match the controls.
    """

    name = "memorisation"
    summary = "compares how near synthetic pictures come to training pictures and to pictures never trained on"
    level = Level.L0
    headline = Headline(
        "Training pictures memorised",
        "{value} of the synthetic pictures{interval} come nearer, pixel by pixel, to a training picture than to any "
        "of equally many pictures of people who were not trained on",
        "gives",
        metric=f"{_SHARE} to training (pixels)",
    )
    needs = frozenset({UnpairedNeed.HELD_OUT})

    @classmethod
    def in_tables(cls, metric: str) -> bool:
        """All shares, which have a chance level; not the ratios of distances."""
        return metric.startswith(_SHARE)

    def run(self, target: UnpairedTarget) -> Evidence:
        """Shares of synthetic pictures nearer to training pictures, and ratios of mean distances, by view."""
        held_out, sets = given(target.held_out), _matched(target)
        compared = _compared(target, sets)
        classes = target.release.classes[compared]
        if len(np.unique(classes)) < 2:
            text = "memorisation needs synthetic pictures and controls of at least two people"
            return self.not_applicable(Reason(ReasonCode.TOO_FEW_PEOPLE, text))
        synthetic = RememberedPictures(SomePictures(target.release.synthetic, compared))
        views = _views(synthetic, target.members, held_out, sets, target.recogniser)
        scores = [score for name, found in views.items() for score in _scores(name, found, classes, target.rng)]
        if target.unseen is not None:
            rng = target.rng.child("memorisation", "unseen")
            own = matched_pictures(target.members.people, target.unseen.people, rng)
            if len(own.pair):
                strict = _views(synthetic, target.members, target.unseen, own, target.recogniser)
                for name, found in strict.items():
                    scores.append(
                        _share(f"{_SHARE} than other pictures of them ({name})", found, classes, target.rng)
                    )
        details = {
            "chance": {score.metric: 0.5 for score in scores if score.metric.startswith(_SHARE)},
            "people": len(np.unique(classes)),
            "synthetic": len(compared),
            "pictures of each set": len(sets.pair),
            "nearest people, effectively": {name: found.outcomes for name, found in views.items()},
        }
        return Evidence(self.name, self.level, tuple(scores), details=details)

    def clean_bound(self, target: UnpairedTarget) -> float | None:
        """The share of the released training pictures that are compared with: each is its own neighbour."""
        sets = _matched(target)
        return min(1.0, len(sets.first) / max(1, len(_compared(target, sets))))


def _matched(target: UnpairedTarget) -> Matched:
    rng = target.rng.child("memorisation", "matched")
    return matched_people(target.members.people, given(target.held_out).people, rng)


def _compared(target: UnpairedTarget, sets: Matched) -> Indices:
    own = np.flatnonzero(np.isin(target.release.classes, target.members.people[sets.first]))
    return own[np.unique(np.linspace(0, len(own) - 1, _MOST).astype(np.int64))] if len(own) else own


def _views(
    synthetic: Pictures,
    members: LabelledPictures,
    others: LabelledPictures,
    sets: Matched,
    recogniser: Embedder | None,
) -> dict[str, Neighbours]:
    sides = SomePictures(members.pictures, sets.first), SomePictures(others.pictures, sets.second)
    small = pixel_vectors(synthetic)
    by_pixels = [nearest_people(small, pixel_vectors(side), sets.pair, _PEOPLE) for side in sides]
    found = {"pixels": _neighbours(by_pixels)}
    alike = [
        _by_ssim(synthetic, side, people[:, :SSIM_PEOPLE], places[:, :SSIM_PEOPLE])
        for side, (_, people, places) in zip(sides, by_pixels, strict=True)
    ]
    found["SSIM"] = _neighbours(alike)
    if recogniser is not None:
        features = feature_vectors(synthetic, recogniser)
        by = [nearest_people(features, feature_vectors(side, recogniser), sets.pair, _PEOPLE) for side in sides]
        found["recogniser"] = _neighbours(by)
    return found


def _neighbours(found: list[tuple[Vectors, Indices, Indices]]) -> Neighbours:
    return Neighbours(np.stack([near for near, _, _ in found]), np.stack([people for _, people, _ in found]))


def _by_ssim(
    synthetic: Pictures, pictures: Pictures, people: Indices, places: Indices
) -> tuple[Vectors, Indices, Indices]:
    """1 - SSIM (S, K) to the pictures at `places` (S, K), the most similar first, with their people and places."""
    queries, entries = _shrunk(synthetic), _shrunk(SomePictures(pictures, used := np.unique(places)))
    rows = torch.from_numpy(np.searchsorted(used, places))
    values = torch.stack([ssim(queries, entries[column]) for column in rows.T], dim=1)
    far = (1.0 - values.clamp(max=1.0)).numpy()
    order = np.argsort(far, axis=1, kind="stable")
    far, people, places = (np.take_along_axis(part, order, axis=1) for part in (far, people, places))
    return far, people, places


def _shrunk(pictures: Pictures) -> torch.Tensor:
    images = torch.empty(len(pictures), 3, *SSIM_SIZE)
    for part, batch in pictures.batches():
        images[part] = resized(batch, SSIM_SIZE)
    return images


def _scores(view: str, found: Neighbours, classes: Indices, rng: Randomness) -> tuple[Score, Score]:
    """The share of pictures nearer to the training set, and mean distance to it / mean distance to the controls.

    The ratio's interval draws classes again; which people were trained on it takes as given. What they may do by
    chance is said beside it.
    """
    drawn = bootstrap_means(
        found.near[:, :, 0].astype(np.float64), classes, generator=rng.child("bootstrap").numpy(), draws=DRAWS
    )
    low, high = (float(end) for end in np.quantile([distance_ratio(*pair) for pair in drawn.T], _ENDS))
    note = "1 where nothing is memorised"
    if found.near.shape[2] > SSIM_PEOPLE:
        _, ratios = found.swapped(rng.child("memorisation", "swapped"))
        by_chance = np.quantile(ratios, _ENDS)
        note += f", {by_chance[0]:.3f} to {by_chance[1]:.3f} if chance decides who was trained on"
    low, high = min(low, found.ratio), max(high, found.ratio)
    ratio = Score(f"distance ratio ({view})", found.ratio, Role.PRIVACY, True, low, high, note)
    return _share(f"{_SHARE} to training ({view})", found, classes, rng), ratio


def _share(metric: str, found: Neighbours, classes: Indices, rng: Randomness) -> Score:
    """The share with the wider of two intervals: classes drawn again, and exact for so many independent outcomes."""
    nearer = found.nearer
    value = float(nearer.mean())
    means = bootstrap_means(nearer[None], classes, generator=rng.child("bootstrap").numpy(), draws=DRAWS)[0]
    low, high = (float(end) for end in np.quantile(means, _ENDS))
    count = min(found.outcomes, len(np.unique(classes)))
    exact = clopper_pearson(round(value * count), count, confidence=CONFIDENCE)
    low, high = min(low, exact.low, value), max(high, exact.high, value)
    return Score(metric, value, Role.PRIVACY, False, low, high, "chance 50.00%")

"""What releases keep that an audit does not tell: features and students searched with, faces found again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from studies.shared.originals import Originals
from veilkit.attacks import ATTACKS, AttackTarget, Budget, run_gated
from veilkit.attacks.intervals import mean_score, retrieval_scores
from veilkit.attacks.pictures import Pictures
from veilkit.experts import Embedder, load_predictor
from veilkit.rng import Randomness
from veilkit.types import Evidence, Role, Score

_LANDMARKS = "dlib-landmarks-5"
_LEFT, _RIGHT = 2, 0  # outer corners of the eyes
_FEATURE_ATTACKS = ("feature_reconstruction", "identification")
_METRICS = ("rank-1", "mAP")


def searched(originals: Originals, embedder: Embedder, rng: Randomness) -> dict[str, Any]:
    """Rank-1 and mAP of the test people's originals by a recogniser, as [value, low, high]; Rank-1 by chance."""
    features = originals.tested.features(embedder)
    scores = retrieval_scores(
        originals.search.find(features, features), originals.search.identities[originals.search.query],
        role=Role.UTILITY, higher_is_better=True, rng=rng, chance=originals.search.chance(),
    )  # fmt: skip
    found = {each.metric: _interval(each) for each in scores if each.metric in _METRICS}
    return {"by": embedder.name, **found, "chance": originals.search.chance()["rank-1"]}


def features_attacked(
    originals: Originals,
    released: Embedder,
    clean: Embedder,
    judge: Embedder,
    budget: Budget,
    work: Path,
    rng: Randomness,
) -> tuple[Evidence, ...]:
    """Attacks on a release of features instead of pictures. clean: whose features the gates take for unprotected."""
    target = AttackTarget(
        rng=rng, features=originals.tested.features(released), clean_features=originals.tested.features(clean),
        originals=originals.tested, people=originals.people, search=originals.search, recogniser=judge, budget=budget,
        work=work,
    )  # fmt: skip
    return tuple(run_gated(ATTACKS[name], target) for name in _FEATURE_ATTACKS)


def faces_kept(
    originals: Pictures, protected: Pictures, people: NDArray[np.int64], rng: Randomness
) -> dict[str, Any]:
    """In how many faces that dlib finds in originals it finds one again, and how far its five points have moved.

    moved: mean distance of a point from its place in the original, as a share of the distance of the eyes' outer
    corners, over faces that were found in both.
    """
    before, after = (_landmarks(each) for each in (originals, protected))
    there = _whole(before)
    again = there & _whole(after)
    if not there.any():
        return {"by": _LANDMARKS, "found": None, "moved": None}
    share = mean_score("found", again[there].astype(np.float64), people[there], role=Role.UTILITY,
                       higher_is_better=True, rng=rng, rate=True)  # fmt: skip
    apart = np.linalg.norm(before[:, _LEFT] - before[:, _RIGHT], axis=-1)
    error = np.linalg.norm(after - before, axis=-1).mean(-1) / apart
    moved = None
    if again.any():
        moved = _interval(
            mean_score("moved", error[again], people[again], role=Role.UTILITY, higher_is_better=False, rng=rng)
        )
    return {"by": _LANDMARKS, "found": _interval(share), "moved": moved}


def _whole(points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(N,) whether all points of a face are known."""
    return np.asarray(np.isfinite(points).all(axis=(1, 2)), dtype=np.bool_)


def _landmarks(pictures: Pictures) -> NDArray[np.float64]:
    """(N, 5, 2), NaN where no face was found."""
    predictor = load_predictor(_LANDMARKS)
    found = [predictor.predict(pictures.load(place)[None])[0] for place in range(len(pictures))]
    return torch.stack(found).double().numpy()


def _interval(score: Score) -> list[float | None]:
    return [score.value, score.low, score.high]

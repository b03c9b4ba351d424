"""What attacks that undo a protection share: pictures of one size, and recognition of what was undone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.base import AttackTarget
from veilkit.attacks.intervals import retrieval_scores
from veilkit.metrics import RetrievalResult, retrieval
from veilkit.types import Role, Score

Features = NDArray[np.float32]


def one_size(target: AttackTarget, most: int | None = None) -> tuple[AttackTarget, int]:
    """The part of a target whose protected pictures have the most frequent size, and how many others there are.

    Pictures that were mixed have one size. most: at most so many, evenly chosen.
    """
    assert target.protected is not None
    _, kind, counts = np.unique(target.protected.sizes, axis=0, return_inverse=True, return_counts=True)
    chosen = np.flatnonzero(kind.ravel() == int(np.argmax(counts)))
    others = len(target.protected) - len(chosen)
    if most is not None and len(chosen) > most:
        chosen = chosen[np.unique(np.linspace(0, len(chosen) - 1, most).astype(np.int64))]
    return target.only(chosen), others


def recognised(
    target: AttackTarget, undone: Features, released: Features | None
) -> tuple[list[Score], dict[str, float], dict[str, float]]:
    """Rank-1 of undone pictures (N, D), by the target's recogniser, among N originals: scores, chance, as released.

    Row i is the picture made of original i. "rank-1": its own original comes first. "person rank-1": a picture of
    the same person does, the own original left out; only where people can be searched for. released: features of the
    release's pictures; None where it has none.
    """
    assert target.originals is not None
    assert target.recogniser is not None
    raw = target.originals.features(target.recogniser)
    count = len(raw)
    each = np.arange(count)
    people = each if target.people is None else target.people
    found = _own(undone, raw)
    chance = {"rank-1": 1.0 / count}
    before = {} if released is None else {"rank-1": _own(released, raw).rank(1)}
    scores = [_rank_one("rank-1", found, people, target, chance["rank-1"], before.get("rank-1"))]
    if target.search is not None and bool((target.search.candidates()[0] > 0).any()):
        metric, search = "person rank-1", target.search
        chance[metric] = search.chance((1,))["rank-1"]
        if released is not None:
            before[metric] = search.find(released, raw).rank(1)
        asked = search.identities[search.query]
        scores.append(_rank_one(metric, search.find(undone, raw), asked, target, chance[metric], before.get(metric)))
    return scores, chance, before


def _own(features: Features, raw: Features) -> RetrievalResult:
    each = np.arange(len(raw))
    return retrieval(features, raw, each, each)


def _rank_one(
    metric: str,
    found: RetrievalResult,
    people: NDArray[np.int64],
    target: AttackTarget,
    chance: float,
    before: float | None,
) -> Score:
    first = retrieval_scores(
        found,
        people,
        role=Role.PRIVACY,
        higher_is_better=False,
        rng=target.rng,
        chance={"rank-1": chance},
        note="" if before is None else f"as released {before:.2%}",
    )[0]
    return replace(first, metric=metric)

"""Unmixing: pictures blended with one another around a ring, taken apart again (L1)."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.headline import undoing_headline
from veilkit.attacks.pictures import Pictures
from veilkit.attacks.recovered import one_size, own_bound
from veilkit.attacks.target import given
from veilkit.attacks.unmix.rings import Ring, find_rings
from veilkit.attacks.unmix.scores import unmixing_scores
from veilkit.attacks.unmix.solve import find_ratio, goes_backwards, steps_of
from veilkit.types import Evidence, Level, Reason, ReasonCode

NO_RING = Reason(ReasonCode.NOTHING_TO_UNDO, "no ring of blended pictures found")
_MOST = 1000  # pictures that are taken apart; whole rings, so that nothing is missing
_PIXELS = 12_000_000  # that are held at a time
_SAMPLED = 6  # rings from which the ratio is taken
_COVERED = 0.5  # of the pictures must be in rings; by chance a few are
_CLOSED = 0.2  # of the pictures must be in closed rings, which alone show the ratio
_GAIN = 0.002  # by which taking apart must make pictures less busy; pictures that are merely alike grow busier


class Unmix(Attack):
    """Finds which blended pictures share a source, the ratio and the direction of each ring, and solves the rings.

    The adversary knows that each picture is r x_i + (1 - r) x_(i+1), but neither ring nor ratio. Two pictures share a
    source where their fine structure correlates; the ratio and the direction are those at which the sources become
    least busy. At ratio 0.5 nobody can say which of its two people a picture belongs to: the score takes, for each
    ring, the reading nearer to the originals.

    Gates: neither originals nor noise hold rings. Pictures without rings are left as they are, so that on the
    originals the recogniser must find what it finds there anyway, and nobody in noise.
    """

    name = "unmix"
    summary = "takes pictures apart again that were blended with other people's"
    level = Level.L1
    headline = undoing_headline(
        "Blended pictures taken apart",
        "who knows how pictures were mixed, but not the key,",
        "takes the blended pictures apart again",
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.EXPERT})

    def __init__(self) -> None:
        self._blended = False

    def informed_by(self, evidence: Evidence) -> Self:
        """Take it as known that pictures were blended: without rings, they are left as they are."""
        self._blended = True
        return self

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-1 of the unmixed pictures, links of rings found, and likeness to the originals."""
        part, others = one_size(target)
        rings, ratio = find_blends(given(part.protected))
        if not rings and not self._blended:
            return self.not_applicable(NO_RING)
        part, rings = _bounded(part, rings)
        lengths, counts = np.unique([len(ring.pictures) for ring in rings], return_counts=True)
        details: dict[str, object] = {
            "ratio": ratio,
            "ring lengths": {str(k): int(v) for k, v in zip(lengths, counts, strict=True)},
            "closed rings": sum(ring.closed for ring in rings),
            "pictures of other sizes": others,
        }
        scores, more = unmixing_scores(part, rings, ratio)
        return Evidence(self.name, self.level, scores, details=details | more)

    def clean_bound(self, target: AttackTarget) -> float | None:
        """The share of originals that are found among the originals."""
        return own_bound(_bounded(one_size(target)[0], [])[0])


def find_blends(pictures: Pictures) -> tuple[list[Ring], float | None]:
    """Rings, in the direction of their blending, and the ratio; none where pictures of one size were not blended."""
    rings = find_rings(pictures)
    closed = [ring for ring in rings if ring.closed]
    covered, around = (sum(len(ring.pictures) for ring in some) / len(pictures) for some in (rings, closed))
    if covered < _COVERED or around < _CLOSED:
        return [], None
    order = sorted(closed, key=lambda ring: -len(ring.pictures))
    sampled = [(steps_of(_pixels(pictures, ring.pictures)), True) for ring in order[:_SAMPLED]]
    ratio, gain = find_ratio(sampled)
    if gain < _GAIN:
        return [], None
    directed = []
    for ring in rings:
        back = ratio > 0.5 and goes_backwards(steps_of(_pixels(pictures, ring.pictures)), ratio, ring.closed)
        directed.append(Ring(ring.pictures[::-1], ring.closed) if back else ring)
    return directed, ratio


def _bounded(part: AttackTarget, rings: list[Ring]) -> tuple[AttackTarget, list[Ring]]:
    """As many pictures as can be held: whole rings, the first ones, and pictures of no ring in their proportion."""
    protected = given(part.protected)
    most = max(2, min(_MOST, _PIXELS // int(protected.sizes[0].prod())))
    if len(protected) <= most:
        return part, rings
    kept, chosen = [], list[int]()
    for ring in rings:
        if len(chosen) + len(ring.pictures) <= most:
            kept.append(ring)
            chosen += ring.pictures
    inside = {picture for ring in rings for picture in ring.pictures}
    alone = [picture for picture in range(len(protected)) if picture not in inside]
    share = round(len(alone) * len(chosen) / max(1, len(inside))) if inside else most
    indices = np.sort(np.array(chosen + alone[: min(share, most - len(chosen))], dtype=np.int64))
    place = {int(picture): at for at, picture in enumerate(indices)}
    return part.only(indices), [Ring(tuple(place[p] for p in ring.pictures), ring.closed) for ring in kept]


def _pixels(pictures: Pictures, indices: tuple[int, ...]) -> NDArray[np.float32]:
    return np.stack([pictures.load(index).numpy() for index in indices])

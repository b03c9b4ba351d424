"""Several protected pictures of one person, taken together (L0): what each hides, their mean may show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.headline import Headline
from veilkit.attacks.person_search import found_among
from veilkit.attacks.quick.choices import BLIND, PAIRED, same_person_score, unit
from veilkit.attacks.search import Search
from veilkit.attacks.target import Indices, given
from veilkit.types import Evidence, Level, Reason, ReasonCode


class PooledLinkage(Attack):
    """Averages the features of all protected pictures of a track, and searches for the person among raw pictures.

    A track is what one camera saw of a person, as anybody knows who follows them through a video; its raw gallery is
    by other cameras. Where cameras are not known, every other picture of a person stands for the track, and the rest
    for the gallery.
    """

    name = "pooled_linkage"
    summary = "names the person in several protected pictures at once, by the mean of their features"
    level = Level.L0
    headline = Headline(
        "Several protected pictures linked to a person",
        "{Judge} that takes all protected pictures of a track together names the person by raw pictures {value} of "
        "the time{interval}",
        "names",
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.IDENTITIES, Need.EXPERT})

    def run(self, target: AttackTarget) -> Evidence:
        """Paired choices, Rank-k, mAP and mINP, tracks of protected pictures in the raw gallery."""
        tracks, gallery = _tracks(given(target.search))
        largest = max((len(track) for track in tracks), default=0)
        if largest < 2:
            text = "there is one picture of each person and camera only: nothing can be taken together"
            return self.not_applicable(Reason(ReasonCode.ONE_PICTURE, text))
        released, raw = unit(target.protected_features()), target.original_features()
        pooled = np.stack([released[track].mean(axis=0) for track in tracks])
        both = np.concatenate([pooled, raw[gallery]])
        pooled_target = replace(target, search=_search(given(target.search), tracks, gallery))
        if not given(pooled_target.search).candidates()[0].any():
            text = "no track has a raw picture of its person beside it"
            return self.not_applicable(Reason(ReasonCode.NO_IDENTITIES, text))
        chance = {PAIRED: BLIND, **given(pooled_target.search).chance()}
        scores = (same_person_score(pooled_target, both, both), *found_among(pooled_target, both, both, chance))
        sizes = [len(track) for track in tracks]
        details = {
            "chance": chance,
            "recogniser": given(target.recogniser).name,
            "tracks": len(tracks),
            "pictures in a track": {"mean": float(np.mean(sizes)), "most": largest},
        }
        return Evidence(self.name, self.level, scores, details=details)


def _tracks(search: Search) -> tuple[list[Indices], Indices]:
    """Positions of the pictures of each track, and of the raw gallery."""
    asked = search.query
    if search.cameras is not None:
        keys = search.identities[asked] * (search.cameras.max() + 1) + search.cameras[asked]
        return [asked[keys == key] for key in np.unique(keys)], search.gallery
    halves = [asked[search.identities[asked] == person][::2] for person in np.unique(search.people)]
    return halves, np.setdiff1d(search.gallery, np.concatenate(halves))


def _search(search: Search, tracks: list[Indices], gallery: Indices) -> Search:
    """The search for tracks, numbered first, in the gallery, numbered after them."""
    at = np.concatenate([np.array([track[0] for track in tracks], dtype=np.int64), gallery])
    return Search(
        np.arange(len(tracks)),
        np.arange(len(tracks), len(at)),
        search.identities[at],
        None if search.cameras is None else search.cameras[at],
    )

"""Recognition in four settings (query raw or protected, gallery raw or protected), with the figures' curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.intervals import retrieval_scores
from veilkit.attacks.search import Search
from veilkit.audit.cells.differences import hits_by_person, paired_differences
from veilkit.audit.result import By, Curve, Histogram, Measurement, Roc, Tally
from veilkit.metrics import RetrievalResult, auc, equal_error_rate, roc
from veilkit.metrics.inputs import l2_normalised
from veilkit.rng import Randomness
from veilkit.types import Role

_LONGEST = 20  # ranks on a curve
_BINS = 40
_QUERIES = 500  # at most so many for a histogram
_FALSE = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, *(round(step / 40, 3) for step in range(1, 41)))


@dataclass(frozen=True, slots=True)
class Recognition:
    """What one recogniser found."""

    measurements: tuple[Measurement, ...]
    curves: tuple[Curve, ...]
    histograms: tuple[Histogram, ...]
    rocs: tuple[Roc, ...] = ()
    tallies: tuple[Tally, ...] = ()


def recognise(
    by: By, features: Mapping[str, NDArray[np.float32]], search: Search, rng: Randomness, *, note: str = ""
) -> Recognition:
    """Search in all settings that the features allow; where both kinds are known, also compare them query by query.

    features: "protected" and, where pairs are known, "raw", each (N, D). The expert's numbers are utility, high is
    good; the judge's are privacy, low is good.
    """
    chance = search.chance()
    role = Role.UTILITY if by == "expert" else Role.PRIVACY
    people = search.identities[search.query]
    results: dict[str, RetrievalResult] = {}
    measurements: list[Measurement] = []
    curves: list[Curve] = []
    for query in ("raw", "protected"):
        for gallery in ("raw", "protected"):
            if query not in features or gallery not in features:
                continue
            setting = f"{query}-{gallery}"
            results[setting] = found = search.find(features[query], features[gallery])
            scores = retrieval_scores(
                found,
                people,
                role=role,
                higher_is_better=role is Role.UTILITY,
                rng=rng,  # the same draws in all settings, so that they can be compared
                chance=chance,
                note=note,
            )
            measurements += [
                Measurement(by, setting, score, chance.get(score.metric), reference=setting == "raw-raw")
                for score in scores
            ]
            curves.append(Curve(by, setting, _cmc(found, len(search.gallery))))
    if "raw-raw" in results:
        measurements += paired_differences(
            by, results["protected-protected"], results["raw-raw"], people, role=role, rng=rng, note=note
        )
    histograms: list[Histogram] = []
    rocs: list[Roc] = []
    for kind in ("raw", "protected"):
        if kind in features:
            same, different = _similarities(features[kind], search, rng)
            histograms.append(_histogram(by, f"{kind}-{kind}", same, different))
            if len(same) and len(different):
                rocs.append(_roc(by, f"{kind}-{kind}", same, different))
    tallies = tuple(
        Tally(by, setting, hits_by_person(found.hits(1)[found.valid], people[found.valid]))
        for setting, found in results.items()
    )
    return Recognition(tuple(measurements), tuple(curves), tuple(histograms), tuple(rocs), tallies)


def _cmc(found: RetrievalResult, gallery: int) -> tuple[float, ...]:
    return tuple(round(found.rank(k), 6) for k in range(1, min(_LONGEST, gallery) + 1))


def _similarities(
    features: NDArray[np.float32], search: Search, rng: Randomness
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Of up to 500 queries to the gallery, without pairs of a picture with itself or by one camera: pairs of one
    person, and pairs of different people.
    """
    chosen = np.sort(rng.child("histogram").permutation(len(search.query))[:_QUERIES])
    query, own = search.query[chosen], search.own[chosen]
    unit = l2_normalised(np.array(features))
    similarities = unit[query] @ unit[search.gallery].T
    same = search.identities[query][:, None] == search.identities[search.gallery][None]
    counted = np.ones_like(same)
    counted[np.flatnonzero(own >= 0), own[own >= 0]] = False
    if search.cameras is not None:
        counted &= ~(same & (search.cameras[query][:, None] == search.cameras[search.gallery][None]))
    return similarities[same & counted], similarities[~same & counted]


def _histogram(by: By, setting: str, same: NDArray[np.float32], different: NDArray[np.float32]) -> Histogram:
    both = np.concatenate([same, different])
    low, high = float(both.min()), float(both.max())
    edges = np.linspace(low, max(high, low + 1e-3), _BINS + 1)
    shares = []
    for values in (same, different):
        counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), bins=edges)
        shares.append(tuple(round(float(share), 6) for share in counts / max(1, counts.sum())))
    return Histogram(by, setting, tuple(round(float(edge), 5) for edge in edges), shares[0], shares[1])


def _roc(by: By, setting: str, same: NDArray[np.float32], different: NDArray[np.float32]) -> Roc:
    """The step curve at chosen rates of false acceptance, closer to 0, where it matters."""
    curve = roc(same, different)
    places = np.searchsorted(curve.fpr, np.array(_FALSE) + 1e-12, "right") - 1
    rates = tuple(round(float(curve.tpr[place]), 6) for place in places)
    area, equal = round(auc(same, different), 6), round(equal_error_rate(same, different), 6)
    return Roc(by, setting, _FALSE, rates, area, equal, (len(same), len(different)))

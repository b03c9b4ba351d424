"""What a release of a study keeps and shows: matching in four settings, similarity, chaos, the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.shared.originals import Originals, Released
from veilkit.attacks.intervals import mean_score, retrieval_scores
from veilkit.audit.cells.differences import paired_differences
from veilkit.audit.cells.images import chaos, similarity
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.pictures import FilePictures
from veilkit.experts import Embedder
from veilkit.metrics import clopper_pearson
from veilkit.rng import Randomness
from veilkit.types import Role, Score

SETTINGS = ("raw-raw", "raw-protected", "protected-raw", "protected-protected")  # query-gallery
_METRICS = ("rank-1", "mAP", "mINP")


def matching(
    originals: Originals, release: Released, embedder: Embedder, role: Role, rng: Randomness
) -> dict[str, Any]:
    """Rank-1, mAP and mINP as [value, low, high] in each of `SETTINGS`, in shares; "change" from raw-raw; "chance".

    change: Rank-1 and mAP of each other setting minus raw-raw, on the same queries, with paired intervals.
    """
    features = {"raw": originals.tested.features(embedder), "protected": release.tested.features(embedder)}
    people, chance = originals.search.identities[originals.search.query], originals.search.chance()
    found = {setting: originals.search.find(*(features[side] for side in setting.split("-"))) for setting in SETTINGS}
    settings = {
        setting: {
            score.metric: _interval(score)
            for score in retrieval_scores(
                result, people, role=role, higher_is_better=role is Role.UTILITY, rng=rng, chance=chance
            )
            if score.metric in _METRICS
        }
        for setting, result in found.items()
    }
    change = {
        setting: {
            each.score.metric: _interval(each.score)
            for each in paired_differences("expert", found[setting], found["raw-raw"], people, role=role, rng=rng)
        }
        for setting in SETTINGS[1:]
    }
    return {"settings": settings, "change": change, "chance": chance, "recogniser": embedder.name}


def matching_change(
    originals: Originals,
    first: tuple[Released, Embedder],
    second: tuple[Released, Embedder],
    setting: str,
    rng: Randomness,
) -> dict[str, Any]:
    """Rank-1 and mAP of a release minus those of another, each by its own recogniser: [value, low, high], paired.

    setting: one of `SETTINGS`. Both searches ask the same queries.
    """
    found = []
    for release, embedder in (first, second):
        sides = {"raw": originals.tested, "protected": release.tested}
        found.append(originals.search.find(*(sides[side].features(embedder) for side in setting.split("-"))))
    people = originals.search.identities[originals.search.query]
    changes = paired_differences("expert", found[0], found[1], people, role=Role.UTILITY, rng=rng)
    return {each.score.metric: _interval(each.score) for each in changes}


def likeness_and_chaos(originals: Originals, release: Released, cache: Cache, rng: Randomness) -> dict[str, Any]:
    """SSIM and PSNR to the originals and AD, means as [value, low, high]; None where no picture has a finite one."""
    assert isinstance(release.tested, FilePictures)
    pairs = similarity(originals.tested, release.tested, cache)
    rows = {"SSIM": pairs.ssim, "PSNR": pairs.psnr, "AD": chaos(release.tested, cache)}
    return {metric: _mean(metric, values, originals.people, rng) for metric, values in rows.items()}


def ledger_summary(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the ledger says of the tested pictures; held: [share, low, high] whose 8-bit file kept the constraint.

    None stands for what the method does not report.
    """
    held = [bool(report["held"]) for report in reports if "held" in report]
    exact = clopper_pearson(sum(held), len(held)) if held else None
    return {
        "pictures": len(reports),
        "held": None if exact is None else [exact.value, exact.low, exact.high],
        "feature distance": _average(reports, "feature_distance"),
        "limit": _average(reports, "limit"),
        "steps": _average(reports, "steps"),
        "replacements": _average(reports, "replacements"),
    }


def _average(reports: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = [float(report[name]) for report in reports if name in report]
    return float(np.mean(values)) if values else None


def _mean(
    metric: str, values: NDArray[np.float64], people: NDArray[np.int64], rng: Randomness
) -> list[float | None] | None:
    finite = np.isfinite(values)
    if not finite.any():
        return None
    return _interval(
        mean_score(metric, values[finite], people[finite], role=Role.PRIVACY, higher_is_better=False, rng=rng)
    )


def _interval(score: Score) -> list[float | None]:
    return [None if part is None else float(part) for part in (score.value, score.low, score.high)]

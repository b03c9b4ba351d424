"""Pictures that an attack recovered: who is recognised in them, and how near they are to the originals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.intervals import mean_score, retrieval_scores
from veilkit.attacks.people_split import pixels
from veilkit.attacks.pictures import SMALLEST, Features, HeldPictures, resized
from veilkit.attacks.target import AttackTarget, given
from veilkit.metrics import RetrievalResult, paper_psnr, psnr, ssim
from veilkit.types import Reason, ReasonCode, Score

CEILING = 60.0  # dB: what was rounded to 8 bit comes no nearer than 59, unless it is equal
SLACK = 0.5  # dB below the mean image that are forgiven: where nothing can be learned, an L1 loss ends at the median
_PAPER_BATCH = 64
_BROKEN = "the paper's broken scale: each batch stretched by its own least and greatest value; for comparison only"
_PSNR, _SSIM = "PSNR", "SSIM"
_BATCH_PSNR, _BATCH_SSIM = "PSNR (batch scale)", "SSIM (batch scale)"


@dataclass(frozen=True, slots=True, eq=False)
class RecoveredPictures:
    """Pictures of people who taught the attacker nothing: uint8 (N, 3, H, W), the same picture in each place."""

    original: Tensor
    protected: Tensor
    recovered: Tensor

    def rows(self) -> dict[str, Tensor]:
        """The three by their names."""
        return {"original": self.original, "protected": self.protected, "recovered": self.recovered}


@runtime_checkable
class ShowsRecovered(Protocol):
    """An attack that recovers pictures which a reader may look at."""

    def recovered_pictures(self, target: AttackTarget, count: int) -> RecoveredPictures:
        """At most `count` victims, evenly chosen. What was learned on this target before is not learned again."""


@dataclass(frozen=True, slots=True, eq=False)
class Recovered:
    """Scores, rank-1 first; details of the evidence; and the reasons why the scores are invalid."""

    scores: tuple[Score, ...]
    details: dict[str, Any]
    invalid: tuple[Reason, ...]


def score_recovered(victims: AttackTarget, answers: Tensor, mean: Tensor) -> Recovered:
    """Score answers (N, 3, H, W) in [0, 1] for the N originals, which are taken at the same size.

    mean: the mean image (3, H, W) of the public originals, the baseline. "rank-1": the independent recogniser finds
    the very original among all. "person rank-1", "person mAP": it finds the person by other originals, the own one
    left out. PSNR is at most 60 dB. Answers further from the originals than the mean image are invalid, unless people
    are recognised in them all the same: a leak is never called invalid for looking bad.
    """
    recogniser, size = given(victims.recogniser), (answers.shape[2], answers.shape[3])
    originals = pixels(given(victims.originals), size)
    features = HeldPictures(answers).features(recogniser)
    released = None if victims.protected is None else victims.protected_features()
    scores, chance, before = recognised(victims, features, released)
    if len(scores) > 1:
        scores.append(_person_map(victims, features, chance))
    found = likeness(answers, originals)
    baseline = likeness(mean[None].expand_as(answers), originals)
    shown = {} if victims.protected is None else likeness(pixels(victims.protected, size), originals)
    for metric, values in found.items():
        notes = [f"mean image {baseline[metric].mean():.3g}"]
        notes += [f"as released {shown[metric].mean():.3g}"] if shown else []
        notes += [_BROKEN] if metric in (_BATCH_PSNR, _BATCH_SSIM) else []
        scores.append(mean_score(metric, values, victims.people, rng=victims.rng, note="; ".join(notes)))
    details: dict[str, Any] = {
        "chance": chance,
        "as released": before | {metric: float(values.mean()) for metric, values in shown.items()},
        "mean image": {metric: float(values.mean()) for metric, values in baseline.items()},
        "recogniser": recogniser.name,
    }
    worse = beats_mean_image(float(found[_PSNR].mean()) + SLACK, float(baseline[_PSNR].mean()), _PSNR)
    finds = scores[0].low is not None and scores[0].low > chance["rank-1"]
    return Recovered(tuple(scores), details, () if worse is None or finds else (worse,))


def beats_mean_image(recovered: float, baseline: float, metric: str) -> Reason | None:
    """A recovery must come at least as near to the originals (PSNR, SSIM) as the mean image does."""
    if recovered >= baseline:
        return None
    text = f"its {metric} of {recovered:.3g} is below the mean image's {baseline:.3g}: it has learned nothing"
    return Reason(ReasonCode.BELOW_MEAN_IMAGE, text)


def recognised(
    target: AttackTarget, undone: Features, released: Features | None
) -> tuple[list[Score], dict[str, float], dict[str, float]]:
    """Rank-1 of undone pictures (N, D), by the target's recogniser, among N originals: scores, chance, as released.

    Row i is the picture made of original i. "rank-1": its own original comes first. "person rank-1": a picture of
    the same person does, the own original left out; only where people can be searched for. released: features of the
    release's pictures; None where it has none.
    """
    raw = target.original_features()
    found, searched = {"rank-1": target.find_own(undone)}, {"rank-1": target.clusters}
    chance = {"rank-1": 1.0 / len(raw)}
    before = {} if released is None else {"rank-1": target.find_own(released).rank(1)}
    if target.search is not None and bool((target.search.candidates()[0] > 0).any()):
        metric, search = "person rank-1", target.search
        chance[metric] = search.chance((1,))["rank-1"]
        if released is not None:
            before[metric] = search.find(released, raw).rank(1)
        found[metric], searched[metric] = search.find(undone, raw), search.people
    scores = [
        _rank_one(metric, result, searched[metric], target, chance[metric], before.get(metric))
        for metric, result in found.items()
    ]
    return scores, chance, before


def likeness(answers: Tensor, originals: Tensor) -> dict[str, NDArray[np.float64]]:
    """PSNR and SSIM (N,) of images to originals, on the fixed [0, 1] scale and on that of each batch of 64.

    Images are uint8, or float32 in [0, 1]. Pictures too small for SSIM's window have none.
    """
    rows: dict[str, list[Tensor]] = {}
    for start in range(0, len(originals), _PAPER_BATCH):
        made, raw = (_unit(each[start : start + _PAPER_BATCH]) for each in (answers, originals))
        rows.setdefault(_PSNR, []).append(psnr(made, raw).clamp(max=CEILING))
        rows.setdefault(_BATCH_PSNR, []).append(paper_psnr(made, raw).clamp(max=CEILING))
        if min(raw.shape[2:]) >= SMALLEST:
            rows.setdefault(_SSIM, []).append(ssim(made, raw))
            rows.setdefault(_BATCH_SSIM, []).append(ssim(_stretched(made), _stretched(raw)))
    order = (_SSIM, _PSNR, _BATCH_SSIM, _BATCH_PSNR)
    return {name: torch.cat(rows[name]).double().numpy() for name in order if name in rows}


def own_bound(victims: AttackTarget) -> float | None:
    """The share of originals that the recogniser finds among the originals; the most that a recovery can reach."""
    if victims.originals is None or victims.recogniser is None:
        return None
    return victims.find_own(victims.original_features()).rank(1)


def mean_of(images: Tensor, size: tuple[int, int]) -> Tensor:
    """The mean image (3, H, W) of uint8 images (N, 3, h, w), at a size."""
    total = torch.zeros(images.shape[1:], dtype=torch.float64)
    for part in torch.split(images, _PAPER_BATCH):
        total += part.double().sum(dim=0)
    return resized((total / (255 * len(images))).float()[None], size)[0]


def one_size(target: AttackTarget, most: int | None = None) -> tuple[AttackTarget, int]:
    """The part of a target whose protected pictures have the most frequent size, and how many others there are.

    Pictures that were mixed have one size. most: at most so many, evenly chosen.
    """
    protected = given(target.protected)
    _, kind, counts = np.unique(protected.sizes, axis=0, return_inverse=True, return_counts=True)
    chosen = np.flatnonzero(kind.ravel() == int(np.argmax(counts)))
    others = len(protected) - len(chosen)
    if most is not None and len(chosen) > most:
        chosen = chosen[np.unique(np.linspace(0, len(chosen) - 1, most).astype(np.int64))]
    return target.only(chosen), others


def _rank_one(
    metric: str,
    found: RetrievalResult,
    people: NDArray[np.int64],
    target: AttackTarget,
    chance: float,
    before: float | None,
) -> Score:
    note = "" if before is None else f"as released {before:.2%}"
    first = retrieval_scores(found, people, rng=target.rng, chance={"rank-1": chance}, note=note)[0]
    return replace(first, metric=metric)


def _person_map(victims: AttackTarget, features: Features, chance: dict[str, float]) -> Score:
    search, metric = given(victims.search), "person mAP"
    chance[metric] = search.chance((1,))["mAP"]
    result = search.find(features, victims.original_features())
    found = retrieval_scores(result, search.people, rng=victims.rng, chance={"mAP": chance[metric]})
    return replace(next(each for each in found if each.metric == "mAP"), metric=metric)


def _unit(images: Tensor) -> Tensor:
    return images.float() / 255 if images.dtype == torch.uint8 else images


def _stretched(batch: Tensor) -> Tensor:
    low, high = torch.aminmax(batch)
    return ((batch - low) / (high - low)).clamp(0, 1) if high > low else torch.zeros_like(batch)

"""Scores of recovered pictures: who is recognised in them, and how near they are to the originals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.base import AttackTarget
from veilkit.attacks.gates import beats_mean_image
from veilkit.attacks.intervals import mean_score, retrieval_scores
from veilkit.attacks.people_split import pixels
from veilkit.attacks.pictures import SMALLEST, HeldPictures, resized
from veilkit.attacks.undone import recognised
from veilkit.metrics import paper_psnr, psnr, retrieval, ssim
from veilkit.types import Reason, Role, Score

CEILING = 60.0  # dB: what was rounded to 8 bit comes no nearer than 59, unless it is equal
SLACK = 0.5  # dB below the mean image that are forgiven: where nothing can be learned, an L1 loss ends at the median
_PAPER_BATCH = 64
_BROKEN = "the paper's broken scale: each batch stretched by its own least and greatest value; for comparison only"
_PSNR, _SSIM = "PSNR", "SSIM"
_BATCH_PSNR, _BATCH_SSIM = "PSNR (batch scale)", "SSIM (batch scale)"


@dataclass(frozen=True, slots=True, eq=False)
class Recovered:
    """Scores, rank-1 first; what is to be told with them; and the reasons why they are invalid."""

    scores: tuple[Score, ...]
    details: dict[str, object]
    invalid: tuple[Reason, ...]


def score_recovered(victims: AttackTarget, answers: Tensor, mean: Tensor) -> Recovered:
    """Score answers (N, 3, H, W) in [0, 1] for the N originals, which are taken at the same size.

    mean: the mean image (3, H, W) of the public originals, the baseline. "rank-1": the independent recogniser finds
    the very original among all. "person rank-1", "person mAP": it finds the person by other originals, the own one
    left out. PSNR is at most 60 dB. Answers further from the originals than the mean image are invalid, unless people
    are recognised in them all the same: a leak is never called invalid for looking bad.
    """
    assert victims.originals is not None
    assert victims.recogniser is not None
    size = (answers.shape[2], answers.shape[3])
    originals = pixels(victims.originals, size)
    features = HeldPictures(answers).features(victims.recogniser)
    released = None if victims.protected is None else victims.protected.features(victims.recogniser)
    scores, chance, before = recognised(victims, features, released)
    if len(scores) > 1:
        scores.append(_person_map(victims, features, chance))
    found = likeness(answers, originals)
    baseline = likeness(mean[None].expand_as(answers), originals)
    shown = None
    if victims.protected is not None:
        shown = likeness(pixels(victims.protected, size), originals)
    for metric, values in found.items():
        notes = [f"mean image {baseline[metric].mean():.3g}"]
        notes += [f"as released {shown[metric].mean():.3g}"] if shown is not None else []
        notes += [_BROKEN] if metric in (_BATCH_PSNR, _BATCH_SSIM) else []
        scores.append(
            mean_score(
                metric,
                values,
                victims.people,
                role=Role.PRIVACY,
                higher_is_better=False,
                rng=victims.rng,
                note="; ".join(notes),
            )
        )
    before |= {} if shown is None else {metric: float(values.mean()) for metric, values in shown.items()}
    details: dict[str, object] = {
        "chance": chance,
        "as released": before,
        "mean image": {metric: float(values.mean()) for metric, values in baseline.items()},
        "recogniser": victims.recogniser.name,
    }
    worse = beats_mean_image(float(found[_PSNR].mean()) + SLACK, float(baseline[_PSNR].mean()), _PSNR)
    finds = scores[0].low is not None and scores[0].low > chance["rank-1"]
    return Recovered(tuple(scores), details, () if worse is None or finds else (worse,))


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
    raw = victims.originals.features(victims.recogniser)
    each = np.arange(len(raw))
    return retrieval(raw, raw, each, each).rank(1)


def mean_of(images: Tensor, size: tuple[int, int]) -> Tensor:
    """The mean image (3, H, W) of uint8 images (N, 3, h, w), at a size."""
    total = torch.zeros(images.shape[1:], dtype=torch.float64)
    for part in torch.split(images, _PAPER_BATCH):
        total += part.double().sum(dim=0)
    return resized((total / (255 * len(images))).float()[None], size)[0]


def _person_map(victims: AttackTarget, features: NDArray[np.float32], chance: dict[str, float]) -> Score:
    assert victims.originals is not None
    assert victims.recogniser is not None
    assert victims.search is not None
    search, metric = victims.search, "person mAP"
    chance[metric] = search.chance((1,))["mAP"]
    found = retrieval_scores(
        search.find(features, victims.originals.features(victims.recogniser)),
        search.identities[search.query],
        role=Role.PRIVACY,
        higher_is_better=False,
        rng=victims.rng,
        chance={"mAP": chance[metric]},
    )
    score = next(each for each in found if each.metric == "mAP")
    return Score(metric, score.value, score.role, score.higher_is_better, score.low, score.high, score.note)


def _unit(images: Tensor) -> Tensor:
    return images.float() / 255 if images.dtype == torch.uint8 else images


def _stretched(batch: Tensor) -> Tensor:
    low, high = torch.aminmax(batch)
    return ((batch - low) / (high - low)).clamp(0, 1) if high > low else torch.zeros_like(batch)

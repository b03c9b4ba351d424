"""The mean image: what anybody can say of an original without looking at its protected picture."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.intervals import mean_score
from veilkit.attacks.pictures import SMALLEST, Pictures, SomePictures, resized
from veilkit.attacks.target import given
from veilkit.metrics import psnr, ssim
from veilkit.types import Evidence, Level, Score

_MOST = 1000  # originals that the baseline is measured on: evenly chosen, for it is one number only


class MeanImage(Attack):
    """Answers every original with one and the same picture: the mean of the release.

    A baseline, not an adversary. A recovery that is no closer to the originals than this has recovered nothing.
    """

    name = "mean_image"
    summary = "baseline: how near one and the same mean picture comes to every original"
    level = Level.L0
    needs = frozenset({Need.IMAGES, Need.PAIRS})
    baseline = True

    def run(self, target: AttackTarget) -> Evidence:
        """PSNR and SSIM of the mean picture, resized to each original."""
        of = "the protected pictures"
        mean = mean_picture(given(target.protected))
        originals = given(target.originals)
        chosen = np.unique(np.linspace(0, len(originals) - 1, _MOST).astype(np.int64))
        note = f"baseline: the mean of {of}, against {len(chosen)} originals"
        scores: list[Score] = []
        for metric, values in zip(("PSNR", "SSIM"), _against(mean, SomePictures(originals, chosen)), strict=True):
            measured = np.isfinite(values)
            if measured.any():
                people = None if target.people is None else target.people[chosen][measured]
                scores.append(mean_score(metric, values[measured], people, rng=target.rng, note=note))
        details = {"mean of": of, "size": list(mean.shape[1:]), "originals": len(chosen)}
        return Evidence(self.name, self.level, tuple(scores), details=details)


def mean_picture(pictures: Pictures) -> Tensor:
    """The mean, (3, H, W), of all pictures resized to the most frequent size among them."""
    sizes, counts = np.unique(pictures.sizes, axis=0, return_counts=True)
    height, width = (int(side) for side in sizes[np.argmax(counts)])
    total = torch.zeros(3, height, width, dtype=torch.float64)
    for _, images in pictures.batches():
        total += resized(images, (height, width)).double().sum(dim=0)
    return (total / len(pictures)).float().clamp_(0, 1)


def _against(mean: Tensor, originals: Pictures) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """PSNR and SSIM (N,) of the mean picture against each original; NaN where SSIM's window does not fit."""
    ratios, similarities = np.full(len(originals), np.nan), np.full(len(originals), np.nan)
    for part, images in originals.batches():
        answer = resized(mean[None], (images.shape[2], images.shape[3])).expand_as(images)
        ratios[part] = psnr(answer, images).numpy()
        if min(images.shape[2:]) >= SMALLEST:
            similarities[part] = ssim(answer, images).numpy()
    return ratios, similarities

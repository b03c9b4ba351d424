"""The mean image: what anybody can say of an original without looking at its protected picture."""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.base import Attack, AttackTarget, Need, Oracle
from veilkit.attacks.intervals import mean_score
from veilkit.attacks.pictures import SMALLEST, Pictures, SomePictures, resized
from veilkit.metrics import psnr, ssim
from veilkit.types import Evidence, Level, Role, Score

_MOST = 1000  # originals that the baseline is measured on: evenly chosen, for it is one number only


class MeanImage(Attack):
    """Answers every original with one and the same picture: the mean of public pictures, or else of the release.

    A baseline, not an adversary. A recovery that is no closer to the originals than this has recovered nothing.
    """

    name = "mean_image"
    summary = "baseline: how near one and the same mean picture comes to every original"
    level = Level.L0
    needs = frozenset({Need.IMAGES, Need.PAIRS})
    baseline = True

    def __init__(self) -> None:
        self._mean: Tensor | None = None

    def fit(self, oracle: Oracle | None, public: Pictures | None) -> Self:
        """Take the mean of public pictures, where there are any."""
        self._mean = None if public is None or not len(public) else mean_picture(public)
        return self

    def run(self, target: AttackTarget) -> Evidence:
        """PSNR and SSIM of the mean picture, resized to each original."""
        assert target.protected is not None
        assert target.originals is not None
        of = "public pictures" if self._mean is not None else "the protected pictures"
        mean = mean_picture(target.protected) if self._mean is None else self._mean
        chosen = np.unique(np.linspace(0, len(target.originals) - 1, _MOST).astype(np.int64))
        ratios, similarities = _against(mean, SomePictures(target.originals, chosen))
        people = None if target.people is None else target.people[chosen]
        scores: list[Score] = []
        for metric, values in (("PSNR", ratios), ("SSIM", similarities)):
            measured = np.isfinite(values)
            if measured.any():
                scores.append(
                    mean_score(
                        metric,
                        values[measured],
                        None if people is None else people[measured],
                        role=Role.PRIVACY,
                        higher_is_better=False,
                        rng=target.rng,
                        note=f"baseline: the mean of {of}, against {len(chosen)} originals",
                    )
                )
        return Evidence(
            self.name,
            self.level,
            tuple(scores),
            details={"mean of": of, "size": list(mean.shape[1:]), "originals": len(chosen)},
        )


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

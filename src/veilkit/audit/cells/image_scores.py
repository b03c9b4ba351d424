"""Scores of pictures as such: similarity to the originals, and chaos, with intervals and what is to be told."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.intervals import mean_score
from veilkit.audit.cells.images import chaos, one_size, similarity
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.pictures import LARGEST, FilePictures
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Measurement
from veilkit.rng import Randomness
from veilkit.types import Role

TO_ORIGINAL = "protected to original"


def image_scores(subject: Subject, cache: Cache, rng: Randomness) -> tuple[tuple[Measurement, ...], tuple[str, ...]]:
    """Mean SSIM and PSNR of the pairs, and mean chaos of protected pictures and originals; then notes."""
    measured: list[Measurement] = []
    notes: list[str] = []
    if subject.originals is not None:
        pairs = similarity(subject.originals, subject.protected, cache)
        measured += _mean(subject, TO_ORIGINAL, "SSIM", pairs.ssim, "1 where equal", rng)
        measured += _mean(subject, TO_ORIGINAL, "PSNR", pairs.psnr, "higher is nearer", rng)
        if equal := int(np.isinf(pairs.psnr).sum()):
            notes.append(f"{equal} protected pictures equal their originals, pixel by pixel; PSNR leaves them out")
        if small := int(np.isnan(pairs.ssim).sum()):
            notes.append(f"{small} pictures are too small for SSIM, which needs 11 pixels a side")
        if pairs.resized:
            notes.append(
                f"{pairs.resized} protected pictures were resized to their originals' size before they were compared"
            )
    sides: list[tuple[str, FilePictures]] = [("protected", subject.protected)]
    if subject.originals is not None:
        sides.append(("originals", subject.originals))
    for setting, pictures in sides:
        values = chaos(pictures, cache)
        what = "protected pictures" if setting == "protected" else setting
        about = "0 for normally distributed values; a low value alone proves no privacy"
        measured += _mean(subject, setting, "AD", values, about, rng)
        if flat := int(np.isinf(values).sum()):
            notes.append(f"{flat} of the {what} have one single value, for which chaos (AD) is not defined")
        if not one_size(pictures):
            notes.append(f"the {what} have several sizes, and chaos (AD) grows with a picture's size")
        if (pictures.sizes.prod(axis=1) > 0.99 * LARGEST).any():
            notes.append(
                f"some of the {what} were shrunk to {LARGEST / 1e6:g} million pixels before they were measured"
            )
    return tuple(measured), tuple(notes)


def _mean(
    subject: Subject, setting: str, metric: str, values: NDArray[np.float64], note: str, rng: Randomness
) -> list[Measurement]:
    """The mean of the values that are finite, if any are."""
    finite = np.isfinite(values)
    if not finite.any():
        return []
    score = mean_score(
        metric,
        values[finite],
        None if subject.people is None else subject.people[finite],
        role=Role.PRIVACY,
        higher_is_better=False,
        rng=rng,
        note=note,
    )
    return [Measurement("images", setting, score, reference=setting == "originals")]

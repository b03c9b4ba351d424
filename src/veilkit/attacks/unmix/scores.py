"""Scores of unmixing: who is recognised in the sources, how near they are to the originals, which links are found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.intervals import mean_score
from veilkit.attacks.pictures import SMALLEST, HeldPictures, Pictures, resized
from veilkit.attacks.recovered import CEILING, recognised
from veilkit.attacks.target import AttackTarget, given
from veilkit.attacks.unmix.rings import Ring
from veilkit.attacks.unmix.solve import unmixed
from veilkit.metrics import psnr, ssim
from veilkit.types import Score

_POINTS = (48, 24)  # to which pictures are shrunk before they are compared
_EXPLAINED = 0.1  # the share of a picture's difference to its original that another may leave unexplained
_LIKENED = 100  # pictures, evenly chosen, are compared with their originals: SSIM is slow


def unmixing_scores(
    part: AttackTarget, rings: Sequence[Ring], ratio: float | None
) -> tuple[tuple[Score, ...], dict[str, object]]:
    """Rank-1 first, then links, PSNR and SSIM; and details of the evidence. Rings have their direction."""
    protected, originals, recogniser = given(part.protected), given(part.originals), given(part.recogniser)
    answers = HeldPictures(_taken_apart(part, rings, ratio))
    before = part.protected_features()
    scores, chance, released = recognised(part, answers.features(recogniser) if rings else before, before)
    second = second_sources(protected, originals)
    known = second >= 0
    if known.any():
        found = {link for ring in rings for link in ring.links}
        hits = np.array([(min(i, j), max(i, j)) in found for i, j in enumerate(second.tolist())], dtype=np.float64)
        chance["links"] = min(1.0, 2.0 / (len(hits) - 1))
        scores.append(_mean("links", hits, known, part, f"chance {chance['links']:.2%}"))
    now, then = (_likeness(pictures, originals) for pictures in (answers, protected))
    for metric, values, earlier, unit in zip(("PSNR", "SSIM"), now, then, (" dB", ""), strict=True):
        measured = np.isfinite(values)
        if measured.any():
            released[metric] = float(earlier[measured].mean())
            scores.append(_mean(metric, values, measured, part, f"as released {released[metric]:.3g}{unit}"))
    return tuple(scores), {"chance": chance, "as released": released, "recogniser": recogniser.name}


def _mean(
    metric: str, values: NDArray[np.float64], measured: NDArray[np.bool_], part: AttackTarget, note: str
) -> Score:
    people = None if part.people is None else part.people[measured]
    return mean_score(metric, values[measured], people, rng=part.rng, note=note)


def _taken_apart(part: AttackTarget, rings: Sequence[Ring], ratio: float | None) -> list[Tensor]:
    """A picture for each protected one: its own source, or itself where it is in no ring."""
    protected, originals = given(part.protected), given(part.originals)
    answer = [protected.load(index) for index in range(len(protected))]
    for ring in rings:
        blended = np.stack([answer[index].numpy() for index in ring.pictures])
        sources = torch.from_numpy(unmixed(blended, given(ratio), ring.closed))
        own = sources[: len(blended)]
        if ratio == 0.5:  # both readings are as good: source i is in the pictures i - 1 and i
            other = sources.roll(-1, dims=0)[: len(blended)]
            size = (own.shape[2], own.shape[3])
            raw = torch.cat([resized(originals.load(index)[None], size) for index in ring.pictures])
            if (other - raw).square().mean() < (own - raw).square().mean():
                own = other
        for index, source in zip(ring.pictures, own, strict=True):
            answer[index] = source
    return answer


def _likeness(pictures: Pictures, originals: Pictures) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """PSNR, at most 60 dB, and SSIM (N,) of pictures to their originals, at the originals' size; NaN if not taken."""
    ratios, similarities = np.full(len(originals), np.nan), np.full(len(originals), np.nan)
    chosen = np.unique(np.linspace(0, len(originals) - 1, _LIKENED).astype(np.int64))
    for part, raw in originals.batches(chosen):
        size = (raw.shape[2], raw.shape[3])
        for index, original in zip(part, raw[:, None], strict=True):  # SSIM holds many times what it is given
            image = resized(pictures.load(index)[None], size)
            ratios[index] = float(psnr(image, original).clamp(max=CEILING))
            if min(size) >= SMALLEST:
                similarities[index] = float(ssim(image, original))
    return ratios, similarities


def second_sources(blended: Pictures, originals: Pictures) -> NDArray[np.int64]:
    """(N,): the original j for which y_i - x_i = a (x_j - x_i) holds best, for some a; -1 where none explains it.

    For scoring only: an adversary has no originals.
    """
    y, x = _points(blended), _points(originals)
    change = y - x
    found = np.full(len(x), -1, dtype=np.int64)
    for i in range(len(x)):
        towards = x - x[i]
        power = np.square(towards).sum(axis=1)
        along = towards @ change[i]
        along[(power < 1e-9) | (along <= 0)] = 0.0
        explained = np.square(along) / np.maximum(power, 1e-9)
        best = int(np.argmax(explained))
        total = float(np.square(change[i]).sum())
        if total > 0 and explained[best] >= (1 - _EXPLAINED) * total:
            found[i] = best
    return found


def _points(pictures: Pictures) -> NDArray[np.float32]:
    points = np.empty((len(pictures), 3 * _POINTS[0] * _POINTS[1]), dtype=np.float32)
    for part, images in pictures.batches():
        points[part] = resized(images, _POINTS).flatten(1).numpy()
    return points

"""Scores of unmixing: who is recognised in the sources, how near they are to the originals, which links are found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.base import AttackTarget
from veilkit.attacks.intervals import mean_score
from veilkit.attacks.pictures import SMALLEST, HeldPictures, Pictures, resized
from veilkit.attacks.undone import recognised
from veilkit.attacks.unmix.rings import Ring
from veilkit.attacks.unmix.solve import unmixed
from veilkit.attacks.unmix.truth import second_sources
from veilkit.metrics import psnr, ssim
from veilkit.types import Role, Score

_CEILING = 60.0  # dB: what was rounded to 8 bit comes no nearer than 59, unless it is equal

_LIKENED = 100  # pictures, evenly chosen, are compared with their originals: SSIM is slow


def unmixing_scores(
    part: AttackTarget, rings: Sequence[Ring], ratio: float | None
) -> tuple[tuple[Score, ...], dict[str, object]]:
    """Rank-1 first, then links, PSNR and SSIM; and what is to be told with them. Rings have their direction."""
    assert part.protected is not None
    assert part.originals is not None
    assert part.recogniser is not None
    answers = HeldPictures(_taken_apart(part, rings, ratio))
    before = part.protected.features(part.recogniser)
    scores, chance, released = recognised(part, answers.features(part.recogniser) if rings else before, before)
    second = second_sources(part.protected, part.originals)
    known = second >= 0
    if known.any():
        found = {link for ring in rings for link in ring.links}
        hits = np.array([(min(i, j), max(i, j)) in found for i, j in enumerate(second.tolist())], dtype=np.float64)
        chance["links"] = min(1.0, 2.0 / (len(hits) - 1))
        scores.append(_mean("links", hits, known, part, f"chance {chance['links']:.2%}"))
    now, then = (_likeness(pictures, part.originals) for pictures in (answers, part.protected))
    for metric, values, earlier, unit in zip(("PSNR", "SSIM"), now, then, (" dB", ""), strict=True):
        measured = np.isfinite(values)
        if measured.any():
            released[metric] = float(earlier[measured].mean())
            scores.append(_mean(metric, values, measured, part, f"as released {released[metric]:.3g}{unit}"))
    return tuple(scores), {"chance": chance, "as released": released, "recogniser": part.recogniser.name}


def _mean(
    metric: str, values: NDArray[np.float64], measured: NDArray[np.bool_], part: AttackTarget, note: str
) -> Score:
    people = None if part.people is None else part.people[measured]
    return mean_score(
        metric, values[measured], people, role=Role.PRIVACY, higher_is_better=False, rng=part.rng, note=note
    )


def _taken_apart(part: AttackTarget, rings: Sequence[Ring], ratio: float | None) -> list[Tensor]:
    """A picture for each protected one: its own source, or itself where it is in no ring."""
    assert part.protected is not None
    assert part.originals is not None
    answer = [part.protected.load(index) for index in range(len(part.protected))]
    for ring in rings:
        assert ratio is not None
        blended = np.stack([answer[index].numpy() for index in ring.pictures])
        sources = torch.from_numpy(unmixed(blended, ratio, ring.closed))
        own = sources[: len(blended)]
        if ratio == 0.5:  # both readings are as good: source i is in the pictures i - 1 and i
            other = sources.roll(-1, dims=0)[: len(blended)]
            size = (own.shape[2], own.shape[3])
            raw = torch.cat([resized(part.originals.load(index)[None], size) for index in ring.pictures])
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
            ratios[index] = float(psnr(image, original).clamp(max=_CEILING))
            if min(size) >= SMALLEST:
                similarities[index] = float(ssim(image, original))
    return ratios, similarities

"""Picture by picture: how near a protected one is to its original, and how chaotic its pixels are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.pictures import SMALLEST, Pictures, resized
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.pictures import FilePictures
from veilkit.metrics import anderson_darling, psnr, ssim
from veilkit.progress import Progress

_SIMILARITY, _CHAOS = "similarity 1", "chaos 1"


@dataclass(frozen=True, slots=True, eq=False)
class Similarity:
    """Of N pairs: PSNR in dB (infinite where equal), SSIM (NaN where a side is too short); how many were resized."""

    psnr: NDArray[np.float64]
    ssim: NDArray[np.float64]
    resized: int


def similarity(originals: FilePictures, protected: FilePictures, cache: Cache) -> Similarity:
    """PSNR and SSIM of each protected picture against its original, on the fixed [0, 1] scale.

    A protected picture of another size is resized to its original's.
    """
    names = [a.sha256 + b.sha256 for a, b in zip(originals.files, protected.files, strict=True)]
    known = cache.get(_SIMILARITY, names)
    missing = [index for index, name in enumerate(names) if name not in known]
    with Progress(len(names), "comparing pictures", done=len(names) - len(missing)) as progress:
        for part, images in originals.batches(missing):
            size = (images.shape[2], images.shape[3])
            answers = images.new_empty(images.shape)
            for place, index in enumerate(part):
                answers[place] = resized(protected.load(index)[None], size)[0]
            values = np.full((len(part), 2), np.nan, dtype=np.float32)
            values[:, 0] = psnr(answers, images).numpy()
            if min(size) >= SMALLEST:
                values[:, 1] = ssim(answers, images).numpy()
            new = [(names[index], row) for index, row in zip(part, values, strict=True)]
            cache.put(_SIMILARITY, new)
            known.update(new)
            progress.advance(len(part))
    table = np.stack([known[name] for name in names]).astype(np.float64)
    changed = int((originals.sizes != protected.sizes).any(axis=1).sum())
    return Similarity(table[:, 0], table[:, 1], changed)


def chaos(pictures: FilePictures, cache: Cache) -> NDArray[np.float64]:
    """The Anderson-Darling statistic of each picture (N,); infinite for pictures of one single value."""
    names = [file.sha256 for file in pictures.files]
    known = cache.get(_CHAOS, names)
    missing = {name: index for index, name in enumerate(names) if name not in known}
    with Progress(len(names), "measuring chaos", done=len(names) - len(missing)) as progress:
        for part, images in pictures.batches(sorted(missing.values())):
            values = anderson_darling(images).numpy().astype(np.float32)
            new = [(names[index], values[place : place + 1]) for place, index in enumerate(part)]
            cache.put(_CHAOS, new)
            known.update(new)
            progress.advance(len(part))
    return np.array([known[name][0] for name in names], dtype=np.float64)


def one_size(pictures: Pictures) -> bool:
    """Whether all pictures have one size, as the chaos statistic needs to be compared."""
    return len(np.unique(pictures.sizes, axis=0)) <= 1

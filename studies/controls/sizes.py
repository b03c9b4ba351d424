"""What a control leaves of a picture by the picture's size alone, its strength growing with it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from veilkit.attacks.people_split import pixels
from veilkit.attacks.pictures import Pictures
from veilkit.methods import METHODS
from veilkit.metrics import ssim
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

_TOGETHER = 64  # pictures


def likeness_by_size(
    pictures: Pictures, methods: Sequence[str], sizes: Sequence[tuple[int, int]], rng: Randomness
) -> dict[str, dict[str, float]]:
    """Mean SSIM of protected pictures to their originals, which are brought to each size: {"128x64": {method: SSIM}}.

    methods: names of controls that take one picture at a time and draw nothing.
    """
    found: dict[str, dict[str, float]] = {}
    for height, width in sizes:
        parts = [part.float().div(255) for part in torch.split(pixels(pictures, (height, width)), _TOGETHER)]
        row = found[f"{height}x{width}"] = {}
        for name in methods:
            method = METHODS[name].configured()
            each: list[Tensor] = []
            for part in parts:
                made = method.protect(ImageBatch(part, tuple(map(str, range(len(part))))), rng=rng).images
                assert made is not None
                each.append(ssim(made, part))
            row[name] = float(torch.cat(each).mean())
    return found

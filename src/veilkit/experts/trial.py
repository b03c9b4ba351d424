"""The trial of an embedder before it is trusted: does it answer, and does the answer depend on the image alone?"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.errors import CheckpointError
from veilkit.experts.base import Embedder
from veilkit.rng import Randomness

_SIZE = (160, 80)
_TOLERANCE = 1e-3  # of the largest value: rounding that differs between batch sizes stays far below
_SAME = 1e-5  # of the largest value: features that differ by less do not see the image


def trial_images() -> Tensor:
    """Two random images, (2, 3, 160, 80) in [0, 1]: fine noise, and broad patches of colour."""
    rng = Randomness.from_seed(0).child("trial")
    noise = rng.child("noise").uniform(1, 3, *_SIZE)
    patches = F.interpolate(
        rng.child("patches").uniform(1, 3, 5, 3), size=_SIZE, mode="bilinear", align_corners=False
    )
    return torch.cat([noise, patches])


@torch.no_grad()
def try_embedder(embedder: Embedder) -> None:
    """Embed two images together and one by one; raises CheckpointError that says what is wrong with the answer."""
    images = trial_images()
    together = embedder.embed(images)
    alone = [embedder.embed(image[None]) for image in images]
    for features, count in ((together, 2), (alone[0], 1), (alone[1], 1)):
        _check_answer(embedder, features, count)
    scale = max(together.abs().max().item(), 1e-12)
    if (together - torch.cat(alone)).abs().max().item() > _TOLERANCE * scale:
        raise CheckpointError(
            f"{embedder.name}: an image's features change with the other images of its batch; "
            "export the network in evaluation mode"
        )
    if (together[0] - together[1]).abs().max().item() <= _SAME * scale:
        raise CheckpointError(
            f"{embedder.name}: two different images get the same features; "
            "are the weights loaded and the normalisation right?"
        )


def _check_answer(embedder: Embedder, features: Tensor, count: int) -> None:
    if features.ndim != 2 or tuple(features.shape) != (count, embedder.dim):
        raise CheckpointError(
            f"{embedder.name}: expected features of shape ({count}, {embedder.dim}) for {count} images, "
            f"but got {tuple(features.shape)}"
        )
    if embedder.dim < 2:
        raise CheckpointError(f"{embedder.name}: expected at least 2 numbers per image, but got {embedder.dim}")
    if not features.isfinite().all():
        raise CheckpointError(
            f"{embedder.name}: the features of a test image hold NaN or infinite values; is the normalisation right?"
        )

"""Who wears what: colours, textures and hues of clothes by place, weighed by a projection that was learned once.

No network: some thousand measurements of a picture, after its own light, and discriminant directions of people who
do not exist. It errs otherwise than networks do, which is what a judge beside one is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.checkpoint import load_checkpoint, save_checkpoint, understood
from veilkit.configs import read_facts
from veilkit.errors import CheckpointError, ConfigError
from veilkit.experts.base import Embedder, ExpertInfo, check_images, refuse_gradient
from veilkit.experts.names import file_sha256, packaged_weights

OUTFITS_KIND = "outfits"
MEASURED = 1016  # numbers of a picture
_SIZE = (128, 64)
_CHUNK = 64  # pictures at a time, which bounds the memory for hues
_SPREAD, _DARK = 0.02, 0.02  # added to a deviation, and to a colour before its logarithm
_SIDES = slice(12, 52)  # columns in which a standing person is
_CELL, _ROWS, _BANDS, _EDGE_ROWS = 8, 16, 8, 12
_LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of quantiles
_HUES, _HUE_WIDTH = torch.linspace(-1, 1, 7), 0.25
_HUE_END = 1.5  # a stronger hue is as strong as this one, lest it be near none


def measured(images: Tensor) -> Tensor:
    """(N, 3, H, W) in [0, 1] -> (N, 1016).

    Colours are about the picture's own mean, in units of its deviation: the mean of each cell of 8 x 8 pixels; of
    each of 16 stripes, quantiles of red, green, blue, red minus green, and blue minus yellow; how much neighbouring
    pixels differ, at three scales; and how often each hue occurs in each of eight bands.
    """
    images = F.interpolate(images, _SIZE, mode="bilinear", antialias=True)
    spread = images.std(dim=(2, 3), keepdim=True) + _SPREAD
    scaled = (images - images.mean(dim=(2, 3), keepdim=True)) / spread
    return torch.cat([*_colours(scaled), *_textures(scaled), *_hues(images)], dim=1)


def _colours(scaled: Tensor) -> list[Tensor]:
    cells = F.avg_pool2d(scaled, _CELL)[..., 1:-1]
    middle = scaled[..., _SIDES]
    stripes = middle.reshape(len(middle), 3, _ROWS, -1).transpose(1, 2)  # (N, rows, 3, pixels)
    red, green, blue = (stripes[:, :, place : place + 1] for place in range(3))
    opponents = torch.cat([stripes, red - green, blue - (red + green) / 2], dim=2)
    quantiles = torch.quantile(opponents, torch.tensor(_LEVELS), dim=3).movedim(0, 1)
    return [cells.flatten(1), quantiles.flatten(1)]


def _textures(scaled: Tensor) -> list[Tensor]:
    found = []
    for step in (1, 2, 4):
        shrunk = F.avg_pool2d(scaled, step)
        grey = shrunk.mean(1, keepdim=True)
        planes = torch.cat([grey, shrunk[:, 0:1] - shrunk[:, 1:2], shrunk[:, 2:3] - grey], dim=1)
        for axis in (3, 2):
            change = planes.diff(dim=axis).abs()
            margin = change.shape[3] // 5
            middle = change[..., margin : change.shape[3] - margin]
            found.append(F.adaptive_avg_pool2d(middle, (_EDGE_ROWS, 1)).flatten(1).sqrt())
    return found


def _hues(images: Tensor) -> list[Tensor]:
    red, green, blue = torch.split(torch.log(images + _DARK), 1, dim=1)
    found = []
    for hue in (red - green, blue - green):
        hue = (hue - hue.mean(dim=(2, 3), keepdim=True)).clamp(-_HUE_END, _HUE_END)
        near = torch.exp(-(((hue[..., _SIDES] - _HUES[:, None, None]) / _HUE_WIDTH) ** 2))
        share = near / near.sum(1, keepdim=True)
        found.append(F.adaptive_avg_pool2d(share, (_BANDS, 1)).flatten(1).sqrt())
    return found


class OutfitsEmbedder(Embedder):
    """The measurements of a picture, projected: weight (D, 1016), bias (D,)."""

    def __init__(self, weight: Tensor, bias: Tensor, info: ExpertInfo) -> None:
        if weight.ndim != 2 or weight.shape[1] != MEASURED or bias.shape != weight.shape[:1]:
            raise ConfigError(
                f"expected a projection (D, {MEASURED}) and (D,), but got {tuple(weight.shape)}, {tuple(bias.shape)}"
            )
        self._weight, self._bias, self._info = weight, bias, info

    @classmethod
    def load(cls, *, flip: bool = False) -> OutfitsEmbedder:
        """The packaged one."""
        if flip:
            raise ConfigError("outfits were learned from both sides of a picture; load it without flip")
        with packaged_weights("outfits", "outfits") as (path, card):
            return load_outfits(path, card)

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is."""
        return self._info

    def embed(self, images: Tensor) -> Tensor:
        """float32 (N, 3, H, W) in [0, 1], any size -> (N, D)."""
        check_images(images)
        refuse_gradient(images, self)
        if not len(images):
            return images.new_zeros(0, self.dim)
        parts = torch.split(images.detach(), _CHUNK)
        return torch.cat([F.linear(measured(part), self._weight, self._bias) for part in parts])


def load_outfits(path: Path, card: str = "") -> OutfitsEmbedder:
    """The projection of a file, as `save_outfits` wrote it."""
    stored = load_checkpoint(path, OUTFITS_KIND)
    with understood(path.name):
        weight, bias = (_tensor(stored.tensors, name, path) for name in ("weight", "bias"))
        taught = read_facts(stored.config, {"taught": str})["taught"]
    info = ExpertInfo(
        "outfits", "embedder", len(bias), file_sha256(path), False, "Apache-2.0", f"veilkit; learned from {taught}",
        origin="built-in", card=card,
    )  # fmt: skip
    return OutfitsEmbedder(weight, bias, info)


def save_outfits(path: Path, weight: Tensor, bias: Tensor, taught: str) -> str:
    """Write a projection and what taught it; returns the SHA-256."""
    return save_checkpoint(path, {"weight": weight, "bias": bias}, {"taught": taught}, OUTFITS_KIND)


def _tensor(tensors: Mapping[str, Any], name: str, path: Path) -> Tensor:
    found = tensors.get(name)
    if not isinstance(found, Tensor) or found.dtype != torch.float32:
        raise CheckpointError(f"{path.name}: expected a tensor {name!r} of 32-bit numbers; it is not an outfits file")
    return found

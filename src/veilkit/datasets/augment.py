"""Augmentation of a training batch: flip, pad and crop, colour, grey, random erasing. Stateless: the node decides."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.rng import Randomness

_LUMA = torch.tensor([0.299, 0.587, 0.114])
_ERASED = torch.tensor([0.485, 0.456, 0.406])  # ImageNet's mean colour: zero after normalisation


@dataclass(frozen=True, slots=True)
class AugmentConfig:
    """How a batch is varied; the defaults are AGW's.

    flip, erase, grey: probabilities. pad: border before the random crop, as a share of the height (10 of 256 pixels).
    jitter: largest relative change of brightness, contrast and saturation. cast: the same of red, green and blue
    each, as by another camera. Erased rectangles cover 2 to 40 % of the image with aspect ratios from 0.3 to 3.3
    (Zhong et al., AAAI 2020).
    """

    flip: float = 0.5
    pad: float = 10 / 256
    erase: float = 0.5
    jitter: float = 0.0
    cast: float = 0.0
    grey: float = 0.0

    def __post_init__(self) -> None:
        for name in ("flip", "erase", "grey"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} must be a probability in [0, 1], but got {getattr(self, name)}")
        for name in ("pad", "jitter", "cast"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} must be in [0, 1), but got {getattr(self, name)}")


def augment(images: Tensor, config: AugmentConfig, rng: Randomness) -> Tensor:
    """uint8 (N, 3, H, W) -> float32 (N, 3, H, W) in [0, 1], varied; the same node gives the same result."""
    generator = rng.numpy()
    varied = images.float().div_(255)
    varied = _flip(varied, config.flip, generator)
    varied = _crop(varied, round(config.pad * images.shape[2]), generator)
    if config.jitter:
        varied = _jitter(varied, config.jitter, generator)
    if config.cast:
        varied = _cast(varied, config.cast, generator)
    if config.grey:
        varied = _grey(varied, config.grey, generator)
    return _erase(varied, config.erase, generator)


def _flip(images: Tensor, probability: float, generator: np.random.Generator) -> Tensor:
    chosen = _chosen(len(images), probability, generator)
    return torch.where(chosen[:, None, None, None], images.flip(3), images)


def _crop(images: Tensor, border: int, generator: np.random.Generator) -> Tensor:
    if border == 0:
        return images
    height, width = images.shape[2:]
    padded = F.pad(images, (border,) * 4)
    corners = generator.integers(0, 2 * border + 1, (len(images), 2))
    return torch.stack(
        [image[:, y : y + height, x : x + width] for image, (y, x) in zip(padded, corners.tolist(), strict=True)]
    )


def _jitter(images: Tensor, strength: float, generator: np.random.Generator) -> Tensor:
    factors = torch.from_numpy(generator.uniform(1 - strength, 1 + strength, (3, len(images), 1, 1, 1))).float()
    images = images * factors[0]
    images = torch.lerp(images.mean((1, 2, 3), keepdim=True), images, factors[1])
    return torch.lerp(_luma(images), images, factors[2]).clamp_(0, 1)


def _cast(images: Tensor, strength: float, generator: np.random.Generator) -> Tensor:
    gains = torch.from_numpy(generator.uniform(1 - strength, 1 + strength, (len(images), 3, 1, 1))).float()
    return (images * gains).clamp_(0, 1)


def _grey(images: Tensor, probability: float, generator: np.random.Generator) -> Tensor:
    chosen = _chosen(len(images), probability, generator)
    return torch.where(chosen[:, None, None, None], _luma(images), images)


def _luma(images: Tensor) -> Tensor:
    return (images * _LUMA[:, None, None]).sum(1, keepdim=True)


def _erase(images: Tensor, probability: float, generator: np.random.Generator) -> Tensor:
    chosen = _chosen(len(images), probability, generator)
    height, width = images.shape[2:]
    areas = generator.uniform(0.02, 0.4, len(images)) * height * width
    aspects = np.exp(generator.uniform(math.log(0.3), math.log(1 / 0.3), len(images)))
    tall = np.clip(np.sqrt(areas * aspects), 1, height).astype(int)
    wide = np.clip(np.sqrt(areas / aspects), 1, width).astype(int)
    tops = generator.integers(0, height - tall + 1)
    lefts = generator.integers(0, width - wide + 1)
    images = images.clone()
    for i in torch.nonzero(chosen).flatten().tolist():
        images[i, :, tops[i] : tops[i] + tall[i], lefts[i] : lefts[i] + wide[i]] = _ERASED[:, None, None]
    return images


def _chosen(count: int, probability: float, generator: np.random.Generator) -> Tensor:
    return torch.from_numpy(generator.random(count) < probability)

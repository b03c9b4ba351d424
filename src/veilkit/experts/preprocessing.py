"""What happens to an image before a network sees it: resize, normalisation, order of the colours."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.lookup import Lookup
from veilkit.networks.reid import IMAGENET_MEAN, IMAGENET_STD

Triple = tuple[float, float, float]
Order = Literal["rgb", "bgr"]
LUMA = (0.299, 0.587, 0.114)  # of red, green and blue (ITU-R BT.601)
_LARGEST = 4096  # pixels a side; a typing error could ask for gigabytes


class Normalisation(NamedTuple):
    """(value - mean) / std, for red, green and blue in [0, 1]."""

    mean: Triple
    std: Triple


NORMALISATIONS: Lookup[Normalisation] = Lookup(
    "normalisation",
    [
        ("none", Normalisation((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))),  # the network expects [0, 1]
        ("imagenet", Normalisation(IMAGENET_MEAN, IMAGENET_STD)),
        ("signed", Normalisation((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))),  # [-1, 1]
        ("bytes", Normalisation((0.0, 0.0, 0.0), (1 / 255, 1 / 255, 1 / 255))),  # [0, 255]
    ],
)


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """How an expert prepares images.

    size: (height, width) that images are resized to. mean, std: for red, green and blue, whatever the order.
    order: in which the network expects the colours.
    """

    size: tuple[int, int]
    mean: Triple
    std: Triple
    order: Order = "rgb"

    def __post_init__(self) -> None:
        if not all(1 <= side <= _LARGEST for side in self.size):
            raise ConfigError(f"an input size must be 1 to {_LARGEST} pixels a side, but got {size_text(self.size)}")
        if not all(map(math.isfinite, (*self.mean, *self.std))) or min(self.std) <= 0:
            raise ConfigError(f"mean must be finite and std positive, but got {self.mean} and {self.std}")

    def __call__(self, images: Tensor) -> Tensor:
        """float32 (N, 3, H, W) in [0, 1] -> (N, 3, *size), normalised; differentiable, the input untouched."""
        if tuple(images.shape[2:]) != self.size:
            images = F.interpolate(images, size=self.size, mode="bilinear", align_corners=False, antialias=True)
        mean, std = (torch.tensor(values, device=images.device)[:, None, None] for values in (self.mean, self.std))
        normalised = (images - mean) / std
        return normalised.flip(1) if self.order == "bgr" else normalised


def size_text(size: tuple[int, int]) -> str:
    """A size as people write it: height x width."""
    return f"{size[0]}x{size[1]}"


def read_size(text: str) -> tuple[int, int]:
    """(height, width) from "HxW".

    >>> read_size("256x128")
    (256, 128)
    """
    found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text.strip().lower())
    if not found:
        raise ConfigError(f"a size must be HEIGHTxWIDTH in pixels, like 256x128, but got {text!r}")
    return int(found[1]), int(found[2])


def read_normalisation(text: str) -> Normalisation:
    """A named normalisation, or six numbers as MEAN,MEAN,MEAN/STD,STD,STD.

    >>> read_normalisation("0.5,0.5,0.5/0.25,0.25,0.25").std
    (0.25, 0.25, 0.25)
    """
    if "/" not in text:
        return NORMALISATIONS[text]
    mean, _, std = text.partition("/")
    return Normalisation(_triple(mean), _triple(std))


def normalisation_text(mean: Triple, std: Triple) -> str:
    """What `read_normalisation` reads: the name where there is one."""
    for name, known in NORMALISATIONS.items():
        if known == (mean, std):
            return name
    return "/".join(",".join(f"{value:g}" for value in values) for values in (mean, std))


def _triple(text: str) -> Triple:
    try:
        red, green, blue = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(
            f"expected three numbers separated by commas (red,green,blue), but got {text!r}; "
            "a normalisation is MEAN,MEAN,MEAN/STD,STD,STD or a name"
        ) from None
    return red, green, blue

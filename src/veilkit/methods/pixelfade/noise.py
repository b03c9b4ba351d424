"""PixelFade's noise: the space in which it is normal, the objective images of the ablations, and the masks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.experts.base import Embedder
from veilkit.methods.pixelfade.config import PixelFadeConfig
from veilkit.rng import Randomness


@dataclass(frozen=True, slots=True)
class Space:
    """inside = (picture - mean) / std, for red, green and blue; mean and std are (3, 1, 1)."""

    mean: Tensor
    std: Tensor

    @classmethod
    def of_pixels(cls, sigma: float) -> Space:
        """Noise around middle grey of standard deviation `sigma` on the scale [0, 1]."""
        return cls(torch.full((3, 1, 1), 0.5), torch.full((3, 1, 1), sigma))

    @classmethod
    def of_expert(cls, expert: Embedder) -> Space:
        """The expert's own normalised space."""
        prepared = expert.info.preprocessing
        if prepared is None:
            raise ConfigError(f"the expert {expert.name!r} has no normalised space of its own: take space=pixel")
        return cls(torch.tensor(prepared.mean)[:, None, None], torch.tensor(prepared.std)[:, None, None])

    def inside(self, picture: Tensor) -> Tensor:
        """(3, H, W) in [0, 1] -> (3, H, W) in this space."""
        return (picture - self.mean) / self.std

    def outside(self, values: Tensor) -> Tensor:
        """(3, H, W) in this space -> the picture, in [0, 1]."""
        return (values * self.std + self.mean).clamp_(0, 1)

    def gradient(self, of_picture: Tensor) -> Tensor:
        """A gradient with respect to the picture -> with respect to the values of this space."""
        return of_picture * self.std

    def valid(self, values: Tensor) -> Tensor:
        """Values cut to what a picture can hold."""
        return torch.minimum(torch.maximum(values, -self.mean / self.std), (1 - self.mean) / self.std)


def objective(original: Tensor, turn: int, space: Space, config: PixelFadeConfig, rng: Randomness) -> Tensor:
    """The objective image (3, H, W) of replacement `turn`, in `space` as `original` is; `rng` is the picture's."""
    if config.objective == "zero":
        return torch.zeros_like(original)
    if config.objective == "contrast":  # Eq. 7: of the values a picture can hold, the farthest
        low, high = space.valid(torch.full_like(original, -1e9)), space.valid(torch.full_like(original, 1e9))
        return torch.where(original - low > high - original, low, high)
    if config.objective == "other":
        return space.inside(_other_person(rng.child("other"), original.shape[1], original.shape[2]))
    noise = rng.child("noise", turn if config.noise == "afresh" else 0).normal(*original.shape)
    mixed = config.noise_weight * noise + (1 - config.noise_weight) * original
    if config.clamp == "image":
        return mixed.clamp(original.min(), original.max())
    return space.valid(mixed)


def mask_numbers(shape: torch.Size, config: PixelFadeConfig, rng: Randomness) -> Tensor:
    """For each value (3, H, W) the number of the mask that it belongs to: disjoint, of equal size, together all."""
    channels, height, width = shape
    per_value = config.masks_per == "value"
    count = (channels if per_value else 1) * height * width
    numbers = torch.from_numpy(rng.child("masks").permutation(count)) % config.masks
    return numbers.reshape(-1, height, width).expand(channels, height, width)


def grained_noise(shape: torch.Size, size: tuple[int, int] | None, rng: Randomness) -> Tensor:
    """Standard normal noise (3, H, W) that is still noise in the expert's eyes.

    An expert that shrinks a picture averages fine noise away, and would be shown a grey ground on which every change
    stands out. Where a picture is larger than the expert's input `size`, half of the variance has grains as large as
    one of the expert's pixels. Each value is N(0, 1) in any case.
    """
    channels, height, width = shape
    fine = rng.child("noise", 0).normal(*shape)
    if size is None or height * width < 2 * size[0] * size[1]:
        return fine
    coarse = rng.child("grain").normal(1, channels, min(size[0], height), min(size[1], width))
    return (fine + F.interpolate(coarse, size=(height, width), mode="nearest")[0]) / 2**0.5


def _other_person(rng: Randomness, height: int, width: int) -> Tensor:
    """A person who does not exist, (3, H, W) in [0, 1]."""
    from veilkit.synthetic.people.render import render_person  # only this ablation pays for its import

    pixels = render_person(rng.integer(0, 2**31), 1, 1, 0, height=max(32, height), width=max(16, width))
    picture = torch.from_numpy(pixels.copy()).permute(2, 0, 1).float().div(255)
    if picture.shape[1:] == (height, width):
        return picture.contiguous()
    return F.interpolate(picture[None], size=(height, width), mode="bilinear", align_corners=False, antialias=True)[0]

"""The space in which pictures are optimised: values shifted and scaled so that noise is standard normal."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.experts.base import Embedder


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

"""A small Vision Transformer (Dosovitskiy et al., ICLR 2021) that returns its tokens as a map."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ViTConfig:
    """size: (height, width) that the position embedding is made for; other sizes interpolate it. patch: in pixels."""

    size: tuple[int, int] = (128, 64)
    patch: int = 8
    width: int = 192
    depth: int = 6
    heads: int = 3

    def __post_init__(self) -> None:
        if any(side % self.patch for side in self.size):
            raise ConfigError(f"size must be a multiple of the patch of {self.patch} pixels, but got {self.size}")
        if self.width % self.heads:
            raise ConfigError(f"width must be a multiple of heads, but got {self.width} and {self.heads}")


class ViT(nn.Module):
    """(N, 3, H, W) -> (N, width, H / patch, W / patch), not negative, as generalised-mean pooling expects."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.channels = config.width
        self.patches = nn.Conv2d(3, config.width, config.patch, config.patch)
        grid = (config.size[0] // config.patch, config.size[1] // config.patch)
        self.positions = nn.Parameter(0.02 * torch.randn(1, config.width, *grid))
        self.layers = nn.Sequential(
            *(
                nn.TransformerEncoderLayer(
                    config.width,
                    config.heads,
                    4 * config.width,
                    dropout=0.0,
                    activation="gelu",
                    batch_first=True,
                    norm_first=True,
                )
                for _ in range(config.depth)
            )
        )
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.width)

    def parts(self) -> list[nn.Module]:
        """The patch embedding and each layer, in the order the image meets them."""
        return [self.patches, *self.layers]

    def forward(self, images: Tensor) -> Tensor:
        """Normalised images to the map of tokens."""
        patches = self.patches(images)
        positions: Tensor = self.positions
        if positions.shape[2:] != patches.shape[2:]:
            positions = F.interpolate(positions, size=patches.shape[2:], mode="bicubic", align_corners=False)
        tokens = (patches + positions).flatten(2).transpose(1, 2)
        out = F.relu(self.head(self.norm(self.layers(tokens))))
        return out.transpose(1, 2).reshape(len(images), self.channels, *patches.shape[2:])

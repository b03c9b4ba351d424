"""MobileStyleGAN: a style of 512 numbers to a face of 1024 x 1024 pixels, by separable convolutions and wavelets.

The shape follows Belousov 2021 (arXiv:2104.04767): seven blocks that double the map by an inverse Haar transform,
each with two depthwise-separable convolutions whose input channels are scaled by the style. Demodulation is a
constant of the trained network and part of its weights, so that every layer works on whole batches.
"""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

STYLE = 512
CHANNELS = (512, 512, 512, 512, 256, 128, 64)
"""Channels at the end of each block, whose map has a side of 8, 16, ..., 512."""
STYLES = 2 + 3 * len(CHANNELS)
"""How many layers take a style: the first convolution, three per block, and the one that ends in a picture."""
_SLOPE = 0.2


def haar_doubled(bands: Tensor) -> Tensor:
    """The inverse Haar transform: (N, 4C, H, W), low band first -> (N, C, 2H, 2W).

    The three high bands of a channel stand together: those of channel c are at C + 3c, C + 3c + 1, C + 3c + 2.
    """
    number, channels, height, width = bands.shape
    channels //= 4
    low, high = bands[:, :channels], bands[:, channels:].reshape(number, channels, 3, height, width)
    rows, columns, both = (high * 0.5).unbind(2)
    top, bottom, left, right = 0.5 * low + rows, 0.5 * low - rows, columns + both, columns - both
    whole = bands.new_empty(number, channels, 2 * height, 2 * width).to(memory_format=torch.channels_last)
    whole[:, :, ::2, ::2], whole[:, :, ::2, 1::2] = top + left, top - left
    whole[:, :, 1::2, ::2], whole[:, :, 1::2, 1::2] = bottom + right, bottom - right
    return whole


class StyleMapping(nn.Module):
    """Noise (N, 512) from a normal distribution -> styles (N, 512)."""

    def __init__(self, depth: int = 8) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(STYLE, STYLE) for _ in range(depth))

    def forward(self, noise: Tensor) -> Tensor:
        """(N, 512) -> (N, 512)."""
        style = noise * torch.rsqrt(noise.square().mean(1, keepdim=True) + 1e-8)
        for layer in self.layers:
            style = F.leaky_relu(layer(style), _SLOPE) * 2**0.5
        return style


class StyledConv(nn.Module):
    """Channels scaled by the style, a convolution (separable but for the first), a fixed noise, a bias."""

    def __init__(self, inputs: int, outputs: int, side: int, *, separable: bool = True) -> None:
        super().__init__()
        self.scale = nn.Linear(STYLE, inputs)
        if separable:
            self.depthwise = nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False)
        size = 1 if separable else 3
        self.pointwise = nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False)
        self.separable = separable
        self.register_buffer("noise", torch.zeros(1, 1, side, side))
        self.bias = nn.Parameter(torch.zeros(1, outputs, 1, 1))

    def forward(self, maps: Tensor, style: Tensor, corner: tuple[int, int] = (0, 0)) -> Tensor:
        """maps: (N, inputs, side, side), or a window of that whose first row and column are `corner`."""
        scale = self.scale(style)[:, :, None, None]
        if self.separable and len(maps) == 1:  # the same, without a pass over the map
            maps = F.conv2d(maps, self.depthwise.weight * scale[0, :, None], padding=1, groups=maps.shape[1])
        else:
            maps = maps * scale
            maps = self.depthwise(maps) if self.separable else maps
        (top, left), (height, width) = corner, maps.shape[2:]
        noise = self.get_buffer("noise")[:, :, top : top + height, left : left + width]
        maps = F.conv2d(maps, self.pointwise.weight, self.bias.flatten(), padding=self.pointwise.padding)
        return F.leaky_relu_(maps.add_(noise), _SLOPE)


class Block(nn.Module):
    """Doubles the map and runs two styled convolutions."""

    def __init__(self, inputs: int, outputs: int, side: int) -> None:
        super().__init__()
        self.up = nn.Linear(STYLE, inputs)
        self.first = StyledConv(inputs // 4, outputs, side)
        self.second = StyledConv(outputs, outputs, side)

    def forward(self, maps: Tensor, styles: Tensor, corner: tuple[int, int] = (0, 0)) -> Tensor:
        """styles: (N, 3, 512). corner: first row and column of the window that maps are, before they are doubled."""
        maps = haar_doubled(maps * self.up(styles[:, 0])[:, :, None, None])
        corner = (2 * corner[0], 2 * corner[1])
        return self.second(self.first(maps, styles[:, 1], corner), styles[:, 2], corner)  # type: ignore[no-any-return]


class ToImage(nn.Module):
    """A map (N, C, H, W) -> a picture (N, 3, 2H, 2W) in [-1, 1], about, by its Haar bands."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.scale = nn.Linear(STYLE, inputs)
        self.bands = nn.Conv2d(inputs, 12, 1)

    def forward(self, maps: Tensor, style: Tensor) -> Tensor:
        """maps: (N, inputs, H, W); style: (N, 512)."""
        return haar_doubled(self.bands(maps * self.scale(style)[:, :, None, None]))


class EarlyImage(nn.Module):
    """The map that a block is given (N, C, H, W) -> a small picture (N, 3, 2H, 2W) in [-1, 1], about.

    The trained network ends in one picture alone, of its last map. This reads one off an earlier map, for a fraction
    of the work: it was fitted to the last picture, shrunk.
    """

    def __init__(self, inputs: int, width: int = 96) -> None:
        super().__init__()
        self.enter = nn.Conv2d(inputs, width, 1)
        self.scale = nn.Linear(STYLE, width)
        self.depthwise = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.pointwise = nn.Conv2d(width, width, 1)
        self.to_image = ToImage(width)

    def forward(self, maps: Tensor, style: Tensor) -> Tensor:
        """maps: (N, inputs, H, W), scaled as the block itself scales them; style: (N, 512)."""
        maps = F.leaky_relu(self.enter(maps) * self.scale(style)[:, :, None, None], _SLOPE)
        maps = maps + F.leaky_relu(self.pointwise(self.depthwise(maps)), _SLOPE)
        return self.to_image(maps, style)  # type: ignore[no-any-return]


EARLY = {128: 4, 256: 5}
"""Sides of small pictures, and the block (from 0) whose input they are read off."""
WINDOWED = 4
"""Blocks that see the whole picture, 64 x 64 at their end, before a window is cut."""


class Synthesis(nn.Module):
    """Styles (N, 512), or one for each layer (N, 23, 512) -> pictures (N, 3, 1024, 1024) in [-1, 1], about.

    channels: of the blocks, the network's own unless a test asks for a small one.
    """

    def __init__(self, channels: tuple[int, ...] = CHANNELS) -> None:
        super().__init__()
        self.channels = channels
        self.constant = nn.Parameter(torch.zeros(1, channels[0], 4, 4))
        self.first = StyledConv(channels[0], channels[0], 4, separable=False)
        inputs = (channels[0], *channels[:-1])
        self.blocks = nn.ModuleList(
            Block(before, after, 8 << index)
            for index, (before, after) in enumerate(zip(inputs, channels, strict=True))
        )
        self.to_image = ToImage(channels[-1])

    def maps(self, styles: Tensor, blocks: int) -> Tensor:
        """The map after so many blocks."""
        maps = self.first(self.constant.expand(len(styles), -1, -1, -1), styles[:, 0])
        for index, block in enumerate(self.blocks[:blocks]):
            maps = block(maps, styles[:, 1 + 3 * index : 4 + 3 * index])
        return maps  # type: ignore[no-any-return]

    def per_layer(self, styles: Tensor) -> Tensor:
        """(N, 512) or (N, L, 512) -> (N, L, 512)."""
        return styles if styles.ndim == 3 else styles[:, None].expand(-1, 2 + 3 * len(self.channels), -1)

    def early(self, styles: Tensor, block: int) -> tuple[Tensor, Tensor]:
        """The map that a block is given, scaled by its style; and that style (N, 512)."""
        styles = self.per_layer(styles)
        style = styles[:, 1 + 3 * block]
        scale = cast(Block, self.blocks[block]).up(style)
        return self.maps(styles, block) * scale[:, :, None, None], style

    def window(self, styles: Tensor, box: tuple[int, int, int, int]) -> Tensor:
        """The part left, top, right, bottom of the pictures, in 64ths of their sides.

        The large maps are made of that part alone, which is most of the work. At its edges convolutions find zeros:
        32 pixels there are not those of the whole picture.
        """
        left, top, right, bottom = box
        styles = self.per_layer(styles)
        maps = self.maps(styles, WINDOWED)[:, :, top:bottom, left:right]
        for index in range(WINDOWED, len(self.blocks)):
            corner = (top << (index - WINDOWED), left << (index - WINDOWED))
            maps = self.blocks[index](maps, styles[:, 1 + 3 * index : 4 + 3 * index], corner)
        return self.to_image(maps, styles[:, -1])  # type: ignore[no-any-return]

    def forward(self, styles: Tensor) -> Tensor:
        """(N, 512) or (N, 23, 512) -> (N, 3, 1024, 1024)."""
        styles = self.per_layer(styles)
        return self.to_image(self.maps(styles, len(self.blocks)), styles[:, -1])  # type: ignore[no-any-return]

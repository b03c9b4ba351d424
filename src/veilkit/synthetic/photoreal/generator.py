"""From random numbers to photoreal faces, by MobileStyleGAN: separable convolutions and wavelets.

The network's shape follows Belousov 2021 (arXiv:2104.04767): a style of 512 numbers to 1024 x 1024 pixels in seven
blocks that double the map by an inverse Haar transform, each with two depthwise-separable convolutions whose input
channels are scaled by the style. Demodulation is a constant of the trained network and part of its weights, so that
every layer works on whole batches.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.errors import ConfigError
from veilkit.rng import Randomness
from veilkit.synthetic.photoreal.weights import mapping_state, synthesis_state

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
    rows, columns, both = high.unbind(2)
    top_left, top_right = low + rows + columns + both, low + rows - columns - both
    bottom_left, bottom_right = low - rows + columns - both, low - rows - columns + both
    quarters = torch.stack((top_left, top_right, bottom_left, bottom_right), 2) * 0.5
    return F.pixel_shuffle(quarters.flatten(1, 2), 2)


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

    def forward(self, maps: Tensor, style: Tensor) -> Tensor:
        """maps: (N, inputs, side, side); style: (N, 512)."""
        maps = maps * self.scale(style)[:, :, None, None]
        if self.separable:
            maps = self.depthwise(maps)
        return F.leaky_relu(self.pointwise(maps) + self.get_buffer("noise") + self.bias, _SLOPE)


class Block(nn.Module):
    """Doubles the map and runs two styled convolutions."""

    def __init__(self, inputs: int, outputs: int, side: int) -> None:
        super().__init__()
        self.up = nn.Linear(STYLE, inputs)
        self.first = StyledConv(inputs // 4, outputs, side)
        self.second = StyledConv(outputs, outputs, side)

    def forward(self, maps: Tensor, styles: Tensor) -> Tensor:
        """styles: (N, 3, 512)."""
        maps = haar_doubled(maps * self.up(styles[:, 0])[:, :, None, None])
        return self.second(self.first(maps, styles[:, 1]), styles[:, 2])  # type: ignore[no-any-return]


class ToImage(nn.Module):
    """A map (N, C, H, W) -> a picture (N, 3, 2H, 2W) in [-1, 1], about, by its Haar bands."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.scale = nn.Linear(STYLE, inputs)
        self.bands = nn.Conv2d(inputs, 12, 1)

    def forward(self, maps: Tensor, style: Tensor) -> Tensor:
        """maps: (N, inputs, H, W); style: (N, 512)."""
        return haar_doubled(self.bands(maps * self.scale(style)[:, :, None, None]))


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

    def forward(self, styles: Tensor) -> Tensor:
        """(N, 512) or (N, 23, 512) -> (N, 3, 1024, 1024)."""
        styles = self.per_layer(styles)
        return self.to_image(self.maps(styles, len(self.blocks)), styles[:, -1])  # type: ignore[no-any-return]


SIDE = 1024
_MEAN_OF = 4096  # styles that the mean style is taken over


class PhotorealFaces:
    """MobileStyleGAN with the weights of the installed package random-face, frozen; gradients reach the styles.

    `mean_style` (512,) is that of the average face. Styles nearer to it look more ordinary and are drawn better.
    """

    def __init__(self) -> None:
        self._mapping, self._synthesis = StyleMapping(), Synthesis()
        self._mapping.load_state_dict(mapping_state())
        self._synthesis.load_state_dict(synthesis_state())
        for network in (self._mapping, self._synthesis):
            network.eval().requires_grad_(requires_grad=False)
        self._synthesis.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        noise = torch.randn(_MEAN_OF, STYLE, generator=torch.Generator().manual_seed(0))
        self.mean_style: Tensor = self._mapping(noise).mean(0)

    def styles(self, noise: Tensor, spread: float = 0.7) -> Tensor:
        """Normal noise (N, 512) -> styles (N, 512). spread: how far from the average face, in (0, 1]."""
        if not 0 < spread <= 1:
            raise ConfigError(f"spread must be above 0 and at most 1, but is {spread}")
        styles: Tensor = self._mapping(noise)
        return self.mean_style + spread * (styles - self.mean_style)

    def random_styles(self, number: int, rng: Randomness, spread: float = 0.7) -> Tensor:
        """Styles of so many faces, the same for the same key or seed."""
        return self.styles(rng.normal(number, STYLE), spread)

    def draw(self, styles: Tensor, side: int = SIDE) -> Tensor:
        """Styles (N, 512), or one per layer (N, 23, 512) -> faces (N, 3, side, side) in [0, 1]."""
        faces: Tensor = (self._synthesis(styles) + 1) / 2
        if side != SIDE:
            faces = F.interpolate(faces, size=(side, side), mode="bilinear", antialias=True, align_corners=False)
        return faces.clamp(0, 1)

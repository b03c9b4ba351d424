"""From random numbers to photoreal faces."""

from __future__ import annotations

from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.rng import Randomness
from veilkit.synthetic.photoreal.network import EARLY, STYLE, StyleMapping, Synthesis
from veilkit.synthetic.photoreal.space import StyleSpace
from veilkit.synthetic.photoreal.weights import mapping_state, synthesis_state

SIDE = 1024
_MARGIN = 2.5  # 64ths of the side around a window
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

    @cached_property
    def space(self) -> StyleSpace:
        """What is known of styles: how they move landmarks, and how small pictures are read off early."""
        return StyleSpace.load()

    def styles(self, noise: Tensor, spread: float = 0.7) -> Tensor:
        """Normal noise (N, 512) -> styles (N, 512). spread: how far from the average face, in (0, 1]."""
        if not 0 < spread <= 1:
            raise ConfigError(f"spread must be above 0 and at most 1, but is {spread}")
        styles: Tensor = self._mapping(noise)
        return self.mean_style + spread * (styles - self.mean_style)

    def random_styles(self, number: int, rng: Randomness, spread: float = 0.7) -> Tensor:
        """Styles of so many faces, the same for the same key or seed."""
        return self.styles(rng.normal(number, STYLE), spread)

    def draw(self, styles: Tensor, side: int = SIDE, *, early: bool = False) -> Tensor:
        """Styles (N, 512), or one per layer (N, 23, 512) -> faces (N, 3, side, side) in [0, 1].

        early: stop at the block that is enough for a side of 128, 256 or 512, in a sixteenth to a third of the time;
        fine texture then differs from that of the whole drawing, shrunk.
        """
        if early and side != SIDE:
            if side not in EARLY:
                raise ConfigError(
                    f"faces can be drawn early at {', '.join(map(str, EARLY))} pixels, but not at {side}"
                )
            drawn: Tensor = self.space.early[side](*self._synthesis.early(styles, EARLY[side]))
            return ((drawn + 1) / 2).clamp(0, 1)
        faces: Tensor = (self._synthesis(styles) + 1) / 2
        if side != SIDE:
            faces = F.interpolate(faces, size=(side, side), mode="bilinear", antialias=True, align_corners=False)
        return faces.clamp(0, 1)

    def draw_window(self, styles: Tensor, box: tuple[float, float, float, float]) -> tuple[Tensor, tuple[int, int]]:
        """The part `box` (left, top, right, bottom, shares of the side) of `draw(styles)`, and where it begins.

        What is returned is some 1/20 larger on all sides, up to the picture's edges; there it is not exact.
        """
        more = [round(64 * edge + sign * _MARGIN) for edge, sign in zip(box, (-1, -1, 1, 1), strict=True)]
        left, top, right, bottom = (min(64, max(0, edge)) for edge in more)
        if right - left < 4 or bottom - top < 4:
            raise ConfigError(f"expected a part of the picture, but got the box {box}")
        drawn = (self._synthesis.window(styles, (left, top, right, bottom)) + 1) / 2
        return drawn.clamp(0, 1), (left * SIDE // 64, top * SIDE // 64)

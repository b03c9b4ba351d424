"""From random numbers to photoreal faces."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.networks.mobile_stylegan import STYLE, StyleMapping, Synthesis
from veilkit.rng import Randomness
from veilkit.synthetic.photoreal.weights import mapping_state, synthesis_state

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

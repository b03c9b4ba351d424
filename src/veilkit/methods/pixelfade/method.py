"""PixelFade: pictures optimised into noise that one authorised expert still matches (docs/methods/pixelfade.md)."""

from __future__ import annotations

from torch import Tensor

from veilkit.methods.expert_guided.method import ExpertBound
from veilkit.methods.expert_guided.scheduler import Optimisation
from veilkit.methods.pixelfade.algorithm1 import fade
from veilkit.methods.pixelfade.config import PAPER, RELEASED, PixelFadeConfig
from veilkit.methods.pixelfade.noise import Space
from veilkit.methods.pixelfade.solver import solve
from veilkit.rng import Randomness


class PixelFade(ExpertBound[PixelFadeConfig]):
    """Noise-guided progressive replacement (Zhang et al., ACM Multimedia 2024).

    Any torch embedder can be the authorised expert. The default is our own solver of the paper's objective; the
    presets `paper` and `released` are Algorithm 1 as printed and as its authors run it. Those may miss their
    threshold for good (a MobileNetV2 did): then only the first replacements happen, and the body's outline stays.
    """

    name = "pixelfade"
    summary = "noise that one authorised expert still matches as if it were the picture"
    default = PixelFadeConfig()
    presets = {"paper": PAPER, "released": RELEASED}  # noqa: RUF012

    @property
    def unit_features(self) -> bool:
        """Whether the threshold is one of such features. Eq. 3 divides by a squared gradient: scale counts."""
        return self.config.threshold_kind == "unit"

    @property
    def needs_spread(self) -> bool:
        """Whether the threshold is a fraction of the spread."""
        return self.config.threshold_kind == "relative"

    @property
    def limit(self) -> float:
        """The threshold as a squared distance between the features of one picture and its original (Eq. 1)."""
        units = {"unit": 1.0, "sum": 1.0, "mean": float(self.authorised.expert.dim)}
        unit = units.get(self.config.threshold_kind)
        return self.config.threshold * (self.spread if unit is None else unit)

    def optimise(self, picture: Tensor, item: str, *, rng: Randomness) -> Optimisation:
        """Our solver, which starts from noise, or Algorithm 1."""
        own, config, limit = rng.child("picture", item), self.config, self.limit
        in_pixels = config.space == "pixel"
        space = Space.of_pixels(config.sigma) if in_pixels else Space.of_expert(self.authorised.expert)
        if config.optimisation == "approach":
            size = self.authorised.size
            return solve(picture, limit=limit, space=space, size=size, config=config, rng=own)
        return fade(picture, limit=limit, space=space, config=config, rng=own)

"""EfficientNet-lite0: EfficientNet-B0 (Tan and Le, ICML 2019, Table 1) without squeeze-and-excitation, with ReLU6."""

from __future__ import annotations

from veilkit.networks.mobile import MobileTrunk, Stage

STAGES = (
    Stage(expansion=1, channels=16, repeats=1, stride=1),
    Stage(expansion=6, channels=24, repeats=2, stride=2),
    Stage(expansion=6, channels=40, repeats=2, stride=2, kernel=5),
    Stage(expansion=6, channels=80, repeats=3, stride=2),
    Stage(expansion=6, channels=112, repeats=3, stride=1, kernel=5),
    Stage(expansion=6, channels=192, repeats=4, stride=2, kernel=5),
    Stage(expansion=6, channels=320, repeats=1, stride=1),
)


def efficientnet_lite0(*, last_stride: int = 1) -> MobileTrunk:
    """EfficientNet-lite0; its batch norms use the original's epsilon of 1e-3."""
    return MobileTrunk(32, STAGES, 1280, last_stride=last_stride, epsilon=1e-3)

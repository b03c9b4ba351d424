"""MobileNetV2 (Sandler et al., CVPR 2018, Table 2)."""

from __future__ import annotations

from veilkit.networks.mobile import MobileTrunk, Stage, divisible

STAGES = (
    Stage(expansion=1, channels=16, repeats=1, stride=1),
    Stage(expansion=6, channels=24, repeats=2, stride=2),
    Stage(expansion=6, channels=32, repeats=3, stride=2),
    Stage(expansion=6, channels=64, repeats=4, stride=2),
    Stage(expansion=6, channels=96, repeats=3, stride=1),
    Stage(expansion=6, channels=160, repeats=3, stride=2),
    Stage(expansion=6, channels=320, repeats=1, stride=1),
)


def mobilenetv2(width: float = 1.0, *, last_stride: int = 1) -> MobileTrunk:
    """MobileNetV2 with `width` times the channels; the last layer keeps its 1280 unless wider."""
    stages = tuple(Stage(s.expansion, divisible(s.channels * width), s.repeats, s.stride, s.kernel) for s in STAGES)
    return MobileTrunk(divisible(32 * width), stages, divisible(1280 * max(1.0, width)), last_stride=last_stride)

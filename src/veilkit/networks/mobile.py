"""The inverted-residual trunk that MobileNetV2 and EfficientNet-lite share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Stage:
    """A row of the papers' tables: `repeats` blocks, of which the first one strides."""

    expansion: int
    channels: int
    repeats: int
    stride: int
    kernel: int = 3


def divisible(channels: float, divisor: int = 8) -> int:
    """The multiple of `divisor` nearest to `channels`, but never more than 10 % below it."""
    nearest = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return nearest + divisor if nearest < 0.9 * channels else nearest


class ConvNorm(nn.Module):
    """Convolution without bias, batch norm, and ReLU6 unless `linear`. Keeps H x W at stride 1, halves it at 2."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        *,
        stride: int = 1,
        groups: int = 1,
        linear: bool = False,
        epsilon: float = 1e-5,
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outputs, eps=epsilon)
        self.activation = nn.Identity() if linear else nn.ReLU6(inplace=True)

    def forward(self, maps: Tensor) -> Tensor:
        """(N, inputs, H, W) -> (N, outputs, H / stride, W / stride)."""
        return cast(Tensor, self.activation(self.norm(self.conv(maps))))


class InvertedResidual(nn.Module):
    """Expand with 1x1, filter each channel, project with a linear 1x1; a shortcut where shapes allow it."""

    def __init__(
        self, inputs: int, outputs: int, *, expansion: int, stride: int, kernel: int, epsilon: float
    ) -> None:
        super().__init__()
        hidden = inputs * expansion
        self.expand = ConvNorm(inputs, hidden, 1, epsilon=epsilon) if expansion > 1 else nn.Identity()
        self.depthwise = ConvNorm(hidden, hidden, kernel, stride=stride, groups=hidden, epsilon=epsilon)
        self.project = ConvNorm(hidden, outputs, 1, linear=True, epsilon=epsilon)
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, maps: Tensor) -> Tensor:
        """(N, inputs, H, W) -> (N, outputs, H / stride, W / stride)."""
        out = cast(Tensor, self.project(self.depthwise(self.expand(maps))))
        return maps + out if self.shortcut else out


class MobileTrunk(nn.Module):
    """Stem, stages of inverted residuals, and a last 1x1 convolution: (N, 3, H, W) -> (N, channels, H / s, W / s).

    s is 32, or 16 with `last_stride` 1, which Re-ID prefers: small pictures keep a map worth pooling.
    """

    def __init__(
        self, stem: int, stages: Sequence[Stage], channels: int, *, last_stride: int = 1, epsilon: float = 1e-5
    ) -> None:
        super().__init__()
        self.channels = channels
        self.stem = ConvNorm(3, stem, 3, stride=2, epsilon=epsilon)
        striding = [i for i, stage in enumerate(stages) if stage.stride == 2]
        blocks, inputs = [], stem
        for i, stage in enumerate(stages):
            stride = last_stride if i == striding[-1] else stage.stride
            for repeat in range(stage.repeats):
                blocks.append(
                    InvertedResidual(
                        inputs,
                        stage.channels,
                        expansion=stage.expansion,
                        stride=stride if repeat == 0 else 1,
                        kernel=stage.kernel,
                        epsilon=epsilon,
                    )
                )
                inputs = stage.channels
        self.blocks = nn.Sequential(*blocks)
        self.head = ConvNorm(inputs, channels, 1, epsilon=epsilon)

    def parts(self) -> list[nn.Module]:
        """The stem, each block and the last convolution, in the order the image meets them."""
        return [self.stem, *self.blocks, self.head]

    def forward(self, images: Tensor) -> Tensor:
        """Normalised images to the last feature map."""
        return cast(Tensor, self.head(self.blocks(self.stem(images))))


_MOBILENETV2 = (
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
    stages = tuple(
        Stage(s.expansion, divisible(s.channels * width), s.repeats, s.stride, s.kernel) for s in _MOBILENETV2
    )
    return MobileTrunk(divisible(32 * width), stages, divisible(1280 * max(1.0, width)), last_stride=last_stride)


# EfficientNet-B0 (Tan and Le, ICML 2019, Table 1) without squeeze-and-excitation, with ReLU6.
_EFFICIENTNET_LITE0 = (
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
    return MobileTrunk(32, _EFFICIENTNET_LITE0, 1280, last_stride=last_stride, epsilon=1e-3)

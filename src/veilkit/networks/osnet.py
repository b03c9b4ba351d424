"""OSNet: omni-scale features by four streams of growing depth, mixed by one shared gate (Zhou et al., ICCV 2019)."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

_STREAMS = 4  # T in the paper
_BASE_CHANNELS = (64, 256, 384, 512)  # Table 1, width 1.0


def _conv_norm(inputs: int, outputs: int, kernel: int = 1, *, stride: int = 1, active: bool = True) -> nn.Sequential:
    layers: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, nn.ReLU(inplace=True)) if active else nn.Sequential(*layers)


def _light_conv(channels: int) -> nn.Sequential:
    """The Lite 3x3 of Section 3.1: a linear 1x1, then one 3x3 filter per channel."""
    return nn.Sequential(
        nn.Conv2d(channels, channels, 1, bias=False),
        nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(inplace=True),
    )


class AggregationGate(nn.Module):
    """A weight in (0, 1) per image and channel, from the stream's global average; one for all streams of a block."""

    def __init__(self, channels: int, reduction: int = 16) -> None:
        super().__init__()
        hidden = max(1, channels // reduction)
        self.weigh = nn.Sequential(
            nn.Linear(channels, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, channels), nn.Sigmoid()
        )

    def forward(self, maps: Tensor) -> Tensor:
        """(N, C, H, W) -> the same, weighted."""
        weights = cast(Tensor, self.weigh(maps.mean((2, 3))))
        return maps * weights[:, :, None, None]


class OmniScaleBlock(nn.Module):
    """Bottleneck of four streams, the t-th of which sees (2t + 1) x (2t + 1) pixels."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        hidden = outputs // 4
        self.reduce = _conv_norm(inputs, hidden)
        self.streams = nn.ModuleList(
            nn.Sequential(*(_light_conv(hidden) for _ in range(depth))) for depth in range(1, _STREAMS + 1)
        )
        self.gate = AggregationGate(hidden)
        self.expand = _conv_norm(hidden, outputs, active=False)
        self.shortcut = _conv_norm(inputs, outputs, active=False) if inputs != outputs else nn.Identity()
        self.activation = nn.ReLU(inplace=True)

    def forward(self, maps: Tensor) -> Tensor:
        """(N, inputs, H, W) -> (N, outputs, H, W)."""
        reduced = self.reduce(maps)
        mixed = self.gate(self.streams[0](reduced))
        for stream in list(self.streams)[1:]:
            mixed = mixed + self.gate(stream(reduced))
        return cast(Tensor, self.activation(self.expand(mixed) + self.shortcut(maps)))


class OSNet(nn.Module):
    """OSNet with `width` times the channels: (N, 3, H, W) -> (N, 512 * width, H / 16, W / 16)."""

    def __init__(self, width: float = 1.0) -> None:
        super().__init__()
        stem, *stages = (int(channels * width) for channels in _BASE_CHANNELS)
        self.channels = stages[-1]
        self.stem = nn.Sequential(_conv_norm(3, stem, 7, stride=2), nn.MaxPool2d(3, 2, 1))
        blocks: list[nn.Module] = []
        inputs = stem
        for i, outputs in enumerate(stages):
            blocks += [OmniScaleBlock(inputs, outputs), OmniScaleBlock(outputs, outputs)]
            if i < len(stages) - 1:
                blocks.append(nn.Sequential(_conv_norm(outputs, outputs), nn.AvgPool2d(2, 2)))
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = _conv_norm(inputs, inputs)

    def parts(self) -> list[nn.Module]:
        """The stem, each block and the last convolution, in the order the image meets them."""
        return [self.stem, *self.blocks, self.head]

    def forward(self, images: Tensor) -> Tensor:
        """Normalised images to the last feature map."""
        return cast(Tensor, self.head(self.blocks(self.stem(images))))

"""Discriminators at several scales that also show their features (pix2pixHD, Wang et al., CVPR 2018).

Unlike `patchgan`, they see one picture and not a pair: with the original beside it, an honest swap would never look
real.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.configs import check_range
from veilkit.networks.pix2pix import start_normal

GanLoss: TypeAlias = Literal["hinge", "log"]


@dataclass(frozen=True, slots=True)
class CriticsConfig:
    """count: discriminators (k_d), each on a picture half as large as the one before.

    width: channels after the first layer, which double up to 8 times. layers: halvings of each.
    """

    count: int = 2
    width: int = 64
    layers: int = 4

    def __post_init__(self) -> None:
        for name, most in (("count", 8), ("width", 1024), ("layers", 8)):
            check_range(name, getattr(self, name), 1, most)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """logits: (N, 1, h, w), positive where a patch looks real. features: the maps after each layer, first to last."""

    logits: Tensor
    features: tuple[Tensor, ...]


class Critic(nn.Module):
    """One discriminator: strided convolutions with instance norm and leaky rectifiers."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        widths = [width * min(1 << level, 8) for level in range(layers + 1)]
        stages: list[nn.Module] = [nn.Sequential(nn.Conv2d(3, widths[0], 4, 2, 2), nn.LeakyReLU(0.2))]
        for level in range(1, layers + 1):
            stride = 2 if level < layers else 1
            stages.append(
                nn.Sequential(
                    nn.Conv2d(widths[level - 1], widths[level], 4, stride, 2),
                    nn.InstanceNorm2d(widths[level]), nn.LeakyReLU(0.2),
                )
            )  # fmt: skip
        self.stages = nn.ModuleList(stages)
        self.answer = nn.Conv2d(widths[-1], 1, 4, 1, 2)
        start_normal(self)

    def forward(self, images: Tensor) -> Judged:
        """Images (N, 3, H, W) in [0, 1]."""
        maps, features = 2 * images - 1, []
        for stage in self.stages:
            maps = stage(maps)
            features.append(maps)
        return Judged(self.answer(maps), tuple(features))


class Critics(nn.Module):
    """All discriminators."""

    def __init__(self, config: CriticsConfig) -> None:
        super().__init__()
        self.config = config
        self.each = nn.ModuleList(Critic(config.width, config.layers) for _ in range(config.count))
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing from torch's stubs

    def forward(self, images: Tensor) -> tuple[Judged, ...]:
        """What each says of images (N, 3, H, W) in [0, 1]."""
        judged = []
        for critic in self.each:
            judged.append(cast(Judged, critic(images)))
            images = F.avg_pool2d(images, 3, 2, 1, count_include_pad=False)
        return tuple(judged)


def critic_loss(real: tuple[Judged, ...], made: tuple[Judged, ...], kind: GanLoss) -> Tensor:
    """What the discriminators minimise, a sum over them: the hinge, or -log D(real) - log(1 - D(made))."""
    if kind == "hinge":
        terms = [F.relu(1 - r.logits).mean() + F.relu(1 + m.logits).mean() for r, m in zip(real, made, strict=True)]
    else:
        terms = [F.softplus(-r.logits).mean() + F.softplus(m.logits).mean() for r, m in zip(real, made, strict=True)]
    return torch.stack(terms).sum()


def fooling_loss(made: tuple[Judged, ...], kind: GanLoss) -> Tensor:
    """What the swapper minimises: -D under the hinge; log(1 - D), as printed (Eq. 3), which saturates."""
    terms = [-m.logits.mean() if kind == "hinge" else -F.softplus(m.logits).mean() for m in made]
    return torch.stack(terms).sum()


def weak_feature_matching(real: tuple[Judged, ...], made: tuple[Judged, ...], skip: int = 2) -> Tensor:
    """Mean L1 between features of two pictures, a sum over the discriminators; the first `skip` layers are left free.

    SimSwap's weak form: deep layers hold pose and expression, shallow ones the texture that a swap must change.
    """
    terms = []
    for r, m in zip(real, made, strict=True):
        pairs = list(zip(r.features, m.features, strict=True))[min(skip, len(r.features) - 1) :]
        terms.append(torch.stack([F.l1_loss(b, a.detach()) for a, b in pairs]).mean())
    return torch.stack(terms).sum()

"""Folding changes speed, never what a network computes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from veilkit.experts.folding import fold_conv_norm, folded_copy
from veilkit.networks.backbones import build_backbone
from veilkit.networks.resnet import NonLocalBlock, ResidualBlock

IMAGES = torch.rand(2, 3, 32, 16, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", ["mobilenetv2-x0.5", "osnet-x0.25", "resnet18"])
def test_no_batch_norm_of_a_convolution_is_left(name: str) -> None:
    network = build_backbone(name).eval()
    norms = sum(isinstance(module, nn.BatchNorm2d) for module in network.modules())
    assert fold_conv_norm(network) == norms > 0
    assert not any(isinstance(module, nn.BatchNorm2d) for module in network.modules())


@pytest.mark.parametrize("ibn", [False, True])
def test_parts_of_a_deep_network_compute_the_same(ibn: bool) -> None:
    """By parts, because a deep network of random weights blows rounding up."""
    torch.manual_seed(0)
    parts = nn.Sequential(
        ResidualBlock(3, 8, stride=2, bottleneck=True, ibn=ibn),
        NonLocalBlock(32),
    )
    for module in parts.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2.0)
    parts.eval()
    wanted = parts(IMAGES)
    assert fold_conv_norm(parts) >= (3 if ibn else 4)
    assert (parts(IMAGES) - wanted).abs().max() <= 1e-4 * wanted.abs().max()


class Plain(nn.Module):
    """A convolution and its norm, whose statistics are not the initial ones."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.norm.running_mean.fill_(2.0)
        self.norm.running_var.fill_(3.0)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(maps))


class Forked(Plain):
    """The convolution's output is used with and without the norm."""

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        maps = self.conv(maps)
        return maps + self.norm(maps)


class Shared(Plain):
    """One convolution, called twice, with a norm after the first call only."""

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return self.conv(maps * 2) + self.norm(self.conv(maps))


class Branching(Plain):
    """The path depends on the values, so that it cannot be traced."""

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(maps)) if maps.mean() > 0 else maps


class Owner(nn.Module):
    """Cannot be traced itself, unlike its part."""

    def __init__(self) -> None:
        super().__init__()
        self.part = Plain()

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return self.part(maps) if len(maps) else maps


class Reacher(Owner):
    """Calls into its part past the part's own forward, which folding cannot know."""

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return self.part.conv(maps) if len(maps) else maps


class Twins(Owner):
    """Two names for one part."""

    def __init__(self) -> None:
        super().__init__()
        self.twin = self.part


@pytest.mark.parametrize(
    ("kind", "folds"), [(Plain, 1), (Owner, 1), (Forked, 0), (Shared, 0), (Branching, 0), (Twins, 0)]
)
def test_only_what_is_safe_is_folded(kind: type[nn.Module], folds: int) -> None:
    network = kind().eval()
    wanted = network(IMAGES)
    assert fold_conv_norm(network) == folds
    torch.testing.assert_close(network(IMAGES), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [Plain, Owner, Reacher])
def test_a_copy_is_always_right_and_the_original_untouched(kind: type[nn.Module]) -> None:
    network = kind().eval()
    wanted = network(IMAGES)
    torch.testing.assert_close(folded_copy(network, IMAGES[:1])(IMAGES), wanted, rtol=1e-5, atol=1e-5)
    assert torch.equal(network(IMAGES), wanted)
    assert sum(isinstance(module, nn.BatchNorm2d) for module in network.modules()) == 1

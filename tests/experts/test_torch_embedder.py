"""The frozen, folded expert says the same as the network it was made of."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.experts.conftest import settled_network
from veilkit.errors import CheckpointError, DataError
from veilkit.experts.base import ExpertInfo
from veilkit.experts.digest import file_sha256
from veilkit.experts.folding import fold_conv_norm
from veilkit.experts.torch_embedder import TorchEmbedder
from veilkit.networks.backbones import BACKBONES
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, load_reid

IMAGES = torch.rand(3, 3, 50, 30, generator=torch.Generator().manual_seed(1))


def expert_of(network: ReidNetwork, **options: object) -> TorchEmbedder:
    info = ExpertInfo("test", "embedder", network.embed(IMAGES[:1]).shape[1], "0" * 64, True, "none", "", "file")
    return TorchEmbedder(network, info, **options)


@pytest.mark.parametrize("backbone", list(BACKBONES))
def test_features_and_gradients_equal_the_unfolded_networks(backbone: str) -> None:
    network = settled_network(ReidNetworkConfig(backbone, (32, 16)))
    before = copy.deepcopy(network.state_dict())
    expert = expert_of(network)
    wanted_at, got_at = IMAGES.clone().requires_grad_(), IMAGES.clone().requires_grad_()

    wanted, got = network.embed(wanted_at), expert.embed(got_at)
    assert wanted.std(0).mean() > 0.01 * wanted.abs().max()  # else any constant would pass
    (wanted_slope,) = torch.autograd.grad(wanted.square().mean(), wanted_at)
    (got_slope,) = torch.autograd.grad(got.square().mean(), got_at)

    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4 * wanted.abs().max().item())
    torch.testing.assert_close(got_slope, wanted_slope, rtol=1e-3, atol=1e-3 * wanted_slope.abs().max().item())
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())


@pytest.mark.parametrize("backbone", ["mobilenetv2", "osnet-x0.25", "resnet18", "resnet50-agw"])
def test_no_batch_norm_of_a_convolution_is_left(backbone: str) -> None:
    network = ReidNetwork(ReidNetworkConfig(backbone, (32, 16))).eval().backbone
    norms = sum(isinstance(module, nn.BatchNorm2d) for module in network.modules())
    assert fold_conv_norm(network) == norms > 0
    assert not any(isinstance(module, nn.BatchNorm2d) for module in network.modules())


class Forked(nn.Module):
    """The convolution's output is used with and without the norm."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)
        self.norm.running_mean.fill_(2.0)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        maps = self.conv(maps)
        return maps + self.norm(maps)


class Shared(Forked):
    """One convolution, called twice, with a norm after the first call only."""

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return self.conv(maps * 2) + self.norm(self.conv(maps))


class Branching(Forked):
    """The path depends on the values, so that it cannot be traced."""

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(maps)) if maps.mean() > 0 else maps


@pytest.mark.parametrize("kind", [Forked, Shared, Branching])
def test_what_cannot_be_folded_stays(kind: type[nn.Module]) -> None:
    network = kind().eval()
    wanted = network(IMAGES)
    assert fold_conv_norm(network) == 0
    assert torch.equal(network(IMAGES), wanted)


def test_nothing_of_the_expert_learns_or_changes() -> None:
    expert = expert_of(settled_network(ReidNetworkConfig("mobilenetv2-x0.5", (32, 16))))
    images = IMAGES.clone().requires_grad_()
    first = expert.embed(images)
    first.sum().backward()
    network = expert._network
    assert not network.training
    assert all(not p.requires_grad and p.grad is None for p in network.parameters())
    assert torch.equal(expert.embed(IMAGES), first)
    assert torch.equal(images.detach(), IMAGES)


def test_chunks_change_nothing_but_rounding() -> None:
    network = settled_network(ReidNetworkConfig("mobilenetv2-x0.5", (32, 16)))
    images = torch.rand(7, 3, 32, 16, generator=torch.Generator().manual_seed(2))
    whole, chunked = (expert_of(network, batch_size=size).embed(images) for size in (64, 3))
    torch.testing.assert_close(chunked, whole, rtol=1e-4, atol=1e-5)
    assert expert_of(network).embed(images[:0]).shape == (0, whole.shape[1])


def test_flip_averaging_makes_mirror_images_equal() -> None:
    network = settled_network(ReidNetworkConfig("mobilenetv2-x0.5", (32, 16)))
    images = torch.rand(2, 3, 32, 16, generator=torch.Generator().manual_seed(3))
    plain, flipped = expert_of(network), expert_of(network, flip=True)
    torch.testing.assert_close(flipped.embed(images), flipped.embed(images.flip(3)))
    assert not torch.allclose(plain.embed(images), plain.embed(images.flip(3)), atol=1e-3)


def test_loaded_from_a_model_file(reid_file: Path) -> None:
    expert = TorchEmbedder.load(reid_file)
    wanted = load_reid(reid_file).embed(IMAGES)
    assert (expert.name, expert.dim, expert.differentiable) == ("walkers", 48, True)
    assert expert.sha256 == file_sha256(reid_file)
    assert expert.info.preprocessing is not None
    assert expert.info.preprocessing.size == (64, 32)
    torch.testing.assert_close(expert.embed(IMAGES), wanted, rtol=1e-4, atol=1e-4)


def test_other_files_and_other_tensors_are_refused(reid_file: Path, tmp_path: Path) -> None:
    expert = TorchEmbedder.load(reid_file)
    for wrong in (IMAGES[0], IMAGES.double(), (IMAGES * 255).byte(), IMAGES[:, :1]):
        with pytest.raises(DataError, match=r"float32 tensor of shape \(N, 3, H, W\)"):
            expert.embed(wrong)
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(reid_file.read_bytes()[:-1] + b"\xff")
    with pytest.raises(CheckpointError):
        TorchEmbedder.load(damaged)

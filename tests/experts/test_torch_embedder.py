"""A frozen, folded expert says the same as the network or the module it was made of."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.experts.conftest import settled_network
from veilkit.errors import CheckpointError, ConfigError, DataError
from veilkit.experts.base import ExpertInfo
from veilkit.experts.names import file_sha256
from veilkit.experts.preprocessing import Preprocessing
from veilkit.experts.torch_embedder import ModuleEmbedder, TorchEmbedder, fold_conv_norm, folded_copy
from veilkit.experts.trial import try_embedder
from veilkit.networks.backbones import build_backbone
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, load_reid, save_reid
from veilkit.networks.resnet import NonLocalBlock, ResidualBlock

COARSE = torch.rand(3, 3, 5, 3, generator=torch.Generator().manual_seed(1))
IMAGES = torch.nn.functional.interpolate(COARSE, size=(50, 30))


def expert_of(network: ReidNetwork, **options: object) -> TorchEmbedder:
    info = ExpertInfo("test", "embedder", network.embed(IMAGES[:1]).shape[1], "0" * 64, True, "none", "", "file")
    return TorchEmbedder(network, info, **options)


@pytest.mark.parametrize(
    "backbone", ["mobilenetv2-x0.5", "efficientnet-lite0", "osnet-x0.25", "resnet18", "vit-small"]
)
def test_features_and_gradients_equal_the_unfolded_networks(backbone: str) -> None:
    network = settled_network(ReidNetworkConfig(backbone, (32, 16)))
    before = copy.deepcopy(network.state_dict())
    expert = expert_of(network)
    wanted_at, got_at = IMAGES.clone().requires_grad_(), IMAGES.clone().requires_grad_()

    wanted, got = network.embed(wanted_at), expert.embed(got_at)
    assert wanted.std(0).mean() > 0.01 * wanted.abs().max()  # else any constant would pass
    (wanted_slope,) = torch.autograd.grad(wanted.square().mean(), wanted_at)
    (got_slope,) = torch.autograd.grad(got.square().mean(), got_at)

    assert (got - wanted).abs().max() <= 1e-4 * wanted.abs().max()
    # Rounding moves a few activations across a kink, where the slope jumps: compare the whole, not each pixel.
    assert (got_slope - wanted_slope).norm() <= 1e-2 * wanted_slope.norm()
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())


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
    torch.testing.assert_close(flipped.embed(images), (plain.embed(images) + plain.embed(images.flip(3))) / 2)
    assert (plain.info.flip, flipped.info.flip) == (False, True)


def test_loaded_from_a_model_file(reid_file: Path) -> None:
    expert = TorchEmbedder.load(reid_file)
    wanted = load_reid(reid_file).embed(IMAGES)
    assert (expert.name, expert.dim, expert.differentiable) == ("walkers", 48, True)
    assert expert.sha256 == file_sha256(reid_file)
    assert expert.info.preprocessing is not None
    assert expert.info.preprocessing.size == (64, 32)
    assert (expert.embed(IMAGES) - wanted).abs().max() <= 1e-4 * wanted.abs().max()


def test_projected_features_are_given_in_their_own_length(tmp_path: Path) -> None:
    network = settled_network(ReidNetworkConfig("osnet-x0.25", (32, 16), feature="pooled"))
    length = network.embed(IMAGES).shape[1]
    weight, bias = torch.rand(5, length, generator=torch.Generator().manual_seed(2)), torch.rand(5)
    save_reid(tmp_path / "model.safetensors", network.projected(weight, bias))
    expert = TorchEmbedder.load(tmp_path / "model.safetensors", name="t", licence="none", source="", origin="file")
    assert expert.dim == 5
    wanted = network.embed(IMAGES) @ weight.T + bias
    assert torch.allclose(expert.embed(IMAGES), wanted, atol=1e-3)


def test_other_files_and_other_tensors_are_refused(reid_file: Path, tmp_path: Path) -> None:
    expert = TorchEmbedder.load(reid_file)
    for wrong in (IMAGES[0], IMAGES.double(), (IMAGES * 255).byte(), IMAGES[:, :1]):
        with pytest.raises(DataError, match=r"float32 tensor of shape \(N, 3, H, W\)"):
            expert.embed(wrong)
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(reid_file.read_bytes()[:-1] + b"\xff")
    with pytest.raises(CheckpointError):
        TorchEmbedder.load(damaged)


PREPARED = Preprocessing((12, 8), (0.5, 0.4, 0.3), (0.2, 0.25, 0.5))


class Small(nn.Module):
    def __init__(self, channels: int = 3) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.conv, self.norm = nn.Conv2d(channels, 5, 3), nn.BatchNorm2d(5)
            self.norm.running_mean = torch.rand(5)

    def forward(self, images: Tensor) -> Tensor:
        return self.norm(self.conv(images)).relu().mean((2, 3))


def images(height: int = 12, width: int = 8) -> Tensor:
    return torch.rand(3, 3, height, width, generator=torch.Generator().manual_seed(1))


def test_the_module_sees_normalised_images_in_evaluation_mode() -> None:
    module = Small().train()
    expert = ModuleEmbedder(module, PREPARED)
    mean, std = torch.tensor(PREPARED.mean).view(3, 1, 1), torch.tensor(PREPARED.std).view(3, 1, 1)
    wanted = Small().eval()((images() - mean) / std)
    assert torch.allclose(expert.embed(images()), wanted, atol=1e-5)
    assert module.training  # the caller's own is left as it was
    assert expert.dim == 5
    try_embedder(expert)


def test_one_channel_is_the_luma() -> None:
    expert = ModuleEmbedder(Small(1), PREPARED, channels=1)
    red, green, blue = images().unbind(1)
    luma = (0.299 * red + 0.587 * green + 0.114 * blue)[:, None]
    assert torch.allclose(expert.embed(images()), Small(1).eval()((luma - 0.5) / 0.2), atol=1e-5)


def test_mirror_images_are_averaged_and_gradients_pass() -> None:
    expert = ModuleEmbedder(Small(), PREPARED, flip=True)
    leaf = images(20, 9).requires_grad_()
    features = expert.embed(leaf)
    assert torch.allclose(features, expert.embed(leaf.flip(3)), atol=1e-5)
    features.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.abs().sum() > 0


def test_other_weights_are_another_expert() -> None:
    other = Small()
    with torch.no_grad():
        other.conv.weight[0, 0, 0, 0] += 1
    digests = {ModuleEmbedder(module, PREPARED).sha256 for module in (Small(), Small(), other)}
    assert len(digests) == 2


def test_a_module_that_gives_no_vectors_is_refused() -> None:
    with pytest.raises(ConfigError, match="one image gave"):
        ModuleEmbedder(nn.Conv2d(3, 2, 1), PREPARED)


def test_a_module_of_other_images_is_refused_with_what_to_check() -> None:
    with pytest.raises(ConfigError, match=r"takes images \(1, 3, 12, 8\).*check channels"):
        ModuleEmbedder(Small(channels=1), PREPARED)


MAPS = torch.rand(2, 3, 32, 16, generator=torch.Generator().manual_seed(1))


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
    wanted = parts(MAPS)
    assert fold_conv_norm(parts) >= (3 if ibn else 4)
    assert (parts(MAPS) - wanted).abs().max() <= 1e-4 * wanted.abs().max()


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
    wanted = network(MAPS)
    assert fold_conv_norm(network) == folds
    torch.testing.assert_close(network(MAPS), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [Plain, Owner, Reacher])
def test_a_copy_is_always_right_and_the_original_untouched(kind: type[nn.Module]) -> None:
    network = kind().eval()
    wanted = network(MAPS)
    torch.testing.assert_close(folded_copy(network, MAPS[:1])(MAPS), wanted, rtol=1e-5, atol=1e-5)
    assert torch.equal(network(MAPS), wanted)
    assert sum(isinstance(module, nn.BatchNorm2d) for module in network.modules()) == 1

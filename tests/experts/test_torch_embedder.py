"""The frozen, folded expert says the same as the network it was made of."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from tests.experts.conftest import settled_network
from veilkit.errors import CheckpointError, DataError
from veilkit.experts.base import ExpertInfo
from veilkit.experts.torch_embedder import TorchEmbedder
from veilkit.experts.weights_files import file_sha256
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, load_reid, save_reid

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

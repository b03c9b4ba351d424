"""The Re-ID network: its own normalisation and size, bands, and a model file that gives the same features back."""

from dataclasses import replace

import pytest
import torch

from veilkit.checkpoint import load_checkpoint, save_checkpoint
from veilkit.errors import CheckpointError, ConfigError
from veilkit.networks.reid import REID_KIND, ReidNetwork, ReidNetworkConfig, load_reid, save_reid, split_bands

CONFIG = ReidNetworkConfig(backbone="osnet-x0.25", size=(64, 32), identities=7)
IMAGES = torch.rand(3, 3, 64, 32, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return ReidNetwork(CONFIG).eval()


@torch.no_grad()
def test_features_logits_and_embedding_have_their_shapes(network):
    output = network(IMAGES)
    assert [tuple(t.shape) for t in output.pooled] == [(3, 128)]
    assert [tuple(t.shape) for t in output.logits] == [(3, 7)]
    assert network.embed(IMAGES).shape == (3, 128)


@torch.no_grad()
def test_any_image_size_is_taken(network):
    flat = torch.full((1, 3, 50, 90), 0.25)
    assert torch.allclose(network.embed(flat), network.embed(torch.full((1, 3, 64, 32), 0.25)), atol=1e-5)


def test_embedding_is_differentiable_to_the_image(network):
    images = IMAGES.clone().requires_grad_()
    network.embed(images).square().sum().backward()
    assert images.grad.abs().max() > 0


@torch.no_grad()
def test_normalisation_is_inside():
    torch.manual_seed(1)
    plain = ReidNetwork(replace(CONFIG, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))).eval()
    own = ReidNetwork(replace(CONFIG, mean=(0.1, 0.2, 0.3), std=(0.5, 0.25, 2.0))).eval()
    own.load_state_dict(plain.state_dict())
    by_hand = (IMAGES - torch.tensor([0.1, 0.2, 0.3])[:, None, None]) / torch.tensor([0.5, 0.25, 2.0])[:, None, None]
    assert torch.allclose(own.embed(IMAGES), plain.embed(by_hand), atol=1e-5)


def test_cosine_logits_are_scaled_cosines():
    torch.manual_seed(2)
    network = ReidNetwork(replace(CONFIG, cosine=20.0)).eval()
    with torch.no_grad():
        features, weights = network.embed(IMAGES), network.heads[0].classifier.weight
        cosines = torch.nn.functional.cosine_similarity(features[:, None], weights[None], dim=2)
        assert torch.allclose(network(IMAGES).logits[0], 20 * cosines, atol=1e-4)


def test_bands_add_features():
    network = ReidNetwork(replace(CONFIG, bands=(1, 2), reduced=16)).eval()
    with torch.no_grad():
        assert network.embed(IMAGES).shape == (3, 3 * 16)
        assert len(network(IMAGES).logits) == 3


@pytest.mark.parametrize(("height", "count"), [(8, 2), (8, 3), (5, 3), (4, 4)])
def test_bands_cover_the_map_once(height, count):
    maps = torch.rand(1, 2, height, 3)
    bands = split_bands(maps, count)
    assert len(bands) == count
    assert torch.equal(torch.cat(bands, 2), maps)
    assert max(b.shape[2] for b in bands) - min(b.shape[2] for b in bands) <= 1


def test_neck_and_classifier_learn_no_bias(network):
    learned = {name for name, parameter in network.named_parameters() if parameter.requires_grad}
    assert "heads.0.neck.weight" in learned
    assert "heads.0.neck.bias" not in learned
    assert "heads.0.classifier.bias" not in learned


@torch.no_grad()
def test_model_file_gives_the_same_features(network, tmp_path):
    path = tmp_path / "m.safetensors"
    sha256 = save_reid(path, network)
    loaded = load_reid(path, sha256)
    assert loaded.config.identities == 0
    assert torch.allclose(loaded.embed(IMAGES), network.embed(IMAGES), atol=1e-5)
    assert not any("classifier" in name for name in load_checkpoint(path, REID_KIND).tensors)


@torch.no_grad()
def test_half_size_file_is_near(network, tmp_path):
    whole, half = tmp_path / "whole.safetensors", tmp_path / "half.safetensors"
    save_reid(whole, network)
    save_reid(half, network, half=True)
    assert half.stat().st_size < 0.7 * whole.stat().st_size
    similar = torch.cosine_similarity(load_reid(half).embed(IMAGES), network.embed(IMAGES))
    assert similar.min() > 0.999


def test_file_of_another_architecture_is_refused(network, tmp_path):
    path = tmp_path / "m.safetensors"
    save_reid(path, network)
    content = load_checkpoint(path, REID_KIND)
    save_checkpoint(path, content.tensors, {**content.config, "backbone": "osnet-x0.5"}, REID_KIND)
    with pytest.raises(CheckpointError, match="do not fit"):
        load_reid(path)
    save_checkpoint(path, content.tensors, {"depth": 3}, REID_KIND)
    with pytest.raises(CheckpointError, match="not understood"):
        load_reid(path)


@pytest.mark.parametrize(
    "wrong", [{"size": (8, 8)}, {"last_stride": 3}, {"bands": ()}, {"bands": (0,)}, {"reduced": -1}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ConfigError):
        replace(CONFIG, **wrong)

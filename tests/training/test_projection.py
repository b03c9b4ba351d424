"""The discriminant projection: evens out a person's own spread, tells people apart, and is kept in the file."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.training.test_reid import TINY, write_people
from veilkit.errors import ConfigError, DataError
from veilkit.metrics import retrieval
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, load_reid, save_reid
from veilkit.training.reid import train_reid
from veilkit.training.reid_run import discriminant, project
from veilkit.training.retrieval import embed_pixels


def sample(people=30, shots=12, seed=0):
    """Six of 20 axes tell people apart; two others vary strongly from shot to shot."""
    generator = torch.Generator().manual_seed(seed)
    codes = torch.arange(people).repeat_interleave(shots)
    features = 0.3 * torch.randn(len(codes), 20, generator=generator)
    features[:, :6] += torch.randn(people, 6, generator=generator)[codes]
    features[:, 6:8] += 8 * torch.randn(len(codes), 2, generator=generator)
    return features + 5, codes


def test_people_spread_evenly_and_the_mean_is_zero():
    features, people = sample()
    weight, bias = discriminant(features, people, 2, shrinkage=1e-6)
    projected = features @ weight.T + bias
    assert torch.allclose(projected.mean(0), torch.zeros(2), atol=1e-4)
    means = torch.stack([projected[people == code].mean(0) for code in people.unique()])
    within = (projected - means[people]).T @ (projected - means[people]) / len(people)
    assert torch.allclose(within, torch.eye(2), atol=0.02)
    # Only the axes that belong to people count.
    assert (weight[:, :6].norm() / weight.norm()) > 0.95


def test_new_people_are_found_better():
    weight, bias = discriminant(*sample(), count=6, shrinkage=0.1)
    features, people = sample(seed=1)
    ask = np.arange(len(people)) % 12 == 0
    before, after = (
        retrieval(f[ask], f[~ask], people.numpy()[ask], people.numpy()[~ask]).rank(1)
        for f in (features.numpy(), (features @ weight.T + bias).numpy())
    )
    assert after > before + 0.2


def test_no_more_directions_than_there_can_be():
    features, people = sample(people=5)
    weight, bias = discriminant(features, people, 64, shrinkage=0.5)
    assert weight.shape == (4, 20)
    assert bias.shape == (4,)


@pytest.mark.parametrize("people", [torch.zeros(6, dtype=torch.int64), torch.arange(6)])
def test_one_person_or_one_picture_each_is_refused(people):
    with pytest.raises(DataError, match="several images of at least two people"):
        discriminant(torch.rand(6, 3), people, 2, 0.5)


def test_the_network_projects_as_the_formula_says_and_its_file_too(tmp_path):
    torch.manual_seed(0)
    network = ReidNetwork(ReidNetworkConfig("osnet-x0.25", (32, 16), feature="pooled")).eval()
    pixels = torch.randint(0, 256, (12, 3, 32, 16), dtype=torch.uint8)
    people = torch.arange(4).repeat_interleave(3)
    projected = project(network, pixels, people, 2, 0.5)
    features = torch.cat([embed_pixels(network, each, flip=False) for each in (pixels, pixels.flip(3))])
    weight, bias = discriminant(features, people.repeat(2), 2, 0.5)
    assert torch.allclose(embed_pixels(projected, pixels, flip=False), features[:12] @ weight.T + bias, atol=1e-3)
    save_reid(tmp_path / "model.safetensors", projected)
    again = load_reid(tmp_path / "model.safetensors")
    assert again.config.projection == 2
    assert torch.allclose(embed_pixels(again, pixels), embed_pixels(projected, pixels), atol=1e-4)


def test_a_recipe_with_a_projection_writes_it(tmp_path):
    config = replace(TINY, epochs=1, projected=3)
    train_reid(write_people(tmp_path), config, tmp_path / "out.safetensors", work_dir=tmp_path, stream=io.StringIO())
    assert load_reid(tmp_path / "out.safetensors").embed(torch.rand(2, 3, 32, 16)).shape == (2, 3)


@pytest.mark.parametrize("wrong", [{"projected": -1}, {"shrinkage": 0.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ConfigError, match=r"projected must be between 0 and|shrinkage must be in"):
        replace(TINY, **wrong)

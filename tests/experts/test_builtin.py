"""The packaged experts with their cards, the colour histogram against NumPy's, networks from elsewhere."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch

from veilkit.errors import CheckpointError, ConfigError, UsageError
from veilkit.experts import load_expert
from veilkit.experts.builtin import (
    HistogramEmbedder,
    StripesEmbedder,
    colour_histogram,
    load_stripes,
    stripe_statistics,
)
from veilkit.experts.names import weights_folder
from veilkit.experts.registry import experts


def test_people_is_read_from_the_package(reid_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "files", lambda package: tmp_path / package)
    weights = tmp_path / "veilkit.experts" / "weights"
    weights.mkdir(parents=True)
    with pytest.raises(CheckpointError, match="lacks the weights of the expert 'people'"):
        load_expert("people")
    shutil.copyfile(reid_file, weights / "people.safetensors")
    (weights / "people.md").write_text("# People\n")
    info = load_expert("people").info
    assert (info.name, info.origin, info.card, info.differentiable) == ("people", "built-in", "# People\n", True)


IMAGES = torch.rand(4, 3, 20, 12, generator=torch.Generator().manual_seed(0))


def test_counts_are_those_of_numpy() -> None:
    for image, found in zip(IMAGES, colour_histogram(IMAGES), strict=True):
        pixels = image.flatten(1).T.numpy()
        counts, _ = np.histogramdd(pixels, bins=8, range=[(0, 1)] * 3)
        np.testing.assert_allclose(found.numpy(), counts.ravel() / len(pixels), atol=1e-7)


def test_black_and_white_are_the_first_and_the_last_bin() -> None:
    extremes = torch.stack([torch.zeros(3, 5, 5), torch.ones(3, 5, 5)])
    assert HistogramEmbedder().embed(extremes).argmax(1).tolist() == [0, 511]


def test_features_have_length_one_and_forget_where_pixels_are() -> None:
    expert = HistogramEmbedder()
    features = expert.embed(IMAGES)
    assert features.shape == (4, expert.dim) == (4, 512)
    torch.testing.assert_close(features.norm(dim=1), torch.ones(4))
    places = torch.randperm(240, generator=torch.Generator().manual_seed(1))
    moved = IMAGES.flatten(2)[:, :, places].view_as(IMAGES)
    assert torch.equal(expert.embed(moved), features)
    assert torch.equal(expert.embed(IMAGES[2:3]), features[2:3])
    assert expert.embed(IMAGES[:0]).shape == (0, 512)


def test_asking_it_for_a_gradient_is_refused() -> None:
    images = IMAGES.clone().requires_grad_()
    with pytest.raises(UsageError, match="'histogram' can judge, but not supervise"):
        HistogramEmbedder().embed(images)
    with torch.no_grad():
        assert HistogramEmbedder().embed(images).shape == (4, 512)


def test_stripes_are_what_numpy_says_of_stripes_of_one_colour() -> None:
    """A picture of eight bands: each stripe has its band's colour, about the picture's mean and in its spread."""
    bands = np.random.default_rng(0).random((8, 3))
    picture = np.repeat(bands, 16, axis=0)[:, None, :].repeat(64, axis=1)
    image = torch.from_numpy(picture).permute(2, 0, 1)[None].float()
    found = stripe_statistics(image)[0].numpy().reshape(4, 3, 8)
    expected = (bands - picture.mean((0, 1))) / (picture.std((0, 1)) + 0.02)
    np.testing.assert_allclose(found[0], expected.T, atol=0.2)  # at its edges a band is smoothed
    assert np.corrcoef(found[0].ravel(), expected.T.ravel())[0, 1] > 0.99


def test_stripes_forget_the_light_and_find_the_clothes() -> None:
    stripes = StripesEmbedder()
    torch.manual_seed(0)
    image = torch.rand(1, 3, 8, 1).repeat_interleave(16, 2).repeat_interleave(64, 3)
    darker = 0.2 + 0.5 * image
    assert (stripes.embed(image) @ stripes.embed(darker).T).item() > 0.99
    assert (stripes.embed(image) @ stripes.embed(image.flip(2)).T).item() < 0.9
    assert stripes.embed(torch.full((2, 3, 20, 10), 0.5)).abs().max() < 1e-3
    with pytest.raises(ConfigError, match="mirror image"):
        load_stripes(flip=True)


folder = weights_folder()


def test_without_the_weights_the_networks_of_others_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VEILKIT_WEIGHTS", "VEILKIT_DATA"):
        monkeypatch.delenv(name, raising=False)
    for name in ("retail-0277", "osnet-0.25"):
        with pytest.raises(CheckpointError, match="VEILKIT_WEIGHTS"):
            load_expert(name)
        assert "VEILKIT_WEIGHTS" in experts()[name]["licence"]
    with pytest.raises(ConfigError, match="without flip"):
        load_expert("retail-0277", flip=True)


@pytest.mark.skipif(
    folder is None or not (folder / "person-reidentification-retail-0277.xml").is_file(),
    reason="needs Intel's network in VEILKIT_WEIGHTS",
)
def test_retail_embeds_each_picture_by_itself() -> None:
    pytest.importorskip("openvino")
    expert = load_expert("retail-0277")
    images = torch.rand(3, 3, 128, 64, generator=torch.Generator().manual_seed(0))
    features = expert.embed(images)
    assert features.shape == (3, expert.dim)
    assert torch.allclose(expert.embed(images[1:2]), features[1:2], atol=1e-4)
    assert not torch.allclose(features[0], features[1], atol=1e-2)

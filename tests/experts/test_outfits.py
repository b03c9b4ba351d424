"""Outfits: what is measured of a picture, the packaged projection, and files that are none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.attacks.targets import walkers
from veilkit.checkpoint import save_checkpoint
from veilkit.errors import CheckpointError, ConfigError, UsageError
from veilkit.experts import load_expert
from veilkit.experts.outfits import MEASURED, OUTFITS_KIND, OutfitsEmbedder, load_outfits, measured, save_outfits


def test_light_changes_little_and_clothes_much() -> None:
    images = walkers()
    found, darker, others = measured(images), measured(0.1 + 0.6 * images), measured(images.roll(2, 0))
    assert found.shape == (len(images), MEASURED)
    assert found.isfinite().all()
    assert (found - darker).norm() < 0.3 * (found - others).norm()
    extreme = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]).repeat_interleave(20, 0).T[None, :, :, None]
    for image in (torch.zeros(1, 3, 40, 20), extreme.expand(1, 3, 40, 20), torch.rand(1, 3, 40, 20).round()):
        assert measured(image).isfinite().all()


def test_cells_are_mean_colours_after_the_pictures_own_light() -> None:
    image = walkers()[:1]
    whole = torch.nn.functional.interpolate(image, (128, 64), mode="bilinear", antialias=True)[0].numpy()
    scaled = (whole - whole.mean((1, 2), keepdims=True)) / (whole.std((1, 2), keepdims=True, ddof=1) + 0.02)
    cell = scaled[:, 24:32, 8:16].mean((1, 2))
    np.testing.assert_allclose(measured(image)[0, : 3 * 16 * 6].view(3, 16, 6)[:, 3, 0].numpy(), cell, atol=1e-5)


def test_the_packaged_one_finds_generated_people_by_another_camera() -> None:
    expert = load_expert("outfits")
    features = torch.nn.functional.normalize(expert.embed(walkers()))
    likeness = features[::2] @ features[1::2].T  # one camera against the other
    assert (likeness.argmax(1) == torch.arange(len(likeness))).float().mean() >= 0.9
    assert torch.allclose(expert.embed(walkers()[3:4]), expert.embed(walkers())[3:4], atol=1e-4)
    assert expert.embed(walkers()[:0]).shape == (0, expert.dim)
    assert "# outfits" in expert.info.card


def test_it_only_judges_and_takes_no_mirror_images() -> None:
    with pytest.raises(UsageError, match="'outfits' can judge, but not supervise"):
        load_expert("outfits").embed(walkers().clone().requires_grad_())
    with pytest.raises(ConfigError, match="without flip"):
        load_expert("outfits", flip=True)


def test_a_projection_is_read_as_it_was_written(tmp_path: Path) -> None:
    weight, bias = torch.rand(5, MEASURED), torch.rand(5)
    save_outfits(tmp_path / "own.safetensors", weight, bias, "two people")
    read = load_outfits(tmp_path / "own.safetensors")
    expected = measured(walkers()[:2]) @ weight.T + bias
    torch.testing.assert_close(read.embed(walkers()[:2]), expected, rtol=1e-4, atol=1e-4)
    assert read.info.source == "veilkit; learned from two people"


def test_other_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "own.safetensors"
    save_checkpoint(file, {"weight": torch.rand(5, MEASURED)}, {"taught": "nobody"}, OUTFITS_KIND)
    with pytest.raises(CheckpointError, match="not an outfits file"):
        load_outfits(file)
    with pytest.raises(ConfigError, match="expected a projection"):
        OutfitsEmbedder(torch.rand(5, 7), torch.rand(5), load_expert("histogram").info)

"""Resize, normalisation and colour order."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from veilkit.errors import ConfigError, UnknownNameError
from veilkit.experts.preprocessing import (
    NORMALISATIONS,
    Preprocessing,
    normalisation_text,
    read_normalisation,
    read_size,
)

NONE = NORMALISATIONS["none"]


def test_resizing_is_pillows_bilinear() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (60, 40, 3), dtype=np.uint8)
    image = torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255
    for size in ((24, 12), (90, 80)):
        wanted = np.asarray(Image.fromarray(pixels).resize(size[::-1], Image.Resampling.BILINEAR)) / 255
        found = Preprocessing(size, *NONE)(image)[0].permute(1, 2, 0).numpy()
        assert np.abs(found - wanted).max() < 1.5 / 255


@pytest.mark.parametrize(
    ("name", "black", "white"), [("none", 0, 1), ("signed", -1, 1), ("bytes", 0, 255), ("imagenet", -2.1179, 2.2489)]
)
def test_named_normalisations_have_the_range_they_promise(name: str, black: float, white: float) -> None:
    prepare = Preprocessing((2, 2), *NORMALISATIONS[name])
    red = prepare(torch.stack([torch.zeros(3, 2, 2), torch.ones(3, 2, 2)]))[:, 0, 0, 0]
    torch.testing.assert_close(red, torch.tensor([black, white], dtype=torch.float32), rtol=1e-4, atol=1e-4)


def test_mean_and_std_belong_to_colours_not_to_places() -> None:
    image = torch.tensor([0.1, 0.2, 0.3])[None, :, None, None]
    rgb, bgr = (Preprocessing((1, 1), (0.1, 0.0, 0.0), (1.0, 1.0, 0.5), order)(image) for order in ("rgb", "bgr"))
    torch.testing.assert_close(rgb.flatten(), torch.tensor([0.0, 0.2, 0.6]))
    torch.testing.assert_close(bgr.flatten(), torch.tensor([0.6, 0.2, 0.0]))


def test_the_input_is_untouched_and_gradients_pass() -> None:
    images = torch.rand(1, 3, 9, 9, requires_grad=True)
    before = images.detach().clone()
    Preprocessing((4, 5), *NORMALISATIONS["imagenet"], "bgr")(images).sum().backward()
    assert torch.equal(images.detach(), before)
    assert images.grad is not None
    assert (images.grad > 0).all()


def test_texts_are_read_and_written() -> None:
    assert read_size("256X128") == (256, 128)
    for text in ("imagenet", "none", "signed", "bytes", "0.5,0.4,0.3/0.2,0.2,0.1"):
        assert normalisation_text(*read_normalisation(text)) == text


@pytest.mark.parametrize("text", ["256", "256x", "ax2", "-1x5", "1x2x3"])
def test_wrong_sizes_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="HEIGHTxWIDTH"):
        read_size(text)


def test_wrong_normalisations_are_refused() -> None:
    with pytest.raises(ConfigError, match="three numbers"):
        read_normalisation("0.5/0.5")
    with pytest.raises(UnknownNameError, match="did you mean 'imagenet'"):
        read_normalisation("imagent")
    for std in ((0.0, 1.0, 1.0), (float("nan"), 1.0, 1.0)):
        with pytest.raises(ConfigError, match="std positive"):
            Preprocessing((4, 4), (0.0, 0.0, 0.0), std)
    with pytest.raises(ConfigError, match="0x4"):
        Preprocessing((0, 4), *NONE)

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.attacks.targets import Blind
from veilkit.attacks.pictures import HeldPictures, NoisePictures, SomePictures
from veilkit.errors import DataError
from veilkit.experts import load_expert
from veilkit.rng import Randomness


def mixed() -> HeldPictures:
    generator = torch.Generator().manual_seed(0)
    return HeldPictures([torch.rand(3, 8 + index % 3, 6, generator=generator) for index in range(200)])


def test_batches_hold_each_picture_once_and_one_size() -> None:
    pictures, seen = mixed(), []
    for part, images in pictures.batches():
        assert len(part) <= 64
        seen += part
        for index, image in zip(part, images, strict=True):
            assert torch.equal(image, pictures.load(index))
    assert sorted(seen) == list(range(200))


def test_features_stand_in_the_pictures_order() -> None:
    pictures, histogram = mixed(), load_expert("histogram")
    features = pictures.features(histogram)
    for index in (0, 77, 199):
        assert np.allclose(features[index], histogram.embed(pictures.load(index)[None])[0].numpy())
    assert np.array_equal(SomePictures(pictures, [5, 3]).features(histogram), features[[5, 3]])


def test_noise_has_the_sizes_of_others_and_is_the_same_again() -> None:
    pictures = mixed()
    noise = NoisePictures(pictures, Randomness.from_seed(1))
    assert noise.load(4).shape == pictures.load(4).shape
    assert torch.equal(noise.load(4), noise.load(4))
    assert not torch.equal(noise.load(0), noise.load(3))


def test_features_that_are_not_finite_are_refused() -> None:
    class Broken(Blind):
        def embed(self, images: torch.Tensor) -> torch.Tensor:
            return torch.full((len(images), 8), float("nan"))

    with pytest.raises(DataError, match="NaN"):
        mixed().features(Broken())

"""What blur and mosaic leave by a picture's size alone."""

from __future__ import annotations

import pytest
import torch

from studies.controls.sizes import likeness_by_size
from veilkit.attacks.pictures import HeldPictures
from veilkit.rng import Randomness

SIZES = ((32, 16), (64, 32))
RNG = Randomness.from_seed(0)


def test_nothing_is_lost_of_plain_pictures() -> None:
    plain = HeldPictures(torch.full((3, 3, 32, 16), 0.4))
    found = likeness_by_size(plain, ["pixelate", "blur"], SIZES, RNG)
    assert list(found) == ["32x16", "64x32"]
    for row in found.values():
        assert row == pytest.approx({"pixelate": 1.0, "blur": 1.0}, abs=1e-4)


def test_more_is_left_of_enlarged_pictures() -> None:
    grain = HeldPictures(torch.rand(3, 3, 32, 16, generator=torch.Generator().manual_seed(1)))
    found = likeness_by_size(grain, ["pixelate", "blur"], SIZES, RNG)
    for name in ("pixelate", "blur"):
        assert 0 < found["32x16"][name] < found["64x32"][name] < 1

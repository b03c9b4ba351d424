"""Augmentation: decided by its node, in range, and each operation does what its name says."""

import pytest
import torch

from veilkit.datasets.augment import AugmentConfig, augment
from veilkit.errors import ConfigError
from veilkit.rng import Randomness

NODE = Randomness.from_seed(0).child("augment", 0, 0)
NOTHING = AugmentConfig(flip=0, pad=0, erase=0)
IMAGES = torch.randint(0, 256, (12, 3, 32, 16), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)


def test_the_node_decides_and_the_input_stays():
    config = AugmentConfig(jitter=0.3, grey=0.3)
    before = IMAGES.clone()
    assert torch.equal(augment(IMAGES, config, NODE), augment(IMAGES, config, NODE))
    other = augment(IMAGES, config, Randomness.from_seed(0).child("augment", 0, 1))
    assert not torch.equal(augment(IMAGES, config, NODE), other)
    assert torch.equal(IMAGES, before)


def test_all_together_keep_shape_type_and_range():
    out = augment(IMAGES, AugmentConfig(jitter=0.9, grey=0.5), NODE)
    assert out.shape == IMAGES.shape
    assert out.dtype == torch.float32
    assert out.min() >= 0
    assert out.max() <= 1


def test_nothing_changes_nothing():
    assert torch.equal(augment(IMAGES, NOTHING, NODE), IMAGES.float() / 255)


def test_flip_mirrors():
    out = augment(IMAGES, AugmentConfig(flip=1, pad=0, erase=0), NODE)
    assert torch.equal(out, IMAGES.flip(3).float() / 255)


def test_flip_takes_its_share():
    plain = (IMAGES.float() / 255).repeat(50, 1, 1, 1)
    out = augment(IMAGES.repeat(50, 1, 1, 1), AugmentConfig(flip=0.5, pad=0, erase=0), NODE)
    share = 1 - (out == plain).flatten(1).all(1).float().mean().item()
    assert 0.4 < share < 0.6


def test_crop_moves_by_at_most_the_border():
    border = 2
    out = augment(IMAGES, AugmentConfig(flip=0, pad=border / 32, erase=0), NODE)
    padded = torch.nn.functional.pad(IMAGES.float() / 255, (border,) * 4)
    moves = set()
    for i in range(len(IMAGES)):
        found = [
            (y, x)
            for y in range(2 * border + 1)
            for x in range(2 * border + 1)
            if torch.equal(out[i], padded[i, :, y : y + 32, x : x + 16])
        ]
        assert len(found) == 1
        moves.add(found[0])
    assert len(moves) > 3


def test_grey_has_equal_channels():
    out = augment(IMAGES, AugmentConfig(flip=0, pad=0, erase=0, grey=1), NODE)
    assert torch.equal(out[:, 0], out[:, 1])
    assert torch.equal(out[:, 0], out[:, 2])


def test_erasing_fills_one_rectangle():
    out = augment(IMAGES, AugmentConfig(flip=0, pad=0, erase=1), NODE)
    changed = (out != IMAGES.float() / 255).any(1)
    for mask in changed:
        rows, columns = mask.any(1).nonzero().flatten(), mask.any(0).nonzero().flatten()
        tall, wide = rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1
        assert mask.sum() == tall * wide
        assert 0 < tall * wide <= 0.4 * mask.numel() + 1


def test_bad_settings_are_refused():
    with pytest.raises(ConfigError, match="flip must be a probability"):
        AugmentConfig(flip=1.5)
    with pytest.raises(ConfigError, match="jitter must be"):
        AugmentConfig(jitter=1.0)


def test_cast_scales_each_colour_by_itself():
    images = torch.full((6, 3, 8, 4), 100, dtype=torch.uint8)
    out = augment(images, AugmentConfig(flip=0, pad=0, erase=0, cast=0.2), NODE) * 255 / 100
    assert torch.equal(out, out[:, :, :1, :1].expand_as(out))  # one gain for each colour of each image
    gains = out[:, :, 0, 0]
    assert gains.min() >= 0.8 - 1e-5
    assert gains.max() <= 1.2 + 1e-5
    assert len(gains.unique()) == 18

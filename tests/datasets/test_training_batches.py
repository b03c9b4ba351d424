"""Batches for training, decided by seed and epoch alone: P people with K images each, and augmentation."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from veilkit.datasets.augment import AugmentConfig, augment
from veilkit.datasets.sampler import PKSampler
from veilkit.errors import ConfigError, DataError
from veilkit.rng import Randomness

COUNTS = st.lists(st.integers(1, 9), min_size=6, max_size=20)


def labels_of(counts):
    return tuple(label for label, count in enumerate(counts) for _ in range(count))


@settings(max_examples=40, deadline=None)
@given(COUNTS, st.integers(2, 5), st.integers(2, 4), st.integers(0, 5))
def test_each_batch_holds_p_people_with_k_images(counts, people, images, epoch):
    labels = np.array(labels_of(counts))
    batches = PKSampler(tuple(labels.tolist()), people, images).epoch(Randomness.from_seed(1), epoch)
    assert batches
    for batch in batches:
        grouped = labels[batch].reshape(people, images)
        assert (grouped == grouped[:, :1]).all()
        assert len(set(grouped[:, 0])) == people


@settings(max_examples=20, deadline=None)
@given(COUNTS)
def test_images_repeat_within_a_group_only_where_there_are_too_few(counts):
    labels = np.array(labels_of(counts))
    for batch in PKSampler(tuple(labels.tolist()), 3, 4).epoch(Randomness.from_seed(2), 0):
        for group in batch.reshape(3, 4):
            assert len(set(group.tolist())) == min(4, counts[labels[group[0]]])


def test_an_epoch_shows_nearly_every_image():
    labels = labels_of([8] * 80)
    shown = np.concatenate(PKSampler(labels, 8, 4).epoch(Randomness.from_seed(3), 0))
    assert len(set(shown.tolist())) > 0.9 * len(labels)
    assert len(shown) == len(set(shown.tolist()))


def test_seed_and_epoch_decide():
    sampler = PKSampler(labels_of([6] * 12), 4, 3)

    def drawn(seed, epoch):
        return np.concatenate(sampler.epoch(Randomness.from_seed(seed), epoch)).tolist()

    assert drawn(0, 0) == drawn(0, 0)
    assert drawn(0, 0) != drawn(0, 1)
    assert drawn(0, 0) != drawn(1, 0)


def test_too_few_people_are_refused():
    with pytest.raises(DataError, match="at least 4 identities"):
        PKSampler((0, 0, 1, 1, 2, 2), 4, 2)
    with pytest.raises(ConfigError, match="at least 2"):
        PKSampler((0, 0, 1, 1), 2, 1)


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

"""PK batches: P distinct people with K images each, decided by (seed, epoch) alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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

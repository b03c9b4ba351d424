from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from veilkit.rng import Randomness

labels = st.lists(st.one_of(st.text(max_size=5), st.binary(max_size=5), st.integers(0, 300)), max_size=3).map(tuple)


@given(labels, labels)
def test_different_labels_give_different_children(first: tuple, second: tuple) -> None:
    root = Randomness.from_seed(1)
    kinds = tuple((type(label), label) for label in first), tuple((type(label), label) for label in second)
    same = root.child(*first).bytes(16) == root.child(*second).bytes(16)
    assert same == (kinds[0] == kinds[1])


def test_labels_cannot_be_shifted_across_their_borders() -> None:
    root = Randomness.from_seed(1)
    assert root.child("ab", "c").bytes(8) != root.child("a", "bc").bytes(8)
    assert root.child("a").child("b").bytes(8) != root.child("a", "b").bytes(8)


def test_bytes_are_shake_256_of_the_secret() -> None:
    secret = bytes(range(32))
    assert Randomness(secret).bytes(100) == hashlib.shake_256(b"stream" + secret).digest(100)


def test_another_seed_gives_other_values() -> None:
    assert not torch.equal(Randomness.from_seed(1).normal(50), Randomness.from_seed(2).normal(50))


def test_normal_and_uniform_have_their_distributions() -> None:
    root = Randomness.from_seed(3)
    assert stats.kstest(root.child("n").normal(20_000).numpy(), "norm").pvalue > 0.01
    uniform = root.child("u").uniform(20_000)
    assert stats.kstest(uniform.numpy(), "uniform").pvalue > 0.01
    assert uniform.min() > 0
    assert uniform.max() < 1
    assert root.normal(4, 5).shape == (4, 5)


def test_permutations_are_uniform() -> None:
    root = Randomness.from_seed(4)
    counts = np.zeros((5, 5))
    for draw in range(2000):
        order = root.child(draw).permutation(5)
        assert sorted(order) == list(range(5))
        counts[np.arange(5), order] += 1
    assert stats.chisquare(counts.ravel()).pvalue > 0.01


def test_integers_stay_in_range() -> None:
    drawn = {Randomness.from_seed(seed).integer(3, 6) for seed in range(60)}
    assert drawn == {3, 4, 5}
    with pytest.raises(ValueError, match="low < high"):
        Randomness.from_seed(0).integer(2, 2)


def test_a_short_secret_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least 16 bytes"):
        Randomness(b"short")


def test_generators_repeat() -> None:
    root = Randomness.from_seed(5)
    assert root.numpy().random() == root.numpy().random()
    assert torch.rand(2, generator=root.torch()).equal(torch.rand(2, generator=root.torch()))


def test_uniform_values_stay_inside_of_the_open_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logarithms that noise is made of have no value at 0 and 1."""
    words = np.array([0, 255, 2**31, 2**32 - 256, 2**32 - 1], dtype=np.uint32)
    monkeypatch.setattr(Randomness, "_words", lambda self, count: words[:count])
    values = Randomness.from_seed(0).uniform(5).numpy()
    assert ((values > 0) & (values < 1)).all()
    assert np.isfinite(np.log1p(-2 * np.abs(values - np.float32(0.5)))).all()

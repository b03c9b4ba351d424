"""What pictures begin with: each under its item's name alone, whatever else is made beside it."""

from __future__ import annotations

import pytest
import torch

from veilkit.errors import ConfigError
from veilkit.methods.fro.canvas import FEWEST, PrincipalComponents, Start, start_pictures
from veilkit.rng import Randomness

SIZE = (64, 32)
ITEMS = ("a", "b", "c")


@pytest.fixture(scope="module")
def components() -> PrincipalComponents:
    return PrincipalComponents.of(
        (255 * torch.rand(FEWEST, 3, *SIZE, generator=torch.Generator().manual_seed(5))).byte()
    )


@pytest.mark.parametrize("start", ["looks", "leaves", "figures"])
def test_a_beginning_belongs_to_its_item_and_key(start: Start, components: PrincipalComponents) -> None:
    first = start_pictures(start, SIZE, components, Randomness.from_seed(0), ITEMS)
    assert first.shape == (3, 3, *SIZE)
    assert 0 <= first.min() < first.max() <= 1
    again = start_pictures(start, SIZE, components, Randomness.from_seed(0), ("c", "a"))
    torch.testing.assert_close(again, first[[2, 0]], atol=1e-6, rtol=0)
    assert (first[0] - first[1]).abs().mean() > 0.01
    other = start_pictures(start, SIZE, components, Randomness.from_seed(1), ITEMS)
    assert ((first - other).abs().flatten(1).mean(1) > 0.01).all()


def test_leaves_lie_over_the_same_mixture(components: PrincipalComponents) -> None:
    plain, covered = (
        start_pictures(start, SIZE, components, Randomness.from_seed(0), ITEMS) for start in ("looks", "leaves")
    )
    untouched = ((plain - covered).abs().amax(1) < 1e-6).flatten(1).float().mean(1)
    assert (untouched > 0.005).all()
    assert (untouched < 0.6).all()


@pytest.mark.parametrize("start", ["looks", "leaves"])
def test_unknown_components_are_refused_and_figures_need_none(start: Start) -> None:
    with pytest.raises(ConfigError, match="preset that begins with noise"):
        start_pictures(start, SIZE, None, Randomness.from_seed(0), ITEMS)
    assert start_pictures("figures", SIZE, None, Randomness.from_seed(0), ITEMS[:1]).shape == (1, 3, *SIZE)


def test_figures_need_pictures_that_are_not_wider_than_high() -> None:
    with pytest.raises(ConfigError, match="head to foot, but pictures of 32x64"):
        start_pictures("figures", (32, 64), None, Randomness.from_seed(0), ITEMS)

"""Leaves: where they lie, what they are made of, and that the key alone says so."""

from __future__ import annotations

import pytest
import torch

from veilkit.methods.fro.canvas import dead_leaves
from veilkit.rng import Randomness


def plain(*colours: float, size: tuple[int, int] = (64, 32)) -> torch.Tensor:
    return torch.tensor(colours)[:, None, None, None].expand(-1, 3, *size).contiguous()


def test_no_leaves_leave_the_picture_as_it_is() -> None:
    picture = torch.rand(3, 64, 32, generator=torch.Generator().manual_seed(0))
    assert torch.equal(dead_leaves(picture, plain(0.0), 0, Randomness.from_seed(0)), picture)


def test_leaves_are_pieces_of_the_sources_and_the_picture_is_not_touched() -> None:
    picture, sources = plain(0.5)[0], plain(0.0, 1.0)
    laid = dead_leaves(picture, sources, 12, Randomness.from_seed(0))
    assert laid.unique().tolist() == [0.0, 0.5, 1.0]
    assert picture.unique().tolist() == [0.5]


def test_a_leaf_keeps_half_of_its_source_around_the_colour_of_its_middle() -> None:
    source = torch.linspace(0, 1, 64)[None, :, None].expand(3, 64, 32).contiguous()
    laid = dead_leaves(torch.full((3, 64, 32), -1.0), source[None], 1, Randomness.from_seed(3))
    inside = laid[0] >= 0
    assert 0 < inside.float().mean() < 0.9
    doubled = 2 * laid[0][inside] - source[0][inside]  # the middle's colour, once the source's half is taken off
    torch.testing.assert_close(doubled, doubled[:1].expand_as(doubled), atol=1e-5, rtol=0)


def test_small_leaves_lie_above_large_ones_and_edges_come_at_all_scales() -> None:
    covered = [
        (dead_leaves(plain(0.0)[0], plain(1.0), count, Randomness.from_seed(seed))[0] > 0).float().mean().item()
        for count in (1, 40)
        for seed in range(20)
    ]
    one, many = torch.tensor(covered).view(2, 20)
    assert 0.005 < one.mean() < 0.2  # most leaves are small
    assert 0.5 < many.mean() < 0.98  # forty of them hide most of a picture, but not all


@pytest.mark.parametrize("seed", [0, 1])
def test_leaves_belong_to_the_key(seed: int) -> None:
    picture, sources = plain(0.5)[0], plain(0.0, 1.0)
    first = dead_leaves(picture, sources, 12, Randomness.from_seed(seed))
    assert torch.equal(first, dead_leaves(picture, sources, 12, Randomness.from_seed(seed)))
    assert not torch.equal(first, dead_leaves(picture, sources, 12, Randomness.from_seed(seed + 2)))

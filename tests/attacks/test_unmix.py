"""Mix-up taken apart again, and each step against what can be worked out by hand."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from tests.attacks.targets import blended, mixed, noise, walkers, walkers_target
from veilkit.attacks import run_gated
from veilkit.attacks.pictures import HeldPictures, NoisePictures
from veilkit.attacks.unmix.attack import NO_RING, Unmix, find_blends
from veilkit.attacks.unmix.rings import find_rings
from veilkit.attacks.unmix.scores import second_sources
from veilkit.attacks.unmix.solve import (
    _integrated,
    find_ratio,
    goes_backwards,
    mixing,
    steps_of,
    unmixed,
    weighted_median,
)
from veilkit.methods.mixing import MixUp, MixUpConfig
from veilkit.metrics import psnr
from veilkit.rng import Randomness
from veilkit.types import Evidence


def value(evidence: Evidence, metric: str) -> float:
    return next(score.value for score in evidence.scores if score.metric == metric)


@cache
def release(ratio: float, size: int) -> tuple[torch.Tensor, list[list[int]]]:
    return mixed(MixUp(MixUpConfig(ratio=ratio, people=size)), walkers(), size)


def links_of(groups: list[list[int]]) -> set[frozenset[int]]:
    return {frozenset((a, b)) for group in groups for a, b in zip(group, group[1:] + group[:1], strict=True)}


@pytest.mark.parametrize(("ratio", "size"), [(0.5, 8), (0.7, 8), (0.8, 6), (0.6, 3)])
def test_rings_are_found(ratio: float, size: int) -> None:
    images, groups = release(ratio, size)
    rings = find_rings(HeldPictures(images))
    assert {frozenset(link) for ring in rings for link in ring.links} == links_of(groups)
    assert all(ring.closed for ring in rings)


def test_rings_of_two_are_pairs() -> None:
    """Of two pictures the weaker likeness decides, so that some may be missed; none may be made up."""
    images, groups = release(0.7, 2)
    rings = find_rings(HeldPictures(images))
    found = {frozenset(link) for ring in rings for link in ring.links}
    assert found <= links_of(groups)
    assert len(found) >= 0.8 * len(groups)
    assert all(ring.closed for ring in rings)


@pytest.mark.parametrize(("ratio", "size"), [(0.5, 8), (0.52, 8), (0.6, 8), (0.75, 6), (0.9, 4), (0.6, 3), (0.8, 2)])
def test_the_ratio_and_the_direction_are_found(ratio: float, size: int) -> None:
    images, groups = release(ratio, size)
    steps = [steps_of(images[group].numpy()) for group in groups[:4]]
    found, gain = find_ratio([(each, True) for each in steps])
    assert found == pytest.approx(ratio, abs=0.011)
    assert gain > 0.002
    if ratio > 0.55 and size > 2:
        assert not any(goes_backwards(each, found, True) for each in steps)
        assert all(goes_backwards(each[::-1], found, True) for each in steps)


def test_shares_are_those_of_mix_up() -> None:
    x = np.random.default_rng(0).random((5, 7))
    expected = 0.7 * x + 0.3 * np.roll(x, -1, axis=0)
    assert np.allclose(mixing(5, 0.7, closed=True) @ x, expected)
    assert np.allclose(mixing(4, 0.7, closed=False) @ x, expected[:4])


@pytest.mark.parametrize(("ratio", "size", "least"), [(0.9, 8, 50.0), (0.6, 8, 45.0), (0.5, 3, 45.0), (0.5, 8, 25.0)])
def test_rings_are_solved(ratio: float, size: int, least: float) -> None:
    """Up to rounding where the ring has one solution; else as near as sparse steps lead."""
    images, groups = release(ratio, size)
    for group in groups:
        sources = torch.from_numpy(unmixed(images[group].numpy(), ratio, closed=True))
        assert psnr(sources, walkers()[group]).mean() > least
        assert psnr(images[group], walkers()[group]).mean() < (35 if ratio == 0.9 else 24)


def test_an_open_chain_is_solved_as_far_as_it_goes() -> None:
    images, groups = release(0.6, 8)
    chain = groups[0][:5]
    sources = unmixed(images[chain].numpy(), 0.6, closed=False)
    assert sources.shape[0] == 6
    assert (
        psnr(torch.from_numpy(sources[:2]), walkers()[chain[:2]]).mean()
        > 27
        > psnr(images[chain[:2]], walkers()[chain[:2]]).mean()
    )


def test_the_weighted_median_has_the_least_sum_of_distances() -> None:
    rng = np.random.default_rng(0)
    steps, free = rng.normal(size=(5, 20)), rng.normal(size=5)
    found = weighted_median(steps, free)

    def total(d: np.ndarray) -> np.ndarray:
        return np.abs(steps - free[:, None] * d).sum(axis=0)

    candidates = np.stack([total(steps[i] / free[i]) for i in range(5)])  # the minimum lies at one of them
    assert np.allclose(total(found), candidates.min(axis=0))


def test_a_picture_is_known_by_its_steps_up_to_its_mean() -> None:
    picture = np.random.default_rng(0).random((3, 9, 7))
    again = _integrated(np.diff(picture, axis=2), np.diff(picture, axis=1))
    assert np.allclose(again, picture - picture.mean(axis=(1, 2), keepdims=True))


def test_the_truth_knows_who_was_blended_in() -> None:
    images, groups = release(0.7, 8)
    second = second_sources(HeldPictures(images), HeldPictures(walkers()))
    for group in groups:
        assert second[group].tolist() == group[1:] + group[:1]
    assert (second_sources(HeldPictures(walkers()), HeldPictures(walkers())) == -1).all()


@pytest.mark.parametrize("ratio", [0.5, 0.7])
def test_people_are_taken_apart_again(ratio: float) -> None:
    evidence = Unmix().run(walkers_target(blended(ratio)))
    released = evidence.details["as released"]
    assert evidence.details["ratio"] == ratio
    assert evidence.details["ring lengths"] == {"8": 3}
    assert value(evidence, "links") == 1.0
    assert value(evidence, "rank-1") > 0.9
    assert value(evidence, "PSNR") > released["PSNR"] + 6
    assert value(evidence, "SSIM") > released["SSIM"]


def test_pictures_that_were_not_blended_are_not_attacked() -> None:
    raw = HeldPictures(walkers())
    for pictures in (raw, NoisePictures(raw, Randomness.from_seed(1))):
        evidence = run_gated(Unmix, walkers_target(pictures))
        assert evidence.missing == (NO_RING,)
    assert find_blends(noise()) == ([], None)


@pytest.mark.parametrize("copies", [2, 3, 4])
@pytest.mark.parametrize("spread", [0.0, 0.03])
def test_repeated_shots_are_no_blends(copies: int, spread: float) -> None:
    images = walkers()[::2].repeat_interleave(copies, dim=0)
    shots = images + spread * torch.randn(images.shape, generator=torch.Generator().manual_seed(0))
    assert find_blends(HeldPictures(shots.clamp(0, 1))) == ([], None)


def test_told_of_blends_it_leaves_pictures_without_rings_alone() -> None:
    evidence = run_gated(Unmix, walkers_target(blended()))
    assert evidence.invalid == ()
    gates = evidence.details["gates"]
    assert gates["on originals"] == gates["clean bound"] == 1.0
    assert gates["on noise"] < 0.2


def test_a_large_release_is_attacked_ring_by_ring(monkeypatch) -> None:
    monkeypatch.setattr("veilkit.attacks.unmix.attack._MOST", 17)
    evidence = run_gated(Unmix, walkers_target(blended()))
    assert evidence.invalid == ()
    assert evidence.details["ring lengths"] == {"8": 2}
    assert value(evidence, "links") == 1.0

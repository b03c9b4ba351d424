"""Patch recombination put back together, and each step against what can be worked out by hand."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.attacks.targets import dealt, mixed, noise, walkers, walkers_target
from veilkit.attacks import AttackTarget, run_gated
from veilkit.attacks.jigsaw.assembly import Puzzle, assemble
from veilkit.attacks.jigsaw.attack import NO_GRID, Jigsaw, chance_of_neighbours
from veilkit.attacks.jigsaw.grid import Grid, Seams, find_grid
from veilkit.attacks.jigsaw.groups import Links, groups_of_pictures
from veilkit.attacks.jigsaw.same_source import Lessons, describe, generated_people
from veilkit.attacks.jigsaw.truth import Truth
from veilkit.attacks.pictures import HeldPictures, NoisePictures
from veilkit.attacks.unmix.attack import Unmix
from veilkit.methods.mixing import Patches, PatchesConfig
from veilkit.rng import Randomness
from veilkit.types import Evidence

SHAPE, CELLS = (6, 3), 18
GRID = Grid(16, 16)
QUALITY = (cv2.IMWRITE_JPEG_QUALITY, 95, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, 0x111111)  # colours in full


def value(evidence: Evidence, metric: str) -> float:
    return next(score.value for score in evidence.scores if score.metric == metric)


@cache
def attacked(places: str) -> Evidence:
    return Jigsaw().run(walkers_target(dealt(places)))


@cache
def lessons() -> Lessons:
    return Lessons.learn(generated_people((96, 48), 24), GRID)


@pytest.mark.parametrize("places", ["shuffled", "kept"])
def test_the_grid_is_found_where_pictures_were_cut(places: str) -> None:
    assert find_grid(HeldPictures(dealt(places))) == GRID


def test_no_grid_is_found_where_nothing_was_dealt_out() -> None:
    raw = walkers()
    mosaic = F.interpolate(F.avg_pool2d(raw, 16), scale_factor=16, mode="nearest")
    for pictures in (raw, F.avg_pool2d(raw, 5, 1, 2), mosaic, torch.full_like(raw, 0.5)):
        assert find_grid(HeldPictures(pictures)) is None
    assert find_grid(noise()) is None


def test_a_grid_cuts_and_joins_pictures_that_it_does_not_divide() -> None:
    images = torch.rand(2, 3, 21, 13, generator=torch.Generator().manual_seed(0))
    grid = Grid(6, 5)
    patches = grid.cut(images)
    assert grid.shape((21, 13)) == (4, 3)
    assert patches.shape == (24, 6, 5, 3)
    assert np.array_equal(patches[4], images[0, :, 6:12, 5:10].permute(1, 2, 0).numpy())
    assert torch.equal(grid.join(patches, (21, 13)), images)


def test_costs_of_seams_are_mahalanobis_distances_of_steps() -> None:
    """Against the definition, pixel by pixel."""
    patches = np.random.default_rng(0).random((3, 6, 5, 3)).astype(np.float32)

    def distance(last: np.ndarray, before: np.ndarray, first: np.ndarray) -> float:
        inside = last - before
        spread = np.cov(inside.T) + np.eye(3) * (3 / 255) ** 2
        steps = first - last - inside.mean(axis=0)
        return float(np.mean([step @ np.linalg.inv(spread) @ step for step in steps]))

    across, down = (
        seams.costs(np.arange(3), np.arange(3)) for seams in (Seams.right_of(patches), Seams.below(patches))
    )
    for p, q in ((0, 1), (2, 0), (1, 2)):
        one, other = patches[p], patches[q]
        expected = distance(one[:, -1], one[:, -2], other[:, 0]) * distance(other[:, 0], other[:, 1], one[:, -1])
        assert across[p, q] == pytest.approx(np.log(expected), rel=1e-3)
        expected = distance(one[-1], one[-2], other[0]) * distance(other[0], other[1], one[-1])
        assert down[p, q] == pytest.approx(np.log(expected), rel=1e-3)
    assert np.isinf(np.diagonal(across)).all()


@pytest.mark.parametrize("places", ["shuffled", "kept"])
def test_groups_and_kept_places_are_found(places: str) -> None:
    config = PatchesConfig(rows=6, columns=3, people=4, places=places)  # type: ignore[arg-type]
    release, groups = mixed(Patches(config), walkers(), 4)
    patches = GRID.cut(release)
    links = Links.of(Seams.right_of(patches), Seams.below(patches))
    found = groups_of_pictures(links, 24, CELLS, 4096)
    assert {frozenset(group.tolist()) for group in found} == {frozenset(group) for group in groups}
    assert links.keep_places(SHAPE) == (places == "kept")


def test_with_sure_neighbours_every_puzzle_is_solved() -> None:
    """Two pictures of 4 x 3 patches whose true seams are known, shuffled."""
    shape, count = (4, 3), 24
    order = np.random.default_rng(1).permutation(count)
    place = np.argsort(order)  # where patch i of the true pictures lies in the heap
    right, below = (np.full((count, count), -5, dtype=np.float32) for _ in range(2))
    for i in range(count):
        row, column = i % 12 // 3, i % 3
        if column < 2:
            right[place[i], place[i + 1]] = 5
        if row < 3:
            below[place[i], place[i + 3]] = 5
    nothing = np.zeros((count, 12), dtype=np.float32)
    answer = assemble(
        Puzzle(right, below, np.zeros((count, count), dtype=np.float32), nothing, shape), Randomness.from_seed(0)
    )
    solved = {tuple(picture) for picture in order[answer].reshape(2, 12).tolist()}
    assert solved == {tuple(range(12)), tuple(range(12, 24))}


def test_public_pictures_teach_places_and_sources_of_others() -> None:
    described = describe(GRID.cut(walkers()))
    assert (lessons().places(described, SHAPE).argmax(axis=1) == np.arange(len(described)) % CELLS).mean() > 2 / CELLS
    similar, source = lessons().same_source(described), np.arange(len(described)) // CELLS
    same = source[:, None] == source[None]
    np.fill_diagonal(same, False)
    other = source[:, None] != source[None]
    assert np.median(similar[same]) > np.median(similar[other])


@pytest.mark.parametrize(("places", "least"), [("shuffled", 0.9), ("kept", 0.95)])
def test_people_are_put_together_again(places: str, least: float) -> None:
    evidence = attacked(places)
    released = evidence.details["as released"]
    assert value(evidence, "neighbours") > least > 2 * released["neighbours"]
    assert value(evidence, "own source") > 0.9 > released["own source"]
    assert value(evidence, "rank-1") > 0.8 > released["rank-1"]
    assert evidence.details["grid"] == [6, 3]
    assert evidence.details["group sizes"] == {"4": 6}
    assert evidence.details["places kept"] == (places == "kept")


def test_compressed_releases_are_put_together_as_well() -> None:
    def jpeg(image: torch.Tensor) -> torch.Tensor:
        pixels = (image.permute(1, 2, 0).numpy() * 255).round().astype(np.uint8)
        _, data = cv2.imencode(".jpg", pixels, [*QUALITY])
        return torch.from_numpy(cv2.imdecode(data, cv2.IMREAD_COLOR)).permute(2, 0, 1).float() / 255

    evidence = Jigsaw().run(walkers_target(torch.stack([jpeg(image) for image in dealt()])))
    assert evidence.details["patches matched"] > 0.9
    assert value(evidence, "neighbours") > 0.7


@pytest.mark.parametrize("release", ["originals", "noise"])
def test_pictures_that_were_not_cut_are_not_attacked(release: str) -> None:
    raw = HeldPictures(walkers())
    pictures = raw if release == "originals" else NoisePictures(raw, Randomness.from_seed(1))
    evidence = run_gated(Jigsaw, walkers_target(pictures))
    assert evidence.missing == (NO_GRID,)


@pytest.mark.parametrize("size", [(1, 1), (2, 9), (7, 30)])
def test_pictures_too_small_to_be_cut_are_not_attacked(size: tuple[int, int]) -> None:
    small = HeldPictures(torch.rand(3, 3, *size, generator=torch.Generator().manual_seed(0)))
    for attacker in (Jigsaw(), Unmix()):
        evidence = attacker.run(walkers_target(small, originals=small, people=None, search=None))
        assert not evidence.applicable


def test_where_pieces_are_missing_the_score_says_that_it_is_too_low() -> None:
    """Half of a release, as where query and gallery are audited, but were mixed with pictures for training."""
    whole = walkers_target(dealt())
    evidence = Jigsaw().run(whole.only(np.arange(12)))
    assert evidence.details["patches matched"] < 0.9
    assert "too low" in evidence.scores[0].note
    assert "too low" not in attacked("shuffled").scores[0].note


def test_told_of_a_grid_it_leaves_originals_alone_and_finds_nothing_in_noise() -> None:
    raw = HeldPictures(walkers())
    for pictures, expected in ((raw, 1.0), (NoisePictures(raw, Randomness.from_seed(1)), 0.0)):
        evidence = Jigsaw().informed_by(attacked("shuffled")).run(walkers_target(pictures))
        assert value(evidence, "neighbours") == pytest.approx(expected, abs=0.05)


def test_pictures_of_other_sizes_are_left_out_and_counted() -> None:
    release = [*dealt()[:20], *torch.rand(4, 3, 32, 16, generator=torch.Generator().manual_seed(0))]
    evidence = Jigsaw().run(walkers_target(HeldPictures(release)))
    assert evidence.details["pictures of other sizes"] == 4
    assert evidence.details["pictures attacked"] == 20


def test_of_a_large_release_some_pictures_are_attacked_with_their_partners(monkeypatch) -> None:
    monkeypatch.setattr("veilkit.attacks.jigsaw.attack._PATCHES", 12 * CELLS)
    monkeypatch.setattr("veilkit.attacks.jigsaw.groups._SEEDS", 3)
    evidence = Jigsaw().run(walkers_target(dealt()))
    assert evidence.details["pictures attacked"] <= 12
    assert 1 <= evidence.details["pictures scored"] <= 3
    assert value(evidence, "neighbours") > 0.9


def test_neighbours_are_counted_by_what_patches_hold() -> None:
    """One picture of 2 x 3 cells with its last two columns exchanged: of 4 + 3 pairs, the 3 upright ones are left."""
    images = torch.rand(1, 3, 8, 12, generator=torch.Generator().manual_seed(0))
    grid = Grid(4, 4)
    swapped = torch.cat([images[..., :4], images[..., 8:], images[..., 4:8]], dim=3)
    truth = Truth.of(grid.cut(swapped), grid.cut(images), grid, (8, 12))
    assert truth.released.tolist() == [0, 2, 1, 3, 5, 4]
    assert truth.neighbours(np.arange(6)).tolist() == [3 / 7]
    assert truth.neighbours(np.array([0, 2, 1, 3, 5, 4])).tolist() == [1.0]
    assert truth.gathered(np.arange(6))[0].tolist() == [1.0]


def test_foreign_patches_belong_to_no_original() -> None:
    images, others = torch.rand(2, 1, 3, 8, 12, generator=torch.Generator().manual_seed(0))
    grid = Grid(4, 4)
    assert (Truth.of(grid.cut(others), grid.cut(images), grid, (8, 12)).released == -1).all()


def test_the_chance_of_neighbours_is_that_of_a_random_layout() -> None:
    assert chance_of_neighbours(1, (1, 2)) == 0.5
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(4000):
        board = rng.permutation(12).reshape(2, 2, 3)
        columns = board[:, :, :-1] % 3 < 2
        hits.append(
            ((board[:, :, 1:] == board[:, :, :-1] + 1) & columns).sum()
            + ((board[:, 1:] == board[:, :-1] + 3) & (board[:, :-1] % 6 < 3)).sum()
        )
    assert np.mean(hits) / 14 == pytest.approx(chance_of_neighbours(2, (2, 3)), rel=0.1)


def test_without_a_recogniser_neighbours_still_count() -> None:
    target: AttackTarget = walkers_target(dealt(), recogniser=None, search=None, people=None)
    assert [score.metric for score in Jigsaw().run(target).scores] == ["neighbours", "own source"]

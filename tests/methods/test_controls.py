from __future__ import annotations

import math
import time

import numpy as np
import pytest
import torch
from scipy import ndimage

from tests.conftest import random_picture
from veilkit.errors import ConfigError, DataError
from veilkit.methods import METHODS, Item
from veilkit.methods.controls import BlurConfig, MaskConfig
from veilkit.methods.mixing import groups_of_people
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

RNG = Randomness.from_seed(0)


def tensor(*pictures: np.ndarray) -> ImageBatch:
    images = torch.stack([torch.from_numpy(picture).permute(2, 0, 1) / 255 for picture in pictures])
    return ImageBatch(images, tuple(f"i{index}" for index in range(len(pictures))))


def released(name: str, images: ImageBatch, **settings: object) -> torch.Tensor:
    result = METHODS[name].configured(settings=settings).protect(images, rng=RNG).images
    assert result is not None
    return result


def test_blur_is_scipys_gaussian() -> None:
    images = tensor(random_picture(1, 64, 40))
    ours = released("blur", images, sigma=3.0, at_height=0)[0].numpy()
    radius = round(3 * 3.0)
    theirs = ndimage.gaussian_filter(images.images[0].numpy(), (0, 3, 3), mode="nearest", radius=(0, radius, radius))
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_pixelation_is_the_mean_of_each_cell_also_at_the_border() -> None:
    images = tensor(random_picture(2, 50, 27))
    ours = released("pixelate", images, cell=12, at_height=0)[0]
    for top in range(0, 50, 12):
        for left in range(0, 27, 12):
            cell = images.images[0, :, top : top + 12, left : left + 12]
            shown = ours[:, top : top + 12, left : left + 12]
            torch.testing.assert_close(shown, cell.mean((1, 2), keepdim=True).expand_as(shown))


def test_lengths_scale_with_the_height_of_the_picture() -> None:
    small = released("pixelate", tensor(random_picture(3, 128, 64)))
    assert torch.equal(small, released("pixelate", tensor(random_picture(3, 128, 64)), cell=12, at_height=0))


def test_noise_has_its_strength_and_differs_between_items() -> None:
    grey = tensor(np.full((64, 64, 3), 128, np.uint8), np.full((64, 64, 3), 128, np.uint8))
    noise = released("noise", grey, sigma=0.1) - grey.images
    assert noise.std().item() == pytest.approx(0.1, rel=0.02)
    assert abs(np.corrcoef(noise[0].ravel(), noise[1].ravel())[0, 1]) < 0.03


def test_the_mask_hides_its_box_and_nothing_else() -> None:
    images = tensor(random_picture(4, 50, 27))
    assert released("mask", images).unique().tolist() == [0.0]
    head = METHODS["mask"].configured("head").protect(images, rng=RNG).images
    assert head is not None
    rows = math.ceil(0.22 * 50)
    assert (head[:, :, :rows] == 0).all()
    assert torch.equal(head[:, :, rows:], images.images[:, :, rows:])
    mean = released("mask", images, colour="mean")
    torch.testing.assert_close(mean[0, :, 0, 0], images.images[0].mean((1, 2)))


def test_mixup_blends_each_picture_with_the_next() -> None:
    images = tensor(*(random_picture(seed) for seed in range(3)))
    mixed = released("mixup", images, ratio=0.7)
    torch.testing.assert_close(mixed[2], 0.7 * images.images[2] + 0.3 * images.images[0])


@pytest.mark.parametrize("places", ["shuffled", "kept"])
def test_patches_are_all_used_once(places: str) -> None:
    images = tensor(*(random_picture(seed, 48, 24) for seed in range(3)))
    dealt = released("patches", images, rows=4, columns=2, places=places)

    def cut(batch: torch.Tensor) -> list[bytes]:
        return [
            batch[n, :, 12 * r : 12 * r + 12, 12 * c : 12 * c + 12].contiguous().numpy().tobytes()
            for r in range(4)
            for c in range(2)
            for n in range(3)
        ]

    before, after = cut(images.images), cut(dealt)
    assert sorted(before) == sorted(after)
    assert before != after
    if places == "kept":
        for place in range(8):
            assert sorted(before[3 * place : 3 * place + 3]) == sorted(after[3 * place : 3 * place + 3])
    sources = [before.index(patch) % 3 for patch in after]
    assert all(
        len({source for source, n in zip(sources, [0, 1, 2] * 8, strict=True) if n == image}) > 1
        for image in range(3)
    )


def test_groups_hold_different_people_and_use_every_picture() -> None:
    items = [Item(f"{person}-{shot}", f"p{person}") for person in range(7) for shot in range(1 + person)]
    groups = groups_of_people(items, 3, rng=RNG, method="test")
    assert sorted(index for group in groups for index in group) == list(range(len(items)))
    for group in groups:
        people = [items[index].identity for index in group]
        assert len(people) >= 3
        assert len(set(people)) == len(people)


def test_one_person_with_most_pictures_is_spread_evenly() -> None:
    items = [Item(f"big-{shot}", "big") for shot in range(10)] + [Item(f"p{n}", f"p{n}") for n in range(6)]
    groups = groups_of_people(items, 3, rng=RNG, method="test")
    assert sorted(index for group in groups for index in group) == list(range(16))
    sizes = [len(group) for group in groups]
    assert max(sizes) - min(sizes) <= 2


def test_one_person_with_nearly_all_pictures_is_told() -> None:
    items = [Item(f"big-{shot}", "big") for shot in range(400)] + [Item(f"p{n}", f"p{n}") for n in range(6)]
    with pytest.raises(DataError, match="397 of 406 find no others"):
        groups_of_people(items, 3, rng=RNG, method="test")


def test_too_few_people_to_mix_are_told() -> None:
    with pytest.raises(DataError, match="mixes 3 different people, but the pictures show 2"):
        groups_of_people([Item("a", "p"), Item("b", "q"), Item("c", "q")], 3, rng=RNG, method="patches")
    assert len(groups_of_people([Item("a"), Item("b"), Item("c")], 3, rng=RNG, method="patches")) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: BlurConfig(sigma=0),
        lambda: BlurConfig(at_height=-1),
        lambda: MaskConfig(top=0.5, bottom=0.5),
        lambda: METHODS["pixelate"].configured(settings={"cell": 1}),
        lambda: METHODS["noise"].configured(settings={"sigma": 0}),
        lambda: METHODS["mixup"].configured(settings={"ratio": 1}),
        lambda: METHODS["patches"].configured(settings={"rows": 1, "columns": 1}),
    ],
)
def test_configurations_that_hide_nothing_are_refused(wrong) -> None:
    with pytest.raises(ConfigError):
        wrong()


@pytest.mark.parametrize(("height", "width", "sigma"), [(7, 30, 500.0), (1, 1, 400.0), (40, 1_100, 2_000.0)])
def test_a_blur_longer_than_the_picture_is_still_scipys(height: int, width: int, sigma: float) -> None:
    images = tensor(random_picture(5, height, width))
    ours = released("blur", images, sigma=sigma, at_height=0)[0].numpy()
    radius = round(3 * sigma)
    exact = images.images[0].double().numpy()
    theirs = ndimage.gaussian_filter(exact, (0, sigma, sigma), mode="nearest", radius=(0, radius, radius))
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_the_cost_of_a_blur_does_not_grow_with_its_length() -> None:
    """A radius of a hundred million pixels: a kernel of that length would take gigabytes and minutes."""
    images = tensor(random_picture(6, 2_000, 20))
    begun = time.process_time()
    blurred = released("blur", images, sigma=10_000.0, at_height=1)[0]
    assert time.process_time() - begun < 2
    # So long a Gaussian weighs what is beyond each edge alike, and all else not at all: the mean of the corners.
    corners = images.images[0][:, [0, 0, -1, -1], [0, -1, 0, -1]].mean(dim=1)
    torch.testing.assert_close(blurred, corners[:, None, None].expand_as(blurred), atol=1e-3, rtol=0)


def test_a_very_long_row_is_blurred_as_by_scipy() -> None:
    """Longer than what is transformed as it is: 20,011 is prime, and so is no good length for a transform."""
    images = tensor(random_picture(7, 3, 20_011 - 2 * 600))
    ours = released("blur", images, sigma=200.0, at_height=0)[0].numpy()
    exact = images.images[0].double().numpy()
    theirs = ndimage.gaussian_filter(exact, (0, 200.0, 200.0), mode="nearest", radius=(0, 600, 600))
    np.testing.assert_allclose(ours, theirs, atol=1e-6)

"""k-same: one face for a whole group, and nobody's own."""

from __future__ import annotations

import torch
from torch import Tensor

from veilkit.methods.base import Item
from veilkit.methods.faces.ksame import KSame
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

RNG = Randomness.from_seed(0)


def method(**more: object) -> KSame:
    return KSame.configured("crops", {"people": 3, "size": 48, **more})


def crops(number: int = 3) -> Tensor:
    return torch.rand(number, 3, 64, 64, generator=torch.Generator().manual_seed(0)) * 0.2 + 0.4


def made(pictures: Tensor, **more: object) -> Tensor:
    items = tuple(f"picture {number}" for number in range(len(pictures)))
    images = method(**more).protect(ImageBatch(pictures, items), rng=RNG).images
    assert images is not None
    return images


def test_everybody_of_a_group_gets_the_same_face_in_colours_of_their_own() -> None:
    released = made(crops())
    middle = released[:, :, 24:40, 24:40]
    standard = (middle - middle.mean((2, 3), keepdim=True)) / middle.std((2, 3), keepdim=True)
    torch.testing.assert_close(standard[0], standard[1], atol=0.05, rtol=0)
    assert float((crops()[0] - crops()[1])[:, 24:40, 24:40].abs().mean()) > 0.03


def test_the_mean_varies_less_than_one_face_before_its_colours_are_matched() -> None:
    pictures = crops(6)
    own = method()._largest(pictures[0])
    assert own is not None
    mean = torch.stack([crop for each in pictures if (crop := method()._largest(each)) is not None]).mean(0)
    assert float(mean.std()) < float(own.std())


def test_groups_hold_different_people() -> None:
    items = [Item(f"{number}", f"person {number % 4}") for number in range(8)]
    for group in method().groups(items, rng=RNG):
        assert len(group) >= 3
        assert len({items[place].identity for place in group}) >= 3


def test_a_face_that_is_alone_in_its_group_is_hidden() -> None:
    released = made(crops(1))
    assert float(released[:, :, 16:48, 16:48].abs().max()) == 0

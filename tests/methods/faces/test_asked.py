"""What somebody asked for comes before what a detector says; who is to be spared is spared only where it is sure."""

from __future__ import annotations

from typing import cast

import pytest
import torch
from torch import Tensor

from veilkit.errors import DataError
from veilkit.experts.base import Detections, Detector, Embedder, ExpertInfo
from veilkit.media.writing import to_pixels
from veilkit.methods import ChangesFaces
from veilkit.methods.faces.controls import FaceBlur, FaceBlurConfig
from veilkit.methods.faces.people import LEAST_SIDE, OTHER, SAME, People
from veilkit.rng import Randomness
from veilkit.types import ImageBatch, Region

FACES = ((20.0, 20.0, 80.0, 80.0), (120.0, 20.0, 180.0, 80.0))
POINTS = torch.tensor([[18.0, 22], [42, 22], [30, 34], [20, 46], [40, 46]])


class Fixed:
    """Sees faces where it is told that there are some."""

    def __init__(self, *boxes: tuple[float, float, float, float]) -> None:
        self._boxes = boxes
        self.info = ExpertInfo("fixed", "detector", 0, "0" * 64, False, "none", "made here", "built-in")
        self.name = "fixed"

    def detect(self, images: Tensor) -> list[Detections]:
        points = [POINTS * (box[2] - box[0]) / 60 + torch.tensor(box[:2]) for box in self._boxes]
        found = Detections(torch.tensor(self._boxes), torch.ones(len(self._boxes)), torch.stack(points))
        return [found] * len(images)


class Middle:
    """Tells faces apart by the red of their middles."""

    dim = 2
    info = ExpertInfo("middle", "embedder", 2, "1" * 64, False, "none", "made here", "built-in")

    def embed(self, images: Tensor) -> Tensor:
        return torch.stack([images[:, 0, 60:90, 60:90].mean((1, 2)), torch.zeros(len(images))], 1)


def blurring(*boxes: tuple[float, float, float, float]) -> FaceBlur:
    return FaceBlur(FaceBlurConfig(second="none"), finder=cast(Detector, Fixed(*boxes)))


def picture(*reds: float) -> Tensor:
    image = torch.rand(3, 100, 200, generator=torch.Generator().manual_seed(0)) * 0.02
    for (left, top, right, bottom), red in zip(FACES, reds, strict=False):
        image[0, int(top) : int(bottom), int(left) : int(right)] += red
    return image


def released(method: FaceBlur, image: Tensor, *regions: Region) -> tuple[Tensor, dict[str, int]]:
    made = method.protect(ImageBatch(image[None], ("a",), regions=(regions,)), rng=Randomness.from_seed(0))
    assert made.images is not None
    assert made.reports is not None
    return made.images[0], made.reports[0].details["counts"]


def untouched(image: Tensor, after: Tensor, box: tuple[float, float, float, float]) -> bool:
    left, top, right, bottom = map(int, box)
    return torch.equal(image[:, top:bottom, left:right], after[:, top:bottom, left:right])


def test_a_box_hides_spares_or_protects_whatever_was_found() -> None:
    image = picture()
    after, counts = released(blurring(*FACES), image, Region(FACES[0], "spare"))
    assert untouched(image, after, FACES[0])
    assert not untouched(image, after, FACES[1])
    assert counts == {"found": 2, "changed": 1, "hidden": 0, "doubtful": 0, "spared": 1}
    after, counts = released(blurring(*FACES), image, Region(FACES[0], "hide"))
    assert not after[:, 20:80, 20:80].any()
    assert counts == {"found": 2, "changed": 1, "hidden": 1, "doubtful": 0}
    after, counts = released(blurring(FACES[0]), image, Region(FACES[1], "protect"))
    assert not untouched(image, after, FACES[1])
    assert counts == {"found": 2, "changed": 2, "hidden": 0, "doubtful": 0}
    after, _ = released(blurring(*FACES), image, Region(FACES[0], "spare"), Region(FACES[0], "hide"))
    assert not after[:, 20:80, 20:80].any()  # of two wishes the one that protects more


def test_a_box_elsewhere_or_of_no_size_changes_nothing_else() -> None:
    image = picture()
    plain, _ = released(blurring(*FACES), image)
    after, counts = released(blurring(*FACES), image, Region((90, 90, 95, 95), "spare"), Region((5, 5, 5, 5), "hide"))
    assert torch.equal(plain, after)
    assert counts["found"] == 2


def test_only_who_surely_is_the_person_is_spared() -> None:
    examples = torch.tensor([[0.5, 0.0]])
    method = blurring(*FACES)
    method.people = People(cast(Embedder, Middle()), examples, torch.empty(0, 2))
    assert isinstance(method, ChangesFaces)
    for reds, spared in (((0.5, 0.0), {0}), ((0.5, 0.55), {0}), ((0.5 - SAME - 0.05, 0.0), set())):
        image = picture(*reds)
        after, _ = released(method, image)
        assert {place for place in (0, 1) if untouched(image, after, FACES[place])} == spared, reds
    small = (20.0, 20.0, 20.0 + LEAST_SIDE - 2, 20.0 + LEAST_SIDE - 2)
    method = blurring(small)
    method.people = People(cast(Embedder, Middle()), examples, torch.empty(0, 2))
    after, _ = released(method, picture(0.5))
    assert not untouched(picture(0.5), after, small)


def test_where_one_person_is_to_be_protected_only_those_surely_others_are_left() -> None:
    method = blurring(*FACES)
    method.people = People(cast(Embedder, Middle()), torch.empty(0, 2), torch.tensor([[0.1, 0.0]]))
    image = picture(0.1 + OTHER + 0.1, 0.1 + OTHER - 0.1)
    after, counts = released(method, image)
    assert untouched(image, after, FACES[0])
    assert not untouched(image, after, FACES[1])
    assert counts["spared"] == 1
    after, _ = released(method, image, Region(FACES[0], "protect"))
    assert not untouched(image, after, FACES[0])
    assert method.fingerprint() != blurring(*FACES).fingerprint()
    assert method.public_config()["only_examples"] == 1


def test_in_a_video_a_person_is_spared_in_those_frames_in_which_the_face_is_surely_theirs() -> None:
    method = blurring(*FACES)
    method.people = People(cast(Embedder, Middle()), torch.tensor([[0.5, 0.0]]), torch.empty(0, 2))
    for reds, ends in (((0.5, 0.0), {0: "spared", 1: "changed"}), ((0.0, 0.0), {0: "changed", 1: "changed"})):
        image = picture(*reds)
        frame = to_pixels(image)
        tracks = list(enumerate(method.seen_in(frame, "full")))
        after, outcomes = method.treated(frame, tracks, "clip", rng=Randomness.from_seed(0))
        assert outcomes == ends
        for place, end in ends.items():
            left, top, right, bottom = map(int, FACES[place])
            same = bool((after[top:bottom, left:right] == frame[top:bottom, left:right]).all())
            assert same == (end == "spared")


def test_regions_are_given_for_each_image() -> None:
    with pytest.raises(DataError, match="regions for each image"):
        ImageBatch(torch.zeros(2, 3, 4, 4), ("a", "b"), regions=((),))

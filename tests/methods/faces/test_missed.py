"""What a second finder saw: missed faces, doubtful regions, and what becomes of both."""

from __future__ import annotations

import pytest
import torch

from tests.experts.faces_of_nobody import drawn
from tests.methods.disguises import KnownFaces
from veilkit.errors import RefusedImage
from veilkit.experts.base import Detections
from veilkit.experts.pixel_detector import Pixels
from veilkit.experts.thorough import Part, ThoroughFinder
from veilkit.methods.faces.controls import FaceBlur, FaceBlurConfig
from veilkit.methods.faces.method import DOUBTED, DOUBTFUL, MISSED, NO_FACE, missed_faces
from veilkit.methods.faces.pasting import pixelated
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

KNOWN = (0.0, 0.0, 50.0, 50.0)


def found(*boxes: tuple[float, float, float, float], scores: tuple[float, ...]) -> Detections:
    return Detections(torch.tensor(boxes), torch.tensor(scores), torch.zeros(len(boxes), 0, 2))


class Suspicious(ThoroughFinder):
    """Says what it was told to say."""

    def __init__(self, detections: Detections) -> None:
        super().__init__(Part(KnownFaces([]), 0.5))
        self._said = detections

    def find(self, pixels: Pixels) -> Detections:
        return self._said


def test_sure_and_doubtful_faces_are_told_apart() -> None:
    seen = found((60.0, 60.0, 90.0, 90.0), (110.0, 0.0, 140.0, 30.0), scores=(0.9, 0.3))
    assert [(each.box[0], each.doubtful) for each in missed_faces(seen, [KNOWN], 0.5)] == [(60, False), (110, True)]


def test_what_is_known_and_parts_of_it_are_not_missed() -> None:
    part = (30.0, 30.0, 55.0, 55.0)
    assert missed_faces(found((2.0, 2.0, 50.0, 50.0), part, scores=(0.9, 0.3)), [KNOWN], 0.5) == []
    assert len(missed_faces(found(part, scores=(0.9,)), [KNOWN], 0.5)) == 1  # surely a face: somebody behind


def test_doubtful_regions_are_hidden_and_counted() -> None:
    image = torch.rand(3, 80, 160, generator=torch.Generator().manual_seed(0))
    seen = found((60.0, 40.0, 80.0, 60.0), (120.0, 10.0, 140.0, 30.0), scores=(0.9, 0.3))
    method = FaceBlur(finder=KnownFaces([KNOWN]), second=Suspicious(seen))
    release = method.protect(ImageBatch(image[None], ("a",)), rng=Randomness.from_seed(0))
    assert release.images is not None
    assert release.reports is not None
    assert (release.images[0][:, 10:30, 120:140] == 0).all()
    assert release.reports[0].details["counts"] == {"found": 2, "changed": 1, "hidden": 1, "doubtful": 1}
    assert release.reports[0].notes == tuple(sorted([MISSED, DOUBTFUL]))


@pytest.mark.parametrize("unfound", ["pixelate", "keep"])
def test_doubt_alone_is_no_face_found(unfound: str) -> None:
    image = torch.rand(3, 80, 80, generator=torch.Generator().manual_seed(0))
    second = Suspicious(found((20.0, 20.0, 40.0, 40.0), scores=(0.3,)))
    config = FaceBlurConfig(unfound=unfound)  # type: ignore[arg-type]
    method = FaceBlur(config, finder=KnownFaces([]), second=second)
    release = method.protect(ImageBatch(image[None], ("a",)), rng=Randomness.from_seed(0))
    assert release.images is not None
    assert release.reports is not None
    told = release.reports[0].notes
    assert DOUBTFUL in told
    assert (NO_FACE["pixelate"] in told) is (unfound == "pixelate")
    assert NO_FACE["keep"] not in told
    assert not torch.equal(release.images[0][:, 20:40, 20:40], image[:, 20:40, 20:40])
    assert torch.equal(release.images[0][:, 60:, 60:], image[:, 60:, 60:]) is (unfound == "keep")


@pytest.mark.parametrize("how", ["upright", "on its side", "upside down", "dark", "half"])
def test_no_face_leaves_untouched_beside_a_found_one(how: str) -> None:
    images, truths = drawn(2)
    beside, five = images[1], torch.from_numpy(truths[1].five).float()
    side = beside.shape[1]
    if how == "on its side":
        beside, five = beside.rot90(1, (1, 2)), torch.stack([five[:, 1], side - five[:, 0]], 1)
    elif how == "upside down":
        beside, five = beside.rot90(2, (1, 2)), side - five
    elif how == "dark":
        beside = beside * 0.15
    elif how == "half":
        beside, five = beside[:, :, : round(float(five[2, 0]))], five[[0, 3]]
    picture = torch.cat([images[0], beside], 2).contiguous()
    release = FaceBlur().protect(ImageBatch(picture[None], ("a",)), rng=Randomness.from_seed(0))
    assert release.images is not None
    made = release.images[0]
    low, high = five.amin(0).round().int().tolist(), five.amax(0).round().int().tolist()
    rows, columns = slice(low[1], high[1] + 1), slice(side + low[0], side + high[0] + 1)
    changed = (made - picture)[:, rows, columns].abs().amax(0) > 0.5 / 255
    assert changed.float().mean() > 0.5


def in_doubt(on_doubt: str) -> tuple[FaceBlur, torch.Tensor]:
    image = torch.rand(3, 80, 160, generator=torch.Generator().manual_seed(0))
    second = Suspicious(found((120.0, 10.0, 140.0, 30.0), scores=(0.3,)))
    return FaceBlur(FaceBlurConfig(on_doubt=on_doubt), finder=KnownFaces([KNOWN]), second=second), image  # type: ignore[arg-type]


def test_a_picture_with_something_doubtful_can_be_pixelated_as_a_whole() -> None:
    method, image = in_doubt("pixelate-picture")
    release = method.protect(ImageBatch(image[None], ("a",)), rng=Randomness.from_seed(0))
    assert release.images is not None
    assert release.reports is not None
    assert torch.equal(release.images[0], pixelated(image, 8))
    assert DOUBTED in release.reports[0].notes
    assert release.reports[0].details["counts"]["doubtful"] == 1


def test_or_refused() -> None:
    method, image = in_doubt("refuse")
    with pytest.raises(RefusedImage, match="something in it may be a face"):
        method.protect(ImageBatch(image[None], ("a",)), rng=Randomness.from_seed(0))


def test_the_originals_in_memory_stay_as_they_are() -> None:
    method, image = in_doubt("hide")
    before = image.clone()
    method.protect(ImageBatch(image[None], ("a",)), rng=Randomness.from_seed(0))
    assert torch.equal(image, before)

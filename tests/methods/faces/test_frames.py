"""Methods on faces along the frames of a video."""

from __future__ import annotations

import numpy as np
import torch

from tests.methods.disguises import KnownFaces, group_picture, tiny_disguise
from veilkit.methods.base import FollowsFaces
from veilkit.methods.faces.controls import FaceBlur
from veilkit.rng import Randomness


def frame(light: float = 1.0) -> np.ndarray:
    return np.asarray((group_picture()[0] * light).permute(1, 2, 0).mul(255).round().byte().numpy())


def test_a_track_has_one_synthetic_identity_in_all_frames_and_another_track_another() -> None:
    _, boxes, points = group_picture()
    method = tiny_disguise(finder=KnownFaces(boxes, points)).with_one_identity()
    assert isinstance(method, FollowsFaces)
    given: list[torch.Tensor] = []
    method.model.swapper.register_forward_hook(lambda _, inputs, __: given.append(inputs[1].clone()))
    face = method.seen_in(frame(), "full")[0]
    for light, number in ((1.0, 0), (0.7, 0), (1.0, 1)):
        _, outcomes = method.treated(frame(light), [(number, face)], "clip", rng=Randomness.from_seed(0))
        assert outcomes == {number: "changed"}
    assert (given[0] == given[1]).all()
    assert (given[0] != given[2]).any()


def test_a_face_is_changed_in_its_place_and_nothing_far_from_it() -> None:
    _, boxes, points = group_picture()
    method, pixels = FaceBlur(finder=KnownFaces(boxes, points)), frame()
    face = method.seen_in(pixels, "full")[0]
    left, top, right, bottom = (round(each) for each in face.box)
    made, _ = method.treated(pixels, [(0, face)], "clip", rng=Randomness.from_seed(0))
    assert (made[top:bottom, left:right] != pixels[top:bottom, left:right]).mean() > 0.5
    far = np.ones(pixels.shape[:2], bool)
    side = max(right - left, bottom - top)
    far[max(0, top - side) : bottom + side, max(0, left - side) : right + side] = False
    assert (made[far] == pixels[far]).all()


def test_a_frame_that_is_shrunk_to_be_searched_has_its_boxes_in_full_size() -> None:
    class Corner(KnownFaces):
        """One face in the lower right quarter of whatever it is shown."""

        def detect(self, images: torch.Tensor) -> list:  # type: ignore[type-arg]
            height, width = images.shape[2:]
            self._boxes = torch.tensor([[width / 2, height / 2, width, height]])
            self._points = torch.zeros(1, 0, 2)
            return super().detect(images)

    method = FaceBlur(finder=Corner([]))
    (seen,) = method.seen_in(np.zeros((1080, 1920, 3), np.uint8), "small")
    np.testing.assert_allclose(seen.box, (960, 540, 1920, 1080), atol=3)

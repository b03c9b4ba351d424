"""Methods on faces along the frames of a video: what is seen in a frame, and the faces of tracks changed in it.

Only the surroundings of a face are worked on: a frame is large, and there are many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.errors import RefusedImage
from veilkit.experts.base import Detector, PointOrder
from veilkit.experts.centerface import CenterFace
from veilkit.media.arrays import as_tensor
from veilkit.media.tracks import Box, Seen, overlap
from veilkit.media.writing import to_pixels
from veilkit.methods.base import FrameLook
from veilkit.methods.faces.pasting import hidden
from veilkit.rng import Randomness

if TYPE_CHECKING:
    from veilkit.methods.faces.method import FaceMethod, FoundFace

_HIDDEN_AROUND = 0.2
_WEAK = 0.15  # CenterFace's score from which on it sees a face where one was to be expected
_SAME = 0.3
_SMALL = 420_000  # pixels of a frame that is shrunk to be searched: 864 x 486


def seen_in(method: FaceMethod[Any], pixels: NDArray[np.uint8], look: FrameLook) -> list[Seen]:
    """What the method's finders see in a frame (H, W, 3); see `FollowsFaces`."""
    height, width = pixels.shape[:2]
    scale = min(1.0, math.sqrt(_SMALL / (height * width))) if look == "small" else 1.0
    if scale < 1:
        size = max(1, round(width * scale)), max(1, round(height * scale))
        pixels = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
    pixels = np.ascontiguousarray(pixels)
    faces, missed = method.look(as_tensor(pixels), twice=False, pixels=pixels)
    weak = _weak(method.finder, pixels, faces)
    if look in ("again", "twice"):
        _, missed = method.look(as_tensor(pixels), pixels=pixels, quick=look == "again")
    back = np.array([width / pixels.shape[1], height / pixels.shape[0]])
    seen = [
        Seen(_scaled(face.box, back), 2, None if face.points is None else face.points.numpy() * back, face.order)
        for face in faces
    ]
    seen += [Seen(_scaled(each.box, back), 0 if each.doubtful else 1) for each in missed]
    return seen + [Seen(_scaled(box, back), 0, weak=True) for box in weak]


def _weak(finder: Detector, pixels: NDArray[np.uint8], faces: Sequence[FoundFace]) -> list[Box]:
    """Where the finder sees a face that it is not sure of; only CenterFace says so at no further cost."""
    if not isinstance(finder, CenterFace):
        return []
    boxes: list[Box] = [
        (box[0], box[1], box[2], box[3]) for box in finder.doubting(_WEAK).find(pixels).boxes.tolist()
    ]
    return [box for box in boxes if all(overlap(box, face.box) < _SAME for face in faces)]


@torch.no_grad()
def treated(
    method: FaceMethod[Any],
    pixels: NDArray[np.uint8],
    tracks: Sequence[tuple[int, Seen]],
    item: str,
    *,
    rng: Randomness,
) -> tuple[NDArray[np.uint8], dict[int, str]]:
    """A frame (H, W, 3) with the face of each track changed or hidden, and what became of each.

    item: the video's name; a track has one identity in all frames. Faces are changed the largest first; hiding comes
    last, so that no crop brings back a neighbour's face.
    """
    from veilkit.methods.faces.method import DOUBTFUL, FoundFace, area

    result, outcomes, to_hide = pixels.copy(), dict[int, str](), []
    known = _known(method, pixels, tracks)
    for number, seen in sorted(tracks, key=lambda each: (-area(each[1].box), each[0])):
        part = _region(result, seen.box, method.reach)
        if not part.size:
            continue
        if number in known:
            outcomes[number] = "spared"
            continue
        if seen.certainty < 2:
            to_hide.append(seen.box)
            outcomes[number] = DOUBTFUL if seen.certainty == 0 else "hidden"
            continue
        points = None if seen.points is None else torch.from_numpy(seen.points)
        left, top = _corner(result, seen.box, method.reach)
        face = FoundFace(
            _moved(seen.box, -left, -top),
            None if points is None else points - points.new_tensor([left, top]),
            cast(PointOrder, seen.order), number, f"{item}\0track {number}",
        )  # fmt: skip
        changed = method.change(as_tensor(part), face, item, rng=rng)
        if changed.picture is None:
            to_hide.append(seen.box)
            outcomes[number] = "hidden"
        else:
            part[:] = to_pixels(changed.picture)
            outcomes[number] = "changed"
    if DOUBTFUL in outcomes.values() and method.config.on_doubt == "refuse":
        raise RefusedImage("something in it may be a face: look at it, or choose on_doubt=hide")
    if DOUBTFUL in outcomes.values() and method.config.on_doubt == "pixelate-picture":
        return method.pixelated_frame(pixels), outcomes
    for box in to_hide:
        part = _region(result, box, _HIDDEN_AROUND)
        left, top = _corner(result, box, _HIDDEN_AROUND)
        part[:] = to_pixels(hidden(as_tensor(part), _moved(box, -left, -top), method.config.hide))
    return result, outcomes


def _known(method: FaceMethod[Any], pixels: NDArray[np.uint8], tracks: Sequence[tuple[int, Seen]]) -> set[int]:
    """The tracks whose face is surely that of a person to be left as they are, in this very frame.

    Each frame is asked by itself: where two people cross, a track may go on with the other one.
    """
    from veilkit.methods.faces.method import FoundFace

    if method.people is None:
        return set()
    faces = [
        FoundFace(seen.box, torch.from_numpy(seen.points), cast(PointOrder, seen.order), number, None)
        for number, seen in tracks
        if seen.certainty == 2 and seen.points is not None
    ]
    return method.people.known(as_tensor(pixels), faces) if faces else set()


def _region(pixels: NDArray[np.uint8], box: Box, around: float) -> NDArray[np.uint8]:
    """The part of a frame around a box: a view of it."""
    left, top = _corner(pixels, box, around)
    margin = around * max(box[2] - box[0], box[3] - box[1])
    return pixels[top : max(0, math.ceil(box[3] + margin)), left : max(0, math.ceil(box[2] + margin))]


def _corner(pixels: NDArray[np.uint8], box: Box, around: float) -> tuple[int, int]:
    margin = around * max(box[2] - box[0], box[3] - box[1])
    return max(0, math.floor(box[0] - margin)), max(0, math.floor(box[1] - margin))


def _scaled(box: Box, back: NDArray[np.float64]) -> Box:
    return box[0] * back[0], box[1] * back[1], box[2] * back[0], box[3] * back[1]


def _moved(box: Box, x: float, y: float) -> Box:
    return box[0] + x, box[1] + y, box[2] + x, box[3] + y

"""A detector that looks several times: at turned pictures, beyond their edges, and with little to go on.

Detectors know upright faces that are all in the picture. This one also finds faces that lie on their side or stand
on their head, and faces cut in half by the edge of the picture: mirrored at the edge, half a face is a whole one.
It tells where something may be a face, in boxes without points.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.experts.base import Detections, Detector, ExpertInfo, check_images, refuse_gradient
from veilkit.experts.search_size import resized, search_size

_MARGIN = 0.25  # of the shorter side, as far as a picture is mirrored beyond its edges
_MOST_PIXELS = 4_000_000
_ONE_FACE = 0.2  # of two boxes of different turns (intersection over union), from which on they are one face
_LEAST_INSIDE = 0.2  # of a box's area, for a face that is cut off by the edge


class ThoroughFinder(Detector):
    """Looks for faces in each picture, mirrored beyond its edges, and in the picture turned by 90, 180, 270 degrees.

    detector: should answer with doubtful faces too. certain: the score from which on a face is none of these; faces
    across the edge count from there on alone, as mirrors make things that look like faces. Larger pictures than
    `most_pixels` are shrunk to that.
    """

    def __init__(self, detector: Detector, *, certain: float, most_pixels: int = _MOST_PIXELS) -> None:
        self._detector, self.certain, self._most_pixels = detector, certain, most_pixels

    @property
    def info(self) -> ExpertInfo:
        """Who this finder is: the detector, and how it is asked."""
        known = self._detector.info
        facts = (
            f"thorough {known.fingerprint} {self.certain} {self._most_pixels} {_MARGIN} {_ONE_FACE} {_LEAST_INSIDE}"
        )
        return replace(known, name=f"{known.name}-thorough", sha256=hashlib.sha256(facts.encode()).hexdigest())

    def detect(self, images: Tensor) -> list[Detections]:
        """float32 (N, 3, H, W) in [0, 1] -> what may be faces in each image; boxes of one face may overlap."""
        check_images(images)
        refuse_gradient(images, self)
        return [self._detect_one(image) for image in images.detach()]

    def _detect_one(self, image: Tensor) -> Detections:
        height, width = image.shape[1:]
        size = search_size(height, width, self._most_pixels)
        if size is None:
            return Detections(torch.zeros(0, 4), torch.zeros(0), torch.zeros(0, 0, 2))
        seen = resized(image, size)
        passes = [self._beyond_edges(seen), *(self._turned(seen, quarters) for quarters in (1, 2, 3))]
        boxes = torch.cat([boxes for boxes, _ in passes])
        scores = torch.cat([scores for _, scores in passes])
        turns = torch.cat([torch.full((len(found),), turn) for turn, (_, found) in enumerate(passes)])
        kept = surest_turn(boxes, scores, turns, self.certain)
        boxes, scores = boxes[kept], scores[kept]
        boxes = boxes * torch.tensor([width / size[1], height / size[0]]).repeat(2)
        return Detections(boxes, scores, torch.zeros(len(boxes), 0, 2))

    def _turned(self, image: Tensor, quarters: int) -> tuple[Tensor, Tensor]:
        """Boxes (K, 4) and scores (K,) found in the image turned by so many quarters, against the clock."""
        found = self._detector.detect(image.rot90(quarters, (1, 2)).contiguous()[None])[0]
        return turned_back(found.boxes, quarters, image.shape[1], image.shape[2]), found.scores

    def _beyond_edges(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Boxes (K, 4), cut to the image, and scores (K,) found in it and across its edges."""
        height, width = image.shape[1:]
        margin = int(_MARGIN * min(height, width))
        found = self._detector.detect(F.pad(image[None], (margin,) * 4, mode="reflect"))[0]
        whole = found.boxes - margin
        sides = whole.new_tensor([width, height, width, height])
        inside = whole.clamp(min=0).minimum(sides)
        share = _areas(inside) / _areas(whole).clamp(min=1e-9)
        kept = (share >= 1) | ((share >= _LEAST_INSIDE) & (found.scores >= self.certain))
        return inside[kept], found.scores[kept]


def turned_back(boxes: Tensor, quarters: int, height: int, width: int) -> Tensor:
    """Boxes (K, 4) in a picture that was turned by `quarters` against the clock, as they lie in the picture itself.

    height, width: of the picture itself.
    """
    left, top, right, bottom = boxes.unbind(1)
    if quarters % 4 == 1:
        return torch.stack([width - bottom, left, width - top, right], 1)
    if quarters % 4 == 2:
        return torch.stack([width - right, height - bottom, width - left, height - top], 1)
    if quarters % 4 == 3:
        return torch.stack([top, height - right, bottom, height - left], 1)
    return boxes


def surest_turn(boxes: Tensor, scores: Tensor, turns: Tensor, certain: float) -> Tensor:
    """Which boxes (K, 4) to keep, (K,): a face is found upside down as well, as its mouth looks like eyes.

    A box goes where a surer one, which is certain, was found at nearly the same place in another turn.
    """
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(2)
    areas = _areas(boxes)
    overlaps = shared / (areas[:, None] + areas[None] - shared).clamp(min=1e-9)
    surer = (scores[None] > scores[:, None]) & (scores[None] >= certain)
    other = turns[None] != turns[:, None]
    return ~(surer & other & (overlaps > _ONE_FACE)).any(1)


def _areas(boxes: Tensor) -> Tensor:
    return (boxes[:, 2:] - boxes[:, :2]).clamp(min=0).prod(1)

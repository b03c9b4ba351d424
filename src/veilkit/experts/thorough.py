"""A detector that looks several times: at turned pictures, larger and smaller ones, and beyond their edges.

Detectors know upright faces of some size that are all in the picture. This one also finds faces that lie on their
side or stand on their head, tiny ones, and faces cut in half by the edge of the picture: mirrored at the edge, half a
face is a whole one. It tells where something may be a face, in boxes without points.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.experts.base import Detections, Detector, ExpertInfo
from veilkit.experts.pixel_detector import PixelDetector, Pixels, ask, nothing, resized
from veilkit.experts.search_size import search_size

_MARGIN = 0.25  # of the shorter side, as far as a picture is mirrored beyond its edges
_MOST_PIXELS = 4_000_000
_ONE_FACE = 0.2  # of two boxes of different turns (intersection over union), from which on they are one face
_LEAST_INSIDE = 0.2  # of a box's area, for a face that is cut off by the edge

Floats = NDArray[np.float32]
Least: TypeAlias = tuple[tuple[float, float], ...]
"""Sides in pixels, each with the score that boxes up to it need."""


@dataclass(frozen=True, slots=True)
class Look:
    """One way to look at a picture: turned by so many degrees, clockwise, and enlarged or shrunk.

    mirrored: beyond its edges as well. most_pixels: of what is looked at; larger pictures are shrunk to that.
    """

    degrees: int = 0
    scale: float = 1.0
    mirrored: bool = False
    most_pixels: int = _MOST_PIXELS


QUARTERS = (Look(0, mirrored=True), Look(90), Look(180), Look(270))


@dataclass(frozen=True, slots=True)
class Part:
    """A detector, which should answer with doubtful faces too, and how it looks.

    certain: the score from which on a face is none of these; faces across the edge count from there on alone, as
    mirrors make things that look like faces. least: a small doubtful face hides little, if it is none. Without, the
    detector's own least score holds for all.
    """

    detector: Detector
    certain: float
    looks: tuple[Look, ...] = QUARTERS
    least: Least = ()


class ThoroughFinder(PixelDetector):
    """Looks for faces with each of its parts in turn; scores are made alike: 0.5 is the least of a sure face."""

    certain = 0.5

    def __init__(self, *parts: Part) -> None:
        self.parts = parts

    @property
    def info(self) -> ExpertInfo:
        """Who this finder is: the detectors, and how they are asked."""
        known = [part.detector.info for part in self.parts]
        asked = [
            (info.fingerprint, part.certain, part.least, *map(astuple, part.looks))
            for info, part in zip(known, self.parts, strict=True)
        ]
        facts = f"thorough {asked} {_MARGIN} {_ONE_FACE} {_LEAST_INSIDE}"
        name = "-".join(dict.fromkeys(info.name for info in known))
        return replace(known[0], name=f"{name}-thorough", sha256=hashlib.sha256(facts.encode()).hexdigest())

    def find(self, pixels: Pixels) -> Detections:
        """What may be faces in a picture (H, W, 3); boxes of one face may overlap."""
        boxes, scores, turns = [], [], []
        for part in self.parts:
            for look in part.looks:
                seen, sure = looked(part, look, pixels)
                boxes.append(seen)
                scores.append(sure)
                turns += [look.degrees] * len(seen)
        if not turns:
            return nothing()
        every, surest = torch.from_numpy(np.concatenate(boxes)), torch.from_numpy(np.concatenate(scores))
        kept = surest_turn(every, surest, torch.tensor(turns), self.certain)
        return Detections(every[kept], surest[kept], torch.zeros(int(kept.sum()), 0, 2))


def looked(part: Part, look: Look, pixels: Pixels) -> tuple[Floats, Floats]:
    """Boxes (K, 4) in the picture, and scores (K,) of which 0.5 is the least sure one, that one look has found."""
    height, width = pixels.shape[:2]
    none = np.zeros((0, 4), np.float32), np.zeros(0, np.float32)
    limit = search_size(height, width, round(look.most_pixels / look.scale**2))
    scale = 0.0 if limit is None else look.scale * limit[0] / height
    if look.scale > 1 >= scale or search_size(round(height * scale), round(width * scale), look.most_pixels) is None:
        return none
    shown, matrix = turned(pixels, look.degrees, scale)
    margin = int(_MARGIN * min(shown.shape[:2])) if look.mirrored else 0
    found = ask(part.detector, _mirrored(shown, margin) if margin else shown)
    if not len(found.scores):
        return none
    boxes = turned_back(found.boxes.numpy() - margin, matrix)
    inside = boxes.clip(0, [width, height, width, height]).astype(np.float32)
    scores = found.scores.numpy()
    share = _areas(inside) / np.maximum(_areas(boxes), 1e-9)
    kept = (share >= 0.999) | ((share >= _LEAST_INSIDE) & ((scores >= part.certain) | (margin == 0)))
    if part.least:
        sides = np.sqrt(_areas(inside))
        kept &= scores >= np.select([sides <= side for side, _ in part.least], [score for _, score in part.least], 1)
    below = 0.5 * scores / part.certain
    above = 0.5 + 0.5 * (scores - part.certain) / max(1 - part.certain, 1e-9)
    return inside[kept], np.where(scores < part.certain, below, above)[kept].astype(np.float32)


def turned(pixels: Pixels, degrees: int, scale: float) -> tuple[Pixels, Floats]:
    """The picture turned clockwise and scaled, whole, and the matrix (2, 3) from the picture to it."""
    import cv2

    shown = resized(pixels, (max(1, round(len(pixels) * scale)), max(1, round(pixels.shape[1] * scale))))
    across, down = shown.shape[1] / pixels.shape[1], shown.shape[0] / pixels.shape[0]
    height, width = shown.shape[:2]
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    high, wide = (math.ceil(round(a * abs(cosine) + b * abs(sine), 6)) for a, b in ((height, width), (width, height)))
    turn = np.array([[cosine, -sine], [sine, cosine]])
    shift = np.array([wide / 2, high / 2]) - turn @ [width / 2, height / 2]
    if degrees % 90 == 0 and degrees % 360:  # not upright: a detector knows its last picture again
        shown = np.ascontiguousarray(np.rot90(shown, -(degrees // 90)))
    elif degrees % 360:
        half = shift + turn @ [0.5, 0.5] - 0.5  # OpenCV counts from the middle of the first pixel
        warped = cv2.warpAffine(shown, np.concatenate([turn, half[:, None]], 1), (wide, high))
        shown = np.asarray(warped, np.uint8)
    return shown, np.concatenate([turn * [across, down], shift[:, None]], 1).astype(np.float32)


def turned_back(boxes: Floats, matrix: Floats) -> Floats:
    """Boxes (K, 4) found in a turned picture, as they lie in the picture itself.

    A box that was turned by half a quarter becomes upright around the same middle, as large as before.
    """
    back = np.linalg.inv(matrix[:, :2])
    middles = ((boxes[:, :2] + boxes[:, 2:]) / 2 - matrix[:, 2]) @ back.T
    halves = (boxes[:, 2:] - boxes[:, :2]) / 2
    shares = np.square(back / np.linalg.norm(back, axis=0))  # of each of its sides in each direction
    halves = halves * np.linalg.norm(back, axis=0) @ shares.T
    return np.concatenate([middles - halves, middles + halves], 1).astype(np.float32)


def surest_turn(boxes: torch.Tensor, scores: torch.Tensor, turns: torch.Tensor, certain: float) -> torch.Tensor:
    """Which boxes (K, 4) to keep, (K,): a face is found upside down as well, as its mouth looks like eyes.

    A box goes where a surer one, which is certain, was found at nearly the same place in another turn.
    """
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(2)
    areas = (boxes[:, 2:] - boxes[:, :2]).clamp(min=0).prod(1)
    overlaps = shared / (areas[:, None] + areas[None] - shared).clamp(min=1e-9)
    surer = (scores[None] > scores[:, None]) & (scores[None] >= certain)
    other = turns[None] != turns[:, None]
    return ~(surer & other & (overlaps > _ONE_FACE)).any(1)


def _mirrored(pixels: Pixels, margin: int) -> Pixels:
    import cv2

    return np.asarray(cv2.copyMakeBorder(pixels, margin, margin, margin, margin, cv2.BORDER_REFLECT_101), np.uint8)


def _areas(boxes: Floats) -> Floats:
    return np.asarray((boxes[:, 2:] - boxes[:, :2]).clip(min=0).prod(1), np.float32)


def quarter_looks(scales: Sequence[float], most_pixels: int = _MOST_PIXELS) -> tuple[Look, ...]:
    """Looks at a picture turned by 0, 90, 180 and 270 degrees, in each of some sizes."""
    return tuple(Look(degrees, scale, most_pixels=most_pixels) for scale in scales for degrees in (0, 90, 180, 270))

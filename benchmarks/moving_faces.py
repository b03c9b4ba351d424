"""Clips of faces that move over generated places, whose every face is known in every frame.

Faces cross each other, pass behind pillars, come and go at the edges, lean and come nearer; in the midst of a clip is
a cut. They are those of LFW's test people where the folder of research data holds them, else generated.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import av
import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from veilkit.datasets.lfw import TEST_FOLDS, load_lfw
from veilkit.rng import Randomness
from veilkit.synthetic.faces import Ranges, render_face
from veilkit.synthetic.faces.pictures import backdrop

Pixels = NDArray[np.uint8]
Floats = NDArray[np.floating]
Box = tuple[float, float, float, float]
RATE = 25
_SIDE = 250  # of a portrait
_HEAD = (0.26, 0.12, 0.74, 0.80)  # of an LFW picture
_INNER = (0.36, 0.36, 0.64, 0.70)  # around eyes, nose and mouth


@dataclass(frozen=True, slots=True, eq=False)
class Portrait:
    """A picture of one face (S, S, 3), the box of the head and that around eyes, nose and mouth, in its pixels."""

    pixels: Pixels
    head: Box
    inner: Box


@dataclass(frozen=True, slots=True)
class Moving:
    """A face on its way: middle, head's height and lean at a share of the shot (0 to 1)."""

    portrait: int
    start: tuple[float, float]
    end: tuple[float, float]
    sizes: tuple[float, float]
    sway: float
    lean: float
    phase: float

    def at(self, share: float) -> tuple[float, float, float, float]:
        """x, y, height in pixels, degrees."""
        wave = math.sin(2 * math.pi * (share * 2 + self.phase))
        x, y = (one + share * (other - one) for one, other in zip(self.start, self.end, strict=True))
        size = self.sizes[0] + share * (self.sizes[1] - self.sizes[0])
        return x, y + self.sway * wave, size, self.lean * math.sin(2 * math.pi * (share + self.phase))


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A face in a frame. region: (N, 2), rows and columns around eyes, nose and mouth that are seen, of `whole`."""

    who: int
    region: NDArray[np.intp]
    whole: int
    height: float

    @property
    def visible(self) -> float:
        return len(self.region) / max(1, self.whole)


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A frame, its faces, and the number of its shot."""

    pixels: Pixels
    faces: tuple[Shown, ...]
    shot: int


@cache
def portraits() -> tuple[tuple[Portrait, ...], str]:
    """Forty portraits, and whose they are."""
    data = os.environ.get("VEILKIT_DATA")
    if data and (Path(data) / "lfw").is_dir():
        lfw = load_lfw(Path(data) / "lfw")
        names = sorted({pair.first for pair in lfw.pairs if pair.fold in TEST_FOLDS and pair.same})
        files = [Path(data) / "lfw" / name for name in names[:: max(1, len(names) // 40)][:40]]
        return tuple(_from_lfw(file) for file in files), "faces of LFW's test people"
    drawn = []
    for number in range(40):
        pixels, truth = render_face(41, number, 0, Ranges(), size=_SIDE)
        five = np.asarray(truth.five)
        inner_box = (*five.min(0) - 10, *five.max(0) + 10)
        drawn.append(Portrait(pixels, truth.box, tuple(float(value) for value in inner_box)))  # type: ignore[arg-type]
    return tuple(drawn), "generated faces"


def _from_lfw(file: Path) -> Portrait:
    pixels = np.asarray(Image.open(file).convert("RGB"))
    height, width = pixels.shape[:2]
    head, inner = (
        (left * width, top * height, right * width, bottom * height) for left, top, right, bottom in (_HEAD, _INNER)
    )
    return Portrait(pixels, head, inner)


def clip(number: int, frames: int, seed: int, width: int = 854, height: int = 480) -> Iterator[Picture]:
    """The frames of one clip: two shots."""
    cut = round(frames * 0.55)
    for shot, (first, last) in enumerate(((0, cut), (cut, frames))):
        rng = Randomness.from_seed(seed).child("moving faces", number, shot).numpy()
        place = np.sqrt(np.clip(backdrop(rng, 100 * number + shot, height, width + 200), 0, 1)) * 255
        moving = _cast(rng, number, width, height)
        pillars = [(rng.uniform(0.2, 0.8) * width, rng.uniform(0.03, 0.09) * width, rng.uniform(40, 200, 3))]
        for frame in range(first, last):
            share = (frame - first) / max(1, last - first - 1)
            pan = round(200 * share) if number % 2 else 100
            canvas = place[:, pan : pan + width].astype(np.float32)
            yield _drawn(canvas, moving, pillars, share, shot, rng)


def _cast(rng: np.random.Generator, number: int, width: int, height: int) -> list[Moving]:
    """Two who cross, one who comes or goes at an edge, one who stays, one far away; the nearest is drawn last."""
    people = rng.permutation(len(portraits()[0]))
    size = float(rng.uniform(70, 150)) * height / 480
    y = float(rng.uniform(0.35, 0.6)) * height
    left, right = (0.12 * width, y), (0.88 * width, y + rng.uniform(-0.1, 0.1) * height)
    far, near = (float(value) * height / 480 for value in (rng.uniform(24, 36), rng.uniform(100, 170)))
    beyond = (-0.1 * width, 0.5 * height) if number % 2 else (1.1 * width, 0.5 * height)
    ways = [
        (left, right, (size, size * 1.2), 4.0, 12.0), (right, left, (size * 0.8, size * 0.7), 6.0, 18.0),
        (beyond, (0.5 * width, 0.45 * height), (near, near), 8.0, 10.0),
        ((0.3 * width, 0.22 * height), (0.34 * width, 0.2 * height), (0.125 * height, 0.13 * height), 2.0, 25.0),
        ((0.6 * width, 0.12 * height), (0.7 * width, 0.14 * height), (far, far), 1.0, 5.0),
    ]  # fmt: skip
    cast = [
        Moving(int(who), start, end, sizes, sway, lean, float(rng.uniform()))  # type: ignore[arg-type]
        for who, (start, end, sizes, sway, lean) in zip(people, ways, strict=False)
    ]
    return sorted(cast, key=lambda each: each.sizes[0])


def _drawn(
    canvas: Floats, moving: Sequence[Moving], pillars: Sequence[tuple[float, float, Floats]], share: float, shot: int,
    rng: np.random.Generator,
) -> Picture:  # fmt: skip
    height, width = canvas.shape[:2]
    on_top = np.full((height, width), -1, np.int8)
    inners = []
    for who, each in enumerate(moving):
        matrix, portrait = _way(each, share), portraits()[0][each.portrait]
        soft = cv2.warpAffine(_cutout(portrait), matrix, (width, height), flags=cv2.INTER_AREA)[..., None]
        laid = cv2.warpAffine(_smooth(portrait, matrix), matrix, (width, height), flags=cv2.INTER_LINEAR)
        canvas *= 1 - soft
        canvas += soft * laid
        on_top[soft[..., 0] > 0.5] = who
        inners.append(_corners(portrait.inner) @ matrix[:, :2].T + matrix[:, 2])
    for middle, wide, colour in pillars:
        columns = slice(max(0, round(middle - wide / 2)), round(middle + wide / 2))
        canvas[:, columns] = colour
        on_top[:, columns] = -1
    faces = []
    for who, (each, corners) in enumerate(zip(moving, inners, strict=True)):
        mask = np.zeros((height, width), np.uint8)
        cv2.fillPoly(mask, [corners.round().astype(np.int32)], 1)
        region = np.argwhere((mask > 0) & (on_top == who))
        whole = float(cv2.contourArea(corners.astype(np.float32)))
        faces.append(Shown(who, region, round(whole), each.at(share)[2]))
    canvas += rng.normal(0, 2, canvas.shape).astype(np.float32)
    return Picture(canvas.clip(0, 255).astype(np.uint8), tuple(faces), shot)


def _way(each: Moving, share: float) -> NDArray[np.float64]:
    """(2, 3), from the portrait to the frame."""
    x, y, size, degrees = each.at(share)
    left, top, right, bottom = portraits()[0][each.portrait].head
    matrix = cv2.getRotationMatrix2D(((left + right) / 2, (top + bottom) / 2), degrees, size / (bottom - top))
    matrix[:, 2] += (x - (left + right) / 2, y - (top + bottom) / 2)
    return np.asarray(matrix, np.float64)


def _smooth(portrait: Portrait, matrix: NDArray[np.float64]) -> NDArray[np.float32]:
    """The portrait without what would flicker where it shrinks."""
    scale = math.hypot(*matrix[:, 0])
    pixels = portrait.pixels.astype(np.float32)
    return cv2.GaussianBlur(pixels, (0, 0), 0.4 / scale) if scale < 1 else pixels


@cache
def _cutout(portrait: Portrait) -> NDArray[np.float32]:
    """(S, S): 1 on the head, hair and chin included, falling to 0 around it."""
    left, top, right, bottom = portrait.head
    height, width = portrait.pixels.shape[:2]
    y, x = np.mgrid[:height, :width] + 0.5
    across = (x - (left + right) / 2) / (0.62 * (right - left))
    down = (y - (top + bottom) / 2) / (0.58 * (bottom - top))
    return np.clip((1 - np.hypot(across, down)) / 0.12, 0, 1).astype(np.float32)


def _corners(box: Box) -> NDArray[np.float64]:
    left, top, right, bottom = box
    return np.array([(left, top), (right, top), (right, bottom), (left, bottom)], float)


def write(file: Path, pictures: Iterator[Picture] | Sequence[Picture]) -> list[Picture]:
    """Write a clip; returns its frames without their pixels."""
    kept: list[Picture] = []
    with av.open(str(file), "w") as container:
        stream = None
        for picture in pictures:
            if stream is None:
                stream = container.add_stream("libx264", rate=RATE, options={"crf": "16", "preset": "veryfast"})
                stream.height, stream.width = picture.pixels.shape[:2]
                stream.pix_fmt = "yuv420p"
            frame = av.VideoFrame.from_ndarray(picture.pixels, format="rgb24")
            frame.pts, frame.time_base = len(kept), Fraction(1, RATE)
            container.mux(stream.encode(frame))
            kept.append(Picture(np.zeros((0, 0, 3), np.uint8), picture.faces, picture.shot))
        assert stream is not None
        container.mux(stream.encode(None))
    return kept

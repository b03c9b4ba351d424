"""Photographs composed of faces on backgrounds, whose every face is known: where it is, how large, how turned.

Faces are laid on generated places, textures and photographs without people that scikit-image ships. A face's size is
the height of its box, from the hair line to the chin, in pixels of the scene.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from veilkit.rng import Randomness
from veilkit.synthetic.faces.pictures import backdrop

Floats = NDArray[np.floating]
Pixels = NDArray[np.uint8]

FACES = 10
SIZES = ((800, 600), (960, 720), (1280, 960))  # of scenes, in turn
SMALLEST, LARGEST = 12, 400
KINDS = ("plain", "plain", "plain", "glasses", "mask", "covered", "dark", "profile", "cut off", "plain")
_PHOTOS = ("chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png", "ihc.png", "retina.jpg",
           "hubble_deep_field.jpg", "grass.png", "gravel.png", "brick.png", "coins.png")  # fmt: skip
_HEAD = (1.0, 1.2)  # radii of what is cut out of a portrait, in widths and heights of half the face's box
_QUALITY = 92
_UPRIGHT = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class Portrait:
    """A picture of one face (H, W, 3). box: of the face. five: eyes, tip of the nose, corners of the mouth (5, 2)."""

    pixels: Pixels
    box: tuple[float, float, float, float]
    five: Floats
    who: str

    @property
    def turned(self) -> float:
        """How far the nose lies from the middle of the eyes, in distances of the eyes: 0 from the front."""
        eyes = self.five[:2]
        return float(abs(self.five[2, 0] - eyes[:, 0].mean()) / max(1.0, eyes[1, 0] - eyes[0, 0]))


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A face in a scene. box: around the turned face, in pixels. angle: degrees, clockwise, within 180 of upright.

    inner: the box around eyes, nose and mouth. matrix: (2, 3), from the portrait to the scene. source: the portrait.
    """

    box: tuple[float, float, float, float]
    inner: tuple[float, float, float, float]
    five: Floats
    size: float
    angle: float
    kind: str
    matrix: Floats
    source: int


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A picture (H, W, 3), RGB, as its JPEG file decodes to, and its faces. heads: (H, W), what is no background."""

    pixels: Pixels
    file: bytes
    faces: tuple[Placed, ...]
    heads: NDArray[np.bool_]


def compose(portraits: Sequence[Portrait], numbers: Sequence[int], number: int, seed: int) -> Scene:
    """The scene `number`: the portraits `numbers`, each at a random place, size and turn, no two over each other."""
    rng = Randomness.from_seed(seed).child("composed scene", number).numpy()
    width, height = SIZES[number % len(SIZES)]
    canvas = background(rng, number, height, width)
    heads = np.zeros((height, width), bool)
    sizes = np.sort(np.exp(rng.uniform(math.log(SMALLEST), math.log(LARGEST), len(numbers))))[::-1]
    kinds = [str(each) for each in rng.permutation([KINDS[place % len(KINDS)] for place in range(len(numbers))])]
    if "profile" in kinds:  # whose face is turned most
        most, now = (
            max(range(len(numbers)), key=lambda place: portraits[numbers[place]].turned),
            kinds.index("profile"),
        )
        kinds[most], kinds[now] = kinds[now], kinds[most]
    placed: list[Placed] = []
    for source, kind, size in zip(numbers, kinds, sizes, strict=True):
        placed.append(_place(canvas, heads, portraits[source], source, kind, float(size), placed, rng))
    noise = rng.normal(0, float(rng.uniform(0, 4)), canvas.shape).astype(np.float32)
    developed = np.clip(canvas + noise, 0, 255).round().astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(developed).save(file, "JPEG", quality=_QUALITY)
    pixels = np.asarray(Image.open(file).convert("RGB"))
    return Scene(pixels, file.getvalue(), tuple(placed), heads)


def background(rng: np.random.Generator, number: int, height: int, width: int) -> NDArray[np.float32]:
    """A generated place, or a part of a photograph without people, (height, width, 3) in 0 to 255."""
    photos = _photos()
    if number % 2 == 0:
        linear = backdrop(rng, number, height, width)
        return np.asarray(np.sqrt(np.clip(linear, 0, 1)) * 255, np.float32)
    picture = photos[number // 2 % len(photos)]
    rows, columns = picture.shape[:2]
    scale = max(height / rows, width / columns) * float(rng.uniform(1.0, 1.6))
    large = cv2.resize(picture, (math.ceil(columns * scale), math.ceil(rows * scale)), interpolation=cv2.INTER_CUBIC)
    top, left = (int(rng.integers(0, large.shape[axis] - side + 1)) for axis, side in ((0, height), (1, width)))
    part = large[top : top + height, left : left + width].astype(np.float32)
    return np.ascontiguousarray(part[:, ::-1] if rng.random() < 0.5 else part)


@cache
def _photos() -> tuple[Pixels, ...]:
    """Photographs of scikit-image's package that show nobody, found without importing it."""
    try:
        files = {file.name: Path(str(file.locate())) for file in metadata.files("scikit-image") or []}
    except metadata.PackageNotFoundError:
        raise SystemExit("this needs photographs: pip install --no-deps -c constraints.txt scikit-image") from None
    return tuple(np.asarray(Image.open(files[name]).convert("RGB")) for name in _PHOTOS)


def _place(
    canvas: NDArray[np.float32], heads: NDArray[np.bool_], portrait: Portrait, source: int, kind: str, size: float,
    others: Sequence[Placed], rng: np.random.Generator,
) -> Placed:  # fmt: skip
    """Lay one face on the canvas where no other is; smaller where there is no room."""
    left, top, right, bottom = portrait.box
    angle = float(rng.uniform(-_UPRIGHT, _UPRIGHT) if rng.random() < 0.5 else rng.uniform(-180, 180))
    height, width = canvas.shape[:2]
    for tries in range(400):
        size *= 0.9 if tries % 40 == 39 else 1.0
        scale = size / (bottom - top)
        reach = 1.25 * size / 2
        low = -0.2 * reach if kind == "cut off" else reach
        x, y = rng.uniform(low, width - low), rng.uniform(low, height - low)
        if kind == "cut off":
            x = float(rng.choice([0.3 * reach * rng.uniform(-0.5, 1), width - 0.3 * reach * rng.uniform(-0.5, 1)]))
        if all(math.dist((x, y), _middle(other.box)) > reach + 1.25 * other.size / 2 for other in others):
            break
    turn = math.radians(angle)
    linear = scale * np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    middle = np.array([(left + right) / 2, (top + bottom) / 2])
    matrix = np.concatenate([linear, (np.array([x, y]) - linear @ middle)[:, None]], 1)
    _lay(canvas, heads, _altered(portrait, kind, rng), _cutout(portrait), matrix, scale)
    five = portrait.five @ matrix[:, :2].T + matrix[:, 2]
    return Placed(_around(_ellipse(portrait) @ matrix[:, :2].T + matrix[:, 2]), _around(five), five, size, angle,
                  kind, matrix, source)  # fmt: skip


def _lay(
    canvas: NDArray[np.float32], heads: NDArray[np.bool_], pixels: Pixels, cover: Floats, matrix: Floats, scale: float
) -> None:
    layer = np.concatenate([pixels.astype(np.float32), 255 * cover.astype(np.float32)[..., None]], 2)
    shrunk = min(1.0, scale)
    small = cv2.resize(layer, None, fx=shrunk, fy=shrunk, interpolation=cv2.INTER_AREA) if shrunk < 1 else layer
    exact = np.array([small.shape[1] / layer.shape[1], small.shape[0] / layer.shape[0]])
    way = np.concatenate([matrix[:, :2] / exact, matrix[:, 2:]], 1)
    half = np.full(2, 0.5)  # OpenCV counts from the middle of the first pixel
    way[:, 2] += way[:, :2] @ half - half
    warped = cv2.warpAffine(small, way, canvas.shape[1::-1], flags=cv2.INTER_CUBIC if scale > 1 else cv2.INTER_LINEAR)
    alpha = np.clip(warped[..., 3:] / 255, 0, 1)
    canvas *= 1 - alpha
    canvas += alpha * warped[..., :3]
    heads |= alpha[..., 0] > 0.02


def _ellipse(portrait: Portrait) -> Floats:
    """Points around the face (64, 2), in the portrait."""
    left, top, right, bottom = portrait.box
    turns = np.linspace(0, 2 * math.pi, 64, endpoint=False)
    return np.stack([(left + right + (right - left) * np.cos(turns)) / 2,
                     (top + bottom + (bottom - top) * np.sin(turns)) / 2], 1)  # fmt: skip


def _cutout(portrait: Portrait) -> Floats:
    """(H, W): 1 on the head, falling to 0 around it, so that nobody behind it comes along."""
    left, top, right, bottom = portrait.box
    height, width = portrait.pixels.shape[:2]
    y, x = np.mgrid[:height, :width] + 0.5
    across = (x - (left + right) / 2) / (_HEAD[0] * 1.25 * (right - left) / 2)
    down = (y - (top + bottom) / 2 + 0.06 * (bottom - top)) / (_HEAD[1] * (bottom - top) / 2)
    return np.clip((1.0 - np.hypot(across, down)) / 0.12, 0, 1)


def _altered(portrait: Portrait, kind: str, rng: np.random.Generator) -> Pixels:
    """The portrait with glasses, a mask, something before it, or in the dark."""
    pixels, five = portrait.pixels.copy(), portrait.five
    left, _, right, bottom = portrait.box
    apart = float(np.linalg.norm(five[1] - five[0]))
    colour = tuple(int(each) for each in rng.integers(10, 245, 3))
    if kind == "glasses":
        shaded, thick = rng.random() < 0.5, max(1, round(0.06 * apart))
        for eye in five[:2]:
            at = tuple(int(each) for each in eye.round())
            cv2.circle(pixels, at, round(0.4 * apart), (20, 20, 20), -1 if shaded else thick, cv2.LINE_AA)
        cv2.line(pixels, *(tuple(int(v) for v in eye.round()) for eye in five[:2]), (20, 20, 20), thick)
    elif kind == "mask":
        nose = five[2, 1] - 0.15 * apart
        bridge, chin = (five[2, 0], nose - 0.25 * apart), (five[2, 0], bottom + 0.1 * apart)
        outline = np.array([(left, nose), bridge, (right, nose), (right - 0.1 * apart, bottom), chin,
                            (left + 0.1 * apart, bottom)])  # fmt: skip
        cv2.fillPoly(pixels, [outline.round().astype(np.int32)], colour, cv2.LINE_AA)
    elif kind == "covered":
        part = 0.5 * (right - left) if rng.random() < 0.5 else 0.0
        start = (int(left + part), 0) if part or rng.random() < 0.5 else (0, int(five[2, 1]))
        end = pixels.shape[1::-1] if start[0] >= left + part and part else (int((left + right) / 2), pixels.shape[0])
        cv2.rectangle(pixels, start, end, colour, -1)
    elif kind == "dark":
        pixels = (pixels * float(rng.uniform(0.12, 0.4))).astype(np.uint8)
    return pixels


def _around(points: Floats) -> tuple[float, float, float, float]:
    left, top = points.min(axis=0)
    right, bottom = points.max(axis=0)
    return float(left), float(top), float(right), float(bottom)


def _middle(box: tuple[float, float, float, float]) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2

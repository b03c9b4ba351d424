"""Training of the network that reads landmarks, gaze and expression, resumable to the same bits after any kill.

Each batch's crops derive from the seed and from which faces are in it, so that no counter needs to be kept.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TextIO

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from veilkit.datasets.augment import AugmentConfig, augment
from veilkit.errors import ConfigError
from veilkit.experts.alignment import ARCFACE, moved, warp
from veilkit.networks.face_attributes import Attributes, FaceAttributes, FaceAttributesConfig, save_face_attributes
from veilkit.rng import Randomness
from veilkit.training.face_examples import LABELS, UNKNOWN, FaceExamples
from veilkit.training.fitting import FitConfig, fit_network, seeded

_PAIRS = (
    *((left, 16 - left) for left in range(8)),  # the outline
    *((17 + place, 26 - place) for place in range(5)),  # brows
    *((31, 35), (32, 34)),  # the base of the nose
    *((36, 45), (37, 44), (38, 43), (39, 42), (40, 47), (41, 46)),  # eyes
    *((48, 54), (49, 53), (50, 52), (55, 59), (56, 58)),  # outer edge of the lips
    *((60, 64), (61, 63), (65, 67)),  # inner edge
)


def _mirrored() -> tuple[int, ...]:
    order = list(range(68))
    for left, right in _PAIRS:
        order[left], order[right] = right, left
    return tuple(order)


MIRRORED = _mirrored()
"""Which of the 68 points is where each one is, in the mirror."""


@dataclass(frozen=True, slots=True)
class CropConfig:
    """Around the template of ArcFace, whose eyes are 31 % of the width apart and 46 % below the top.

    zoom: least and most. right, down: least and most shift, as shares of the side. turn: most degrees to either side.
    mirror: probability. coarse: probability of a picture of half the resolution. noise: largest deviation, in [0, 1].
    """

    zoom: tuple[float, float] = (0.65, 1.15)
    right: tuple[float, float] = (-0.08, 0.08)
    down: tuple[float, float] = (-0.2, 0.08)
    turn: float = 12.0
    mirror: float = 0.5
    coarse: float = 0.3
    noise: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.zoom[0] <= self.zoom[1] or self.turn < 0:
            raise ConfigError(f"zoom must be positive and turn not negative, but got {self.zoom} and {self.turn}")


def plain_matrix(landmarks: Tensor, side: int) -> Tensor:
    """(N, 68, 2) -> (N, 2, 3) of a crop that shows the whole face: ArcFace's at 0.8 of its size, a little higher."""
    middle = landmarks.new_tensor([[0.5, 0.45]]).expand(len(landmarks), 2)
    ones = landmarks.new_ones(len(landmarks))
    return _placed(ARCFACE.matrix(landmarks, side), 0.8 * ones, 0 * ones, middle, side)


def drawn_matrix(landmarks: Tensor, side: int, config: CropConfig, generator: np.random.Generator) -> Tensor:
    """(N, 68, 2) -> (N, 2, 3) of crops at random, without mirrors."""
    count = len(landmarks)
    zoom = torch.from_numpy(generator.uniform(*config.zoom, count)).float()
    turn = torch.from_numpy(generator.uniform(-config.turn, config.turn, count)).float()
    right, down = (torch.from_numpy(generator.uniform(*span, count)).float() for span in (config.right, config.down))
    middle = torch.stack([0.5 + right, 0.55 + down], 1)
    return _placed(ARCFACE.matrix(landmarks, side), zoom, turn, middle, side)


def _placed(matrix: Tensor, zoom: Tensor, turn: Tensor, middle: Tensor, side: int) -> Tensor:
    """A further zoom and turn (degrees) about the template's face, whose middle goes to `middle` (N, 2) in shares."""
    radians = turn * (math.pi / 180)
    cos, sin = zoom * radians.cos(), zoom * radians.sin()
    more = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
    centre = matrix.new_tensor([0.5, 0.55]) * side
    shift = middle * side - (more @ centre)
    return torch.cat([more @ matrix[:, :, :2], more @ matrix[:, :, 2:] + shift[..., None]], -1)


def turned_gaze(gaze: Tensor, matrix: Tensor) -> Tensor:
    """Gaze (N, 2), yaw and pitch in degrees before the camera, in a picture that was turned by (N, 2, 3)."""
    yaw, pitch = (gaze * (math.pi / 180)).unbind(1)
    x, y, z = pitch.cos() * yaw.sin(), pitch.sin(), pitch.cos() * yaw.cos()
    turn = matrix[:, :, :2] / torch.linalg.det(matrix[:, :, :2]).sqrt()[:, None, None]
    flat = (turn @ torch.stack([x, -y], 1)[..., None])[..., 0]  # y goes up before the camera and down in pictures
    x, y = flat[:, 0], -flat[:, 1]
    return torch.stack([torch.atan2(x, z), y.clamp(-1, 1).asin()], 1) * (180 / math.pi)


def crops(pixels: Tensor, matrix: Tensor, side: int) -> Tensor:
    """uint8 (N, 3, S, S) -> float32 (N, 3, side, side) in [0, 1]."""
    return warp(pixels.float().div_(255), matrix, (side, side))


def random_crops(
    pixels: Tensor, landmarks: Tensor, gaze: Tensor, side: int, config: CropConfig, rng: Randomness
) -> tuple[Tensor, Tensor, Tensor]:
    """uint8 (N, 3, S, S), landmarks (N, 68, 2) in pixels and gaze (N, 2) -> the same of varied crops.

    Pictures are float32 (N, 3, side, side) in [0, 1], landmarks shares of the side. The same node gives the same.
    """
    generator = rng.numpy()
    matrix = drawn_matrix(landmarks, side, config, generator)
    images, points, gazes = crops(pixels, matrix, side), moved(landmarks, matrix) / side, turned_gaze(gaze, matrix)
    mirror = torch.from_numpy(generator.random(len(images)) < config.mirror)
    flipped = torch.stack([1 - points[:, list(MIRRORED), 0], points[:, list(MIRRORED), 1]], -1)
    coarse = torch.from_numpy(generator.random(len(images)) < config.coarse)
    images = torch.where(coarse[:, None, None, None], _coarsened(images), images)
    strength = torch.from_numpy(generator.uniform(0, config.noise, (len(images), 1, 1, 1))).float()
    images = (images + strength * torch.from_numpy(generator.standard_normal(images.shape, np.float32))).clamp(0, 1)
    return (
        torch.where(mirror[:, None, None, None], images.flip(3), images),
        torch.where(mirror[:, None, None], flipped, points),
        torch.where(mirror[:, None], gazes * torch.tensor([-1.0, 1.0]), gazes),
    )


def _coarsened(images: Tensor) -> Tensor:
    half = torch.nn.functional.avg_pool2d(images, 2)
    return torch.nn.functional.interpolate(half, size=images.shape[2:], mode="bilinear", align_corners=False)


@dataclass(frozen=True, slots=True)
class FaceAttributesTraining:
    """A recipe. stored: side at which pictures are kept. cut: side of crops, which eyes are looked at in. side: that
    the network sees of the whole face. epochs: each face once.

    rate: Adam's, falling to zero by a cosine. landmarks, gaze, expression: weights of the losses, which are the mean
    absolute error in shares of the picture, in tens of degrees, and cross-entropy. smoothing: of the classes.
    augment: colours and erased rectangles; mirrors and shifts are those of `crop`.
    """

    stored: int = 224
    cut: int = 144
    side: int = 112
    epochs: int = 60
    batch: int = 32
    rate: float = 2e-3
    landmarks: float = 20.0
    gaze: float = 1.0
    expression: float = 0.5
    smoothing: float = 0.05
    crop: CropConfig = field(default_factory=CropConfig)
    augment: AugmentConfig = field(
        default_factory=lambda: AugmentConfig(flip=0, pad=0, erase=0.2, jitter=0.4, cast=0.25, grey=0.2)
    )
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.stored, self.cut, self.side, self.epochs, self.batch) < 1 or self.rate <= 0:
            raise ConfigError("stored, cut, side, epochs, batch and rate must be positive")
        if min(self.landmarks, self.gaze, self.expression) < 0 or not 0 <= self.smoothing < 1:
            raise ConfigError("weights must not be negative, and smoothing must be in [0, 1)")
        if self.augment.flip or self.augment.pad:
            raise ConfigError("augment.flip and augment.pad must be 0: they would move the truth; see crop")


@dataclass(frozen=True, slots=True, eq=False)
class TrainedFaceAttributes:
    """The model file's SHA-256 and the loss of each update."""

    sha256: str
    losses: NDArray[np.float64]


def train_face_attributes(
    examples: FaceExamples,
    config: FaceAttributesTraining,
    out: Path,
    *,
    work_dir: Path,
    half: bool = True,
    stream: TextIO | None = None,
) -> TrainedFaceAttributes:
    """Train on `examples` and write the network to `out`; work_dir: where the state is kept, to go on from.

    half: store the weights in 16 bits.
    """
    rng = Randomness.from_seed(config.seed).child("face-attributes")
    shape = FaceAttributesConfig(side=config.side, expressions=LABELS)
    network = seeded(lambda: FaceAttributes(shape), rng.child("start"))
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing from torch's stubs
    batch = min(config.batch, len(examples))

    def loss(positions: NDArray[np.int64]) -> Tensor:
        node = rng.child("batch", positions.astype("<i8").tobytes())
        images, landmarks, gaze = random_crops(
            examples.pixels[positions], examples.landmarks[positions], examples.gaze[positions], config.cut,
            config.crop, node.child("crop"),
        )  # fmt: skip
        varied = augment((255 * images).round().byte(), config.augment, node.child("augment"))
        found = network(varied.contiguous(memory_format=torch.channels_last))
        return attribute_loss(found, landmarks, gaze, examples.expression[positions], config)

    fit = FitConfig(
        updates=config.epochs * max(1, len(examples) // batch), batch=batch, rate=config.rate, seed=config.seed
    )
    facts = {"config": asdict(config), "network": asdict(shape), "examples": examples.digest()}
    fitted = fit_network(
        network, loss, len(examples), fit, facts=facts, state=Path(work_dir) / "state.safetensors",
        factor=lambda share: 0.5 * (1 + math.cos(math.pi * share)), stream=stream,
    )  # fmt: skip
    return TrainedFaceAttributes(save_face_attributes(out, network, examples.taught, half=half), fitted.losses)


def attribute_loss(
    found: Attributes, landmarks: Tensor, gaze: Tensor, expression: Tensor, config: FaceAttributesTraining
) -> Tensor:
    """The weighted sum; what is not known of a face costs nothing.

    landmarks: (N, 68, 2) in shares. gaze: (N, 2) in degrees, NaN where unknown. expression: (N,) or UNKNOWN.
    """
    total = config.landmarks * (found.landmarks - landmarks).abs().mean()
    known = ~gaze.isnan().any(1)
    if known.any():
        total = total + config.gaze * (found.gaze[known] - gaze[known]).abs().mean() / 10
    named = expression != UNKNOWN
    if named.any():
        classes = F.cross_entropy(found.expression[named], expression[named], label_smoothing=config.smoothing)
        total = total + config.expression * classes
    return total

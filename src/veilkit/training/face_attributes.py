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
from veilkit.networks.face_attributes import Attributes, FaceAttributes, FaceAttributesConfig, save_face_attributes
from veilkit.rng import Randomness
from veilkit.training.face_crops import CropConfig, random_crops
from veilkit.training.face_examples import UNKNOWN, FaceExamples
from veilkit.training.fitting import FitConfig, fit_network, seeded
from veilkit.training.generated_faces import LABELS


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
    told = ~gaze.isnan().any(1)
    if told.any():
        total = total + config.gaze * (found.gaze[told] - gaze[told]).abs().mean() / 10
    named = expression != UNKNOWN
    if named.any():
        classes = F.cross_entropy(found.expression[named], expression[named], label_smoothing=config.smoothing)
        total = total + config.expression * classes
    return total

"""What an expert is: a model that judges or supervises, and owns its resize and normalisation.

Images come in as float32 NCHW in [0, 1], of any size. Experts subclass one of the protocols below and give `info`
and one method; anything of the same shape will do as well.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import Literal, Protocol, TypedDict

import torch
from torch import Tensor

from veilkit.errors import DataError, UsageError
from veilkit.experts.preprocessing import Preprocessing

Kind = Literal["embedder", "detector", "predictor"]
Origin = Literal["built-in", "user", "file"]
PointOrder = Literal["five", "dlib-5", "68"]


@dataclass(frozen=True, slots=True)
class ExpertInfo:
    """Who an expert is and where it comes from.

    dim: length of what it returns for one image; 0 where that is not fixed. sha256: of the weights file, as sha256sum
    prints it. differentiable: whether gradients reach the images. preprocessing: None where it takes pixels as they
    are. flip: whether the features of an image are averaged with those of its mirror image. card: the text of its
    model card, or nothing.
    """

    name: str
    kind: Kind
    dim: int
    sha256: str
    differentiable: bool
    licence: str = "not stated"
    source: str = ""
    origin: Origin = "file"
    preprocessing: Preprocessing | None = None
    flip: bool = False
    card: str = ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that features depend on: kept features of an expert go by it.

        The weights alone would not do. With another normalisation or with mirror images, they see something else.
        """
        prepared = None if self.preprocessing is None else asdict(self.preprocessing)
        facts = {"weights": self.sha256, "preprocessing": prepared, "flip": self.flip}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


class Description(TypedDict, total=False):
    """What is said of a model beside what its file holds; each as in `ExpertInfo`."""

    licence: str
    source: str
    origin: Origin
    card: str


class Expert(Protocol):
    """Any expert."""

    @property
    @abstractmethod
    def info(self) -> ExpertInfo:
        """Who this expert is."""

    @property
    def name(self) -> str:
        """The name it is called by."""
        return self.info.name

    @property
    def sha256(self) -> str:
        """SHA-256 of its weights file, in hexadecimal."""
        return self.info.sha256

    @property
    def differentiable(self) -> bool:
        """Whether gradients reach the images: only such experts can supervise."""
        return self.info.differentiable


class Embedder(Expert, Protocol):
    """Turns an image into a feature vector."""

    @property
    def dim(self) -> int:
        """D, the length of a feature vector."""
        return self.info.dim

    @abstractmethod
    def embed(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) -> raw features (N, D); who compares them normalises them."""


class NetworkEmbedder(Embedder):
    """An embedder by a network that sees `batch_size` images at a time, None for all at once.

    flip: average the features of each image and its mirror image, at twice the cost.
    """

    def __init__(self, info: ExpertInfo, *, flip: bool = False, batch_size: int | None = None) -> None:
        self._info, self._batch_size = replace(info, flip=flip), batch_size

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is."""
        return self._info

    def embed(self, images: Tensor) -> Tensor:
        """float32 (N, 3, H, W) in [0, 1], any size -> (N, D), not L2-normalised."""
        check_images(images)
        if not self.differentiable:
            refuse_gradient(images, self)
            images = images.detach()
        if not len(images):
            return images.new_zeros(0, self.dim)
        chunks = torch.split(images, self._batch_size or len(images))
        return torch.cat([self._with_mirror(chunk) for chunk in chunks])

    def _with_mirror(self, images: Tensor) -> Tensor:
        features = self._features(images)
        return (features + self._features(images.flip(3))) / 2 if self._info.flip else features

    @abstractmethod
    def _features(self, images: Tensor) -> Tensor:
        """Checked images -> features (N, D) of them as they are."""


@dataclass(frozen=True, slots=True)
class Detections:
    """What was found in one image. boxes: (K, 4) as left, top, right, bottom in pixels. scores: (K,) in [0, 1].

    points: (K, P, 2) as x, y in pixels, P being 0 for a detector without points. order: which points they are: `five`
    (eyes, tip of the nose, corners of the mouth, each pair from the left of the picture), `dlib-5` (corners of the
    eyes and base of the nose, see `DlibDetector`) or `68` (iBUG).
    """

    boxes: Tensor
    scores: Tensor
    points: Tensor
    order: PointOrder = "five"

    def largest(self) -> int | None:
        """Which box is the largest; None where nothing was found."""
        return int((self.boxes[:, 2:] - self.boxes[:, :2]).prod(1).argmax()) if len(self.boxes) else None


class Detector(Expert, Protocol):
    """Finds faces or people."""

    @abstractmethod
    def detect(self, images: Tensor) -> list[Detections]:
        """(N, 3, H, W) -> what was found in each image."""


class Predictor(Expert, Protocol):
    """Reads something off an image: landmarks, gaze, expression."""

    @abstractmethod
    def predict(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) -> (N, ...), one prediction per image."""


def check_images(images: Tensor) -> None:
    """Raise unless `images` is a float32 tensor of shape (N, 3, H, W)."""
    if images.ndim != 4 or images.shape[1] != 3 or images.dtype != torch.float32:
        raise DataError(
            "an expert expects a float32 tensor of shape (N, 3, H, W) with values in [0, 1], "
            f"but got {images.dtype} of shape {tuple(images.shape)}"
        )


def refuse_gradient(images: Tensor, expert: Expert) -> None:
    """Raise where a gradient is wanted from an expert that has none, instead of silently cutting it off."""
    if images.requires_grad and torch.is_grad_enabled():
        raise UsageError(
            f"the expert {expert.name!r} can judge, but not supervise: no gradient reaches the images through it; "
            "take a torch expert (.safetensors), or embed under torch.no_grad()"
        )

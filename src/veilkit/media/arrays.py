"""Pictures in memory: arrays, tensors and Pillow images as a list of tensors, and back into the form they came in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor

from veilkit.errors import DataError, RefusedImage
from veilkit.media.colours import Coding, shown_colours
from veilkit.media.reading import sha256
from veilkit.media.writing import to_pixels

Picture: TypeAlias = "Tensor | NDArray[np.uint8] | Image.Image"
Pictures: TypeAlias = "Picture | Sequence[Picture]"
FORMS = (
    "a tensor (3, H, W) or (N, 3, H, W) of floats in [0, 1], an array (H, W, 3) or (N, H, W, 3) of uint8, "
    "a Pillow image, or a list of these"
)


@dataclass(frozen=True, slots=True, eq=False)
class InMemory:
    """tensors: float32 (3, H, W) in [0, 1], each of its own size. back: as many tensors in the form they came in."""

    tensors: list[Tensor]
    back: Callable[[list[Tensor]], Any]


def read_pictures(given: object) -> InMemory:
    """Pictures in any form of `FORMS`; raises DataError for others."""
    if isinstance(given, Tensor):
        return _tensors(given)
    if isinstance(given, np.ndarray):
        return _arrays(given)
    if isinstance(given, Image.Image):
        return InMemory([_of_array(_seen(given))], lambda made: Image.fromarray(to_pixels(made[0])))
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        return _each(given)
    raise DataError(f"expected {FORMS}, but got {type(given).__name__}")


def content_name(picture: Tensor) -> str:
    """A hash of a picture's 8-bit pixels: the same for a tensor, an array and a Pillow image of one picture."""
    pixels = to_pixels(picture)
    return sha256(f"{pixels.shape[0]}x{pixels.shape[1]}\0".encode() + pixels.tobytes())


def _tensors(given: Tensor) -> InMemory:
    single = given.ndim == 3
    images = given.detach()[None] if single else given.detach()
    if images.ndim != 4 or images.shape[1] != 3 or not images.is_floating_point():
        raise DataError(f"expected {FORMS}, but got a tensor of {given.dtype} and shape {tuple(given.shape)}")
    if images.numel() and not (images.min() >= 0 and images.max() <= 1):  # NaN is neither
        raise DataError(
            f"expected values in [0, 1], but got {images.min():g} to {images.max():g}: undo the normalisation first"
        )

    def back(made: list[Tensor]) -> Tensor:
        if not made:
            return images.clone()
        return (made[0] if single else torch.stack(made)).to(given.device, given.dtype)

    return InMemory(list(images.to("cpu", torch.float32)), back)


def _arrays(given: NDArray[Any]) -> InMemory:
    single = given.ndim == 3
    pixels = given[None] if single else given
    if pixels.ndim != 4 or pixels.shape[3] != 3 or pixels.dtype != np.uint8:
        raise DataError(f"expected {FORMS}, but got an array of {given.dtype} and shape {given.shape}")

    def back(made: list[Tensor]) -> NDArray[np.uint8]:
        if not made:
            return pixels.copy()
        return to_pixels(made[0]) if single else np.stack([to_pixels(image) for image in made])

    return InMemory([_of_array(each) for each in pixels], back)


def _each(given: Sequence[Any]) -> InMemory:
    parts = [read_pictures(one) for one in given]
    if wrong := next((part for part in parts if len(part.tensors) != 1), None):
        raise DataError(f"expected a list of single pictures, but one holds {len(wrong.tensors)}")
    return InMemory(
        [part.tensors[0] for part in parts],
        lambda made: [part.back([image]) for part, image in zip(parts, made, strict=True)],
    )


def as_tensor(pixels: NDArray[np.uint8]) -> Tensor:
    """An array (H, W, 3) as float32 (3, H, W) in [0, 1]."""
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1))).float().div_(255)


def _of_array(pixels: NDArray[np.uint8]) -> Tensor:
    if 0 in pixels.shape:
        raise DataError(f"expected a picture, but got one of {pixels.shape[1]}x{pixels.shape[0]} pixels")
    return as_tensor(pixels)


def _seen(image: Image.Image) -> NDArray[np.uint8]:
    """What a viewer shows of a Pillow image, as of a file: upright, in sRGB, transparency over white."""
    if getattr(image, "n_frames", 1) > 1 and image.format != "MPO":
        raise RefusedImage("animated or of several pages: give single pictures")
    coding = Coding.of(image)
    return shown_colours(ImageOps.exif_transpose(image), coding)

"""A split's pictures in memory, as 8-bit tensors of one size."""

from __future__ import annotations

import torch
from PIL import Image
from torch import Tensor

from veilkit.errors import DataError
from veilkit.types import Split


def read_pixels(split: Split, size: tuple[int, int]) -> Tensor:
    """uint8 (N, 3, height, width) in the split's order; other sizes are resized bilinearly."""
    if not len(split):
        raise DataError(f"the {split.name!r} split holds no images")
    pixels = torch.empty(len(split), 3, *size, dtype=torch.uint8)
    for i in range(len(split)):
        pixels[i] = read_picture(split, i, size)
    return pixels


def read_picture(split: Split, index: int, size: tuple[int, int] | None = None) -> Tensor:
    """uint8 (3, height, width) of one picture, resized bilinearly where `size` says so."""
    try:
        with Image.open(split.file(index)) as image:
            picture = image.convert("RGB")
            if size is not None:
                picture = picture.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    except (OSError, ValueError) as error:
        raise DataError(f"{split.records[index].path}: cannot be read as an image: {error}") from error
    plane = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8)
    return plane.view(picture.height, picture.width, 3).permute(2, 0, 1)

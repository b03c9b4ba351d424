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
    height, width = size
    pixels = torch.empty(len(split), 3, height, width, dtype=torch.uint8)
    for i in range(len(split)):
        try:
            with Image.open(split.file(i)) as image:
                resized = image.convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
        except (OSError, ValueError) as error:
            raise DataError(f"{split.records[i].path}: cannot be read as an image: {error}") from error
        plane = torch.frombuffer(bytearray(resized.tobytes()), dtype=torch.uint8)
        pixels[i] = plane.view(height, width, 3).permute(2, 0, 1)
    return pixels

"""Shared by all tests: one torch thread, and small pictures of nobody."""

from __future__ import annotations

import importlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

# Importing pymilvus shuts down all log handlers there are, and absl (which dp-accounting imports) then closes the
# stream that pytest had put in place of standard error. Before absl it finds nothing to shut down.
with suppress(ImportError):
    importlib.import_module("pymilvus")

torch.set_num_threads(1)


def random_picture(seed: int, height: int = 48, width: int = 24) -> np.ndarray:
    """Smooth colours with some detail, HWC uint8: pictures that compress and blur like photographs."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, (6, 3, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC), dtype=np.int16)
    return np.clip(smooth + random.integers(-12, 13, smooth.shape), 0, 255).astype(np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve pictures of six people, one folder each, in two sizes and two formats."""
    root = tmp_path / "originals"
    for person in range(6):
        (root / f"person{person}").mkdir(parents=True)
        for shot in range(2):
            size = (48, 24) if person % 2 else (50, 27)
            picture = Image.fromarray(random_picture(10 * person + shot, *size))
            picture.save(root / f"person{person}" / f"shot{shot}.{'png' if shot else 'jpg'}")
    return root


def tree(root: Path) -> dict[str, bytes]:
    """Every file below `root` and its bytes."""
    return {str(file.relative_to(root)): file.read_bytes() for file in sorted(root.rglob("*")) if file.is_file()}

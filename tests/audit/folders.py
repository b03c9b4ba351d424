"""Folders of pictures of nobody: each "person" has colours of their own, which a colour histogram recognises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

Change = Callable[[np.ndarray, int], np.ndarray]


def person(identity: int, shot: int, size: tuple[int, int] = (32, 16)) -> np.ndarray:
    """Three bands of colours that belong to the person; a thin part of the picture differs from shot to shot."""
    colours = np.random.default_rng(identity).integers(0, 8, (3, 3)) * 32 + 16
    picture = np.repeat(colours, -(-size[0] // 3), axis=0)[: size[0], None].repeat(size[1], axis=1)
    noise = np.random.default_rng([identity, shot]).integers(0, 256, (size[0] // 8 or 1, size[1], 3))
    picture[: len(noise)] = noise
    return picture.astype(np.uint8)


def plain(root: Path, people: int = 8, shots: int = 3, size: tuple[int, int] = (32, 16)) -> Path:
    """One folder for each person."""
    for identity in range(people):
        (root / f"p{identity}").mkdir(parents=True)
        for shot in range(shots):
            Image.fromarray(person(identity, shot, size)).save(root / f"p{identity}" / f"{identity}-{shot}.png")
    return root


def market(root: Path, people: int = 8) -> Path:
    """The Market-1501 layout: two cameras, one query and two gallery pictures of each person, one for training."""
    for folder in ("bounding_box_train", "query", "bounding_box_test"):
        (root / folder).mkdir(parents=True)
    for identity in range(people):
        names = {
            f"query/{identity:04}_c1_0.png": 0,
            f"bounding_box_test/{identity:04}_c2_1.png": 1,
            f"bounding_box_test/{identity:04}_c2_2.png": 2,
            f"bounding_box_train/{identity + people:04}_c1_0.png": 3,
        }
        for name, shot in names.items():
            Image.fromarray(person(identity, shot)).save(root / name)
    return root


def changed(source: Path, target: Path, change: Change, suffix: str = ".png") -> Path:
    """The same tree with every picture changed, as another tool would leave it."""
    for index, file in enumerate(sorted(source.rglob("*.png"))):
        made = (target / file.relative_to(source)).with_suffix(suffix)
        made.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(file) as image:
            Image.fromarray(change(np.asarray(image), index)).save(made)
    return target


def same(pixels: np.ndarray, index: int) -> np.ndarray:
    return pixels


def noise(pixels: np.ndarray, index: int) -> np.ndarray:
    return np.random.default_rng([99, index]).integers(0, 256, pixels.shape, dtype=np.uint8)


def blur(pixels: np.ndarray, index: int) -> np.ndarray:
    return np.asarray(Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(6)))


def grey(pixels: np.ndarray, index: int) -> np.ndarray:
    return np.full_like(pixels, 128)

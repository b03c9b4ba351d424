"""Pictures to features: read as safely as `protect` reads them, a few at a time, nothing kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.errors import RefusedImage
from veilkit.experts import Embedder
from veilkit.media.reading import Limits, decode, read_bytes, sha256

_BATCH = 64
_LARGEST = 4_000_000  # pixels; larger pictures are made smaller first, since every expert makes them far smaller


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """What became of some pictures: features (n, D) of those at `paths`, with the SHA-256 of their files.

    refused: path and reason of the others. kept: how many were passed over as known.
    """

    features: Tensor
    paths: tuple[str, ...]
    contents: tuple[bytes, ...]
    refused: tuple[tuple[str, str], ...]
    kept: int


def embed_pictures(
    root: Path,
    paths: Iterable[str],
    expert: Embedder,
    *,
    limits: Limits,
    known: Callable[[str, bytes], bool] = lambda path, content: False,
) -> Iterator[Embedded]:
    """The raw features of pictures below `root`, in the order of `paths`, some at a time.

    known: whether a picture, by its path and its file's SHA-256, need not be looked at again.
    """
    held: list[tuple[str, bytes, NDArray[np.uint8]]] = []
    refused: list[tuple[str, str]] = []
    kept = 0
    for path in paths:
        try:
            data = read_bytes(root / path, limits)
            content = bytes.fromhex(sha256(data))
            if known(path, content):
                kept += 1
            else:
                held.append((path, content, _bounded(decode(data, limits))))
        except RefusedImage as refusal:
            refused.append((path, refusal.reason))
        if len(held) + len(refused) + kept >= _BATCH:
            yield _embedded(held, refused, kept, expert)
            held, refused, kept = [], [], 0
    if held or refused or kept:
        yield _embedded(held, refused, kept, expert)


def _embedded(
    held: list[tuple[str, bytes, NDArray[np.uint8]]], refused: list[tuple[str, str]], kept: int, expert: Embedder
) -> Embedded:
    features = torch.empty(len(held), expert.dim)
    sizes: dict[tuple[int, ...], list[int]] = {}
    for place, (_, _, pixels) in enumerate(held):
        sizes.setdefault(pixels.shape, []).append(place)
    for places in sizes.values():
        images = torch.from_numpy(np.stack([held[place][2] for place in places])).permute(0, 3, 1, 2).float().div(255)
        with torch.no_grad():
            features[places] = expert.embed(images).float()
    usable = (torch.isfinite(features).all(dim=1) & (features != 0).any(dim=1)).tolist()
    strange = f"{expert.name} finds no feature in it (NaN, infinity or all zero)"
    refused = refused + [(path, strange) for (path, _, _), good in zip(held, usable, strict=True) if not good]
    good = [place for place, fine in enumerate(usable) if fine]
    return Embedded(
        features[good],
        tuple(held[place][0] for place in good),
        tuple(held[place][1] for place in good),
        tuple(refused),
        kept,
    )


def _bounded(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    height, width = pixels.shape[:2]
    shrink = (_LARGEST / (height * width)) ** 0.5
    if shrink >= 1.0:
        return pixels
    size = (max(round(width * shrink), 1), max(round(height * shrink), 1))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)

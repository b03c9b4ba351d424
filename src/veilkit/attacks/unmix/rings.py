"""Which pictures share a source: rings of blended pictures, found by the fine structure that two have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.attacks.pictures import Pictures, resized

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]

_VALUES = 50_000_000  # of fine structure are held; more pictures are looked at in less detail
_LARGEST = 65_536  # pixels that a picture is looked at with
_SMALLEST = 8  # pixels a side
_ROWS = 512  # pictures that are compared with all others at a time
_PARTNERS = 3  # the most similar others of each picture are kept: two are true
_SURE = 4.0  # robust standard deviations: pictures that choose each other
_UNEVEN = 0.2  # of the strength of the others: weak links
_LIKELY = 3.0  # to close what is left open between them


@dataclass(frozen=True, slots=True)
class Ring:
    """Pictures, each of which shares a source with the next, and where `closed` the last with the first."""

    pictures: tuple[int, ...]
    closed: bool

    @property
    def links(self) -> tuple[tuple[int, int], ...]:
        """Pairs of pictures, the lower first, that share a source."""
        after = self.pictures[1:] + self.pictures[:1] if self.closed else self.pictures[1:]
        pairs = {(min(pair), max(pair)) for pair in zip(self.pictures, after, strict=False)}
        return tuple(sorted(pairs))


def find_rings(pictures: Pictures) -> list[Ring]:
    """Rings and open chains of at least two pictures of one size; each picture is in at most one."""
    if len(pictures) < 3:
        return []
    structure = _fine_structure(pictures)
    partner, likeness = _partners(structure)
    chosen = partner[:, :2]
    mutual = {
        (min(a, b), max(a, b)): float(likeness[a, k])
        for a in range(len(chosen))
        for k, b in enumerate(chosen[a].tolist())
        if a in chosen[b] and likeness[a, k] > _SURE
    }
    others = {
        (min(a, b), max(a, b)): float(likeness[a, k])
        for a in range(len(partner))
        for k, b in enumerate(partner[a].tolist())
        if likeness[a, k] > _LIKELY
    }
    ranked = [*_ranked(mutual), *_ranked(others)]
    beside: list[list[int]] = [[] for _ in range(len(pictures))]
    for a, b in ranked:
        if len(beside[a]) < 2 and len(beside[b]) < 2 and b not in beside[a]:
            beside[a].append(b)
            beside[b].append(a)
    rings = [ring for ring in _walk(beside) if not _alike(structure, ring)]
    if np.median([len(ring.pictures) for ring in rings] or [0]) == 2:  # each picture has one partner: rings of two
        return [Ring(ring.pictures, closed=ring.closed or len(ring.pictures) == 2) for ring in rings]
    return rings


def _alike(structure: Floats, ring: Ring) -> bool:
    """Whether a ring is one of pictures that are merely alike, such as repeated shots of one scene.

    Then those two steps apart are alike as well; or, where they come in twos, every other link is weak.
    """
    if len(ring.pictures) < 3 + ring.closed:
        return False  # nobody is two steps apart
    similar = structure[list(ring.pictures)] @ structure[list(ring.pictures)].T
    one, two = (
        np.array([similar[i - step, i] for i in range(0 if ring.closed else step, len(similar))]) for step in (1, 2)
    )
    by_turns = sorted([float(one[::2].mean()), float(one[1::2].mean())])
    return bool(two.mean() > one.mean() / 2) or by_turns[0] < _UNEVEN * by_turns[1]


def _ranked(links: dict[tuple[int, int], float]) -> list[tuple[int, int]]:
    return sorted(links, key=lambda pair: (-links[pair], pair))


def _walk(beside: list[list[int]]) -> list[Ring]:
    """Rings and chains of pictures with at most two neighbours; chains are walked from an end."""
    seen: set[int] = set()
    rings = []
    ends_first = sorted(range(len(beside)), key=lambda picture: (len(beside[picture]), picture))
    for start in ends_first:
        if start in seen or not beside[start]:
            continue
        path, at = [start], start
        seen.add(start)
        while following := [each for each in beside[at] if each not in seen]:
            at = following[0]
            path.append(at)
            seen.add(at)
        rings.append(Ring(tuple(path), closed=len(path) > 2 and start in beside[at]))
    return rings


def _fine_structure(pictures: Pictures) -> Floats:
    """(N, D) of unit length: second differences of all colours, without what all pictures share.

    Their square roots are taken, as otherwise a few strong edges would decide.
    """
    height, width = (int(side) for side in pictures.sizes[0])
    pixels = min(_LARGEST, _VALUES // (3 * len(pictures)))
    scale = min(1.0, (pixels / (height * width)) ** 0.5)
    size = (max(_SMALLEST, int(height * scale)), max(_SMALLEST, int(width * scale)))
    found = np.empty((len(pictures), 3 * (size[0] - 2) * (size[1] - 2)), dtype=np.float32)
    for part, images in pictures.batches():
        small = resized(images, size)
        middle = small[:, :, 1:-1, 1:-1]
        around = small[:, :, 2:, 1:-1] + small[:, :, :-2, 1:-1] + small[:, :, 1:-1, 2:] + small[:, :, 1:-1, :-2]
        found[part] = (4 * middle - around).flatten(1).numpy()
    found -= found.mean(axis=0)
    found = np.sign(found) * np.sqrt(np.abs(found))
    unit: Floats = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
    return unit


def _partners(structure: Floats) -> tuple[Indices, Floats]:
    """(N, 3) the most similar others of each picture and how far they stand out, in robust standard deviations."""
    count = len(structure)
    kept = min(_PARTNERS, count - 1)
    partner, likeness = np.empty((count, kept), dtype=np.int64), np.empty((count, kept), dtype=np.float32)
    spreads = []
    for start in range(0, count, _ROWS):
        rows = np.arange(start, min(start + _ROWS, count))
        similar = structure[rows] @ structure.T
        similar[rows - start, rows] = np.nan
        middle = float(np.nanmedian(similar))
        spreads.append((middle, 1.4826 * float(np.nanmedian(np.abs(similar - middle)))))
        similar[rows - start, rows] = -np.inf
        order = torch.from_numpy(similar).topk(kept, dim=1)
        partner[rows], likeness[rows] = order.indices.numpy(), order.values.numpy()
    middle, spread = np.mean(spreads, axis=0)
    return partner, (likeness - np.float32(middle)) / np.float32(max(spread, 1e-3))

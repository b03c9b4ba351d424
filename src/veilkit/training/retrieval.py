"""Validation people, and how well a Re-ID network finds them: Rank-1 and mAP of a query in a gallery.

They are taken from the training people by identity, so that the test set is never looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from veilkit.errors import ConfigError, DataError
from veilkit.metrics.retrieval import RetrievalResult, retrieval
from veilkit.networks.reid import ReidNetwork
from veilkit.rng import Randomness
from veilkit.types import Record, Split


@dataclass(frozen=True, slots=True)
class Holdout:
    """Training people, and a query and gallery of others."""

    train: Split
    query: Split
    gallery: Split


def hold_out(split: Split, share: float, rng: Randomness) -> Holdout:
    """Set aside `share` of the identities; of each, one image per camera is a query, the rest gallery.

    An identity whose images would leave it without a gallery match from another camera still counts as a distractor.
    """
    if not 0 < share < 1:
        raise ConfigError(f"the share of validation people must lie between 0 and 1, but got {share}")
    people = split.identities
    count = round(share * len(people))
    if not 0 < count < len(people):
        raise DataError(f"{share:.0%} of {len(people)} people leaves no training or no validation people")
    held = {people[i] for i in rng.child("holdout").permutation(len(people))[:count]}
    query: list[Record] = []
    gallery: list[Record] = []
    seen = set()
    for record in split.records:
        if record.identity in held:
            first = (record.identity, record.camera) not in seen
            seen.add((record.identity, record.camera))
            (query if first else gallery).append(record)
    kept = tuple(record for record in split.records if record.identity not in held)
    return Holdout(
        Split(split.name, split.root, kept),
        Split("query", split.root, tuple(query)),
        Split("gallery", split.root, tuple(gallery)),
    )


@torch.no_grad()
def embed_pixels(network: ReidNetwork, pixels: Tensor, *, flip: bool = True, batch: int = 64) -> Tensor:
    """uint8 (N, 3, H, W) -> (N, D) features; with `flip` the mean of an image's and its mirror image's."""
    network.eval()
    parts = []
    for start in range(0, len(pixels), batch):
        images = pixels[start : start + batch].float().div_(255)
        features = network.embed(images)
        parts.append((features + network.embed(images.flip(3))) / 2 if flip else features)
    return torch.cat(parts)


def evaluate_reid(
    network: ReidNetwork, query: Split, gallery: Split, query_pixels: Tensor, gallery_pixels: Tensor
) -> RetrievalResult:
    """Search by cosine, with flip averaging; entries of the query's own person and camera are removed."""
    people = sorted({*query.identities, *gallery.identities})
    cameras = sorted({*query.cameras, *gallery.cameras})
    return retrieval(
        embed_pixels(network, query_pixels).numpy(),
        embed_pixels(network, gallery_pixels).numpy(),
        _numbers([r.identity for r in query.records], people),
        _numbers([r.identity for r in gallery.records], people),
        _numbers([r.camera for r in query.records], cameras) if cameras else None,
        _numbers([r.camera for r in gallery.records], cameras) if cameras else None,
    )


def _numbers(names: Sequence[str | None], known: Sequence[str]) -> list[int]:
    if None in names:
        raise DataError("expected an identity and a camera for each image, but some have none")
    place = {name: number for number, name in enumerate(known)}
    return [place[name] for name in names if name is not None]

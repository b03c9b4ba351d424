"""How well a Re-ID network finds people: features of a split, and Rank-1 and mAP of a query in a gallery."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from veilkit.errors import DataError
from veilkit.metrics.retrieval import RetrievalResult, retrieval
from veilkit.networks.reid import ReidNetwork
from veilkit.types import Split


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

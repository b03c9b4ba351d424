"""Somebody's ONNX file as an expert: added once, by the preprocessing with which it tells most people apart."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import torch
import torch.nn.functional as F

from veilkit.errors import CheckpointError, ConfigError
from veilkit.experts.names import added_names, file_sha256
from veilkit.experts.onnx import OnnxEmbedder, open_onnx
from veilkit.experts.preprocessing import (
    NORMALISATIONS,
    Normalisation,
    Order,
    Preprocessing,
    read_normalisation,
    read_size,
)
from veilkit.experts.registry import Addition, add_expert, describe_expert
from veilkit.training.pixels import read_pixels
from veilkit.types import Split

_PEOPLE = 60  # who are told apart, by two pictures each
_USUAL = ("imagenet", *(name for name in NORMALISATIONS if name != "imagenet"))  # of equals, the first


def added_onnx(file: Path, split: Split, *, normalisation: str | None, size: str | None) -> tuple[str, str]:
    """The name that the file has among the user's experts, and how it came to its preprocessing.

    normalisation: None tries the known ones, in both orders of colours, on people of `split`.
    """
    sha256 = file_sha256(file)
    wanted = None if normalisation is None else read_normalisation(normalisation)
    for name in added_names():
        if name.startswith(_stem(file)) and (info := describe_expert(name)).sha256 == sha256:
            held = info.preprocessing
            if wanted is None or (held is not None and (held.mean, held.std) == wanted):
                return name, f"{file.name} is the expert {name!r} that was added before"
    sides = open_onnx(file).size if size is None else read_size(size)
    if sides is None:
        raise ConfigError(
            f"{file.name} takes images of any size: give the one that it was trained with (--input-size)"
        )
    order: Order = "rgb"
    how = f"normalised as asked for ({normalisation})"
    if wanted is None:
        wanted, order, how = _best(file, split, sides)
    name = _stem(file) if _stem(file) not in added_names() else f"{_stem(file)}-{sha256[:8]}"
    add_expert(file, Addition(name=name, licence="not stated", size=sides, normalisation=wanted, order=order))
    return name, f"{file.name} was added to your experts as {name!r}, {how}"


def _stem(file: Path) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", file.stem.lower()).strip("._-")[:50] or "expert"


@torch.no_grad()
def _best(file: Path, split: Split, size: tuple[int, int]) -> tuple[Normalisation, Order, str]:
    pairs = _pairs(split)
    if len(pairs) < 2:
        raise ConfigError(
            f"{file.name} does not say its normalisation, and without two pictures each of two people none can be "
            "tried: give it (--normalisation)"
        )
    pixels = read_pixels(Split(split.name, split.root, tuple(each for pair in pairs for each in pair)), size)
    images = pixels.float().div(255)
    found: list[tuple[float, str, Order]] = []
    for name in _USUAL:
        for order in get_args(Order):
            try:
                expert = OnnxEmbedder.load(file, Preprocessing(size, *NORMALISATIONS[name], order))
                features = torch.cat([expert.embed(part) for part in torch.split(images, 16)])
            except CheckpointError:  # not finite, or overflowing
                continue
            found.append((_told_apart(features), name, order))
    if not found:
        raise ConfigError(f"{file.name} gives no features by any known normalisation: give its own (--normalisation)")
    share, name, order = max(found, key=lambda each: each[0])
    others = max((each[0] for each in found if each[1:] != (name, order)), default=0.0)
    how = (
        f"with the normalisation {name!r} and {order.upper()}: of {len(pairs)} people it tells any two apart "
        f"{share:.1%} of the time, next best {others:.1%}"
    )
    return NORMALISATIONS[name], order, how


def _pairs(split: Split) -> list[tuple[Any, Any]]:
    """Two pictures of each person, of two cameras where there are."""
    held: dict[str, list[Any]] = {}
    for record in split.records:
        if record.identity is not None:
            held.setdefault(record.identity, []).append(record)
    pairs = [(each[0], next((r for r in each[1:] if r.camera != each[0].camera), each[-1]))
             for each in held.values() if len(each) > 1]  # fmt: skip
    step = max(1, len(pairs) // _PEOPLE)
    return pairs[::step][:_PEOPLE]


def _told_apart(features: torch.Tensor) -> float:
    """How often a person's second picture is nearer to the first than another person's is."""
    unit = F.normalize(features)
    likeness = unit[::2] @ unit[1::2].T
    right = (likeness.diagonal()[:, None] > likeness).float()
    return float(right.sum() / (len(right) * (len(right) - 1)))

"""What feature assembling may begin with in place of noise: pictures of nobody, in which most is drawn already."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.methods.fro.dead_leaves import lay
from veilkit.methods.fro.principal_components import FEWEST, Looks
from veilkit.rng import Randomness

Start: TypeAlias = Literal["noise", "looks", "leaves", "figures"]
_LEAVES, _SOURCES = 40, 8  # on each picture, and mixtures that they are taken from
_CAMERAS = 12  # that generated people are seen by


def beginnings(
    start: Start, size: tuple[int, int], looks: Looks | None, rng: Randomness, items: tuple[str, ...]
) -> Tensor:
    """One picture for each item, (N, 3, *size) in [0, 1], drawn under its name."""
    if start == "figures":
        return _figures(size, rng, items)
    if looks is None:
        raise ConfigError(
            f"start={start} begins with what the originals have in common, which is not known of this classifier (it "
            f"was brought along, or trained on fewer than {FEWEST} pictures); train one with `veilkit fit fro`, or "
            "take a preset that begins with noise, such as spectral"
        )
    count = len(looks.axes)
    mixed = looks.mixed(torch.stack([rng.child("looks", item).normal(count) for item in items]), size)
    if start == "looks":
        return mixed
    laid = []
    for picture, item in zip(mixed, items, strict=True):
        own = rng.child("leaves", item)
        laid.append(lay(picture, looks.mixed(own.child("looks").normal(_SOURCES, count), size), _LEAVES, own))
    return torch.stack(laid)


def _figures(size: tuple[int, int], rng: Randomness, items: tuple[str, ...]) -> Tensor:
    from veilkit.synthetic.people.render import render_person  # only who draws people pays for these imports

    height, width = size
    if height < width:
        raise ConfigError(
            f"start=figures draws people from head to foot, but pictures of {height}x{width} are wider than high; "
            "begin with looks or leaves"
        )
    drawn = []
    for item in items:
        own = rng.child("figure", item)
        person, camera = own.child("person").integer(1, 2**31), own.child("camera").integer(1, _CAMERAS + 1)
        drawn.append(torch.from_numpy(render_person(0, person, camera, 0, height=height, width=width).copy()))
    return torch.stack(drawn).permute(0, 3, 1, 2).float().div(255)

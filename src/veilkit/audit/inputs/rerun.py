"""A method run again by an attacker: under fresh keys, or with one identity for everybody."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from veilkit.attacks import Oracle
from veilkit.audit.cells.store import as_json
from veilkit.configs import as_dict, differing
from veilkit.errors import CheckpointError, ConfigError, UsageError
from veilkit.methods import METHODS, Calibrates, Learns, Method, Mixes, Synthesiser, bind
from veilkit.methods.base import InjectsIdentity, WorksUnfitted
from veilkit.pipeline.manifest import Manifest
from veilkit.rng import Randomness
from veilkit.types import ImageBatch, Reason, ReasonCode

NO_MODEL = Reason(ReasonCode.NO_MODEL, "the model that it was made with is not at hand")
_AHEAD = 4  # draws made together, so that quick pictures do not leave the expert's slots empty


def method_of(manifest: Manifest | None, model: Path | None = None) -> Method[Any] | None:
    """The method that a manifest names, to be run again; None where that cannot be done with what is at hand.

    It can where each picture is protected by itself, another key gives another result, and what was learned is in the
    file `model`; raises CheckpointError where that file has nothing to do with the release.
    """
    kind = None if manifest is None or manifest.method not in METHODS else METHODS[manifest.method]
    if model is not None and (kind is None or not issubclass(kind, Learns | Calibrates)):
        who = (
            "of which no method with a model is known" if kind is None else f"which {kind.name} made, without a model"
        )
        raise CheckpointError(f"{model.name} cannot belong to this release, {who}: leave it out")
    if manifest is None or kind is None:
        return None
    learned = None if model is None else _of_release(kind, model, manifest)
    if issubclass(kind, Mixes | Synthesiser | Calibrates) or not kind.random:
        return None
    if learned is None and issubclass(kind, WorksUnfitted):
        try:
            return _ready(kind.unfitted(None, None, manifest.config))
        except (UsageError, CheckpointError):  # of another version, or what it works with is not at hand
            return None
    if issubclass(kind, Learns):
        return None if learned is None else _as_released(learned, manifest, model)
    if manifest.expert_sha256 is not None:
        return None
    try:
        return _ready(kind.configured(settings=manifest.config))
    except (UsageError, CheckpointError):  # written by another version, or by hand, or a part is not at hand
        return None


def _ready(method: Method[Any] | None) -> Method[Any] | None:
    if method is not None:
        method.check()
    return method


def wants_model(manifest: Manifest | None) -> bool:
    """Whether a release could be made again if its model were at hand."""
    kind = None if manifest is None or manifest.method not in METHODS else METHODS[manifest.method]
    return kind is not None and kind.random and issubclass(kind, Learns) and not issubclass(kind, Mixes | Synthesiser)


def _of_release(kind: type[Method[Any]], model: Path, manifest: Manifest) -> Method[Any]:
    """The method in a model file; raises where its fingerprint is not the one that the release names."""
    method = kind.load(model)
    try:
        own = method.public_config().get("model")
    except ConfigError as error:  # an expert of its training is missing
        raise CheckpointError(f"{model.name} cannot be run here: {error}") from None
    said = manifest.config.get("model")
    if own != said:
        raise CheckpointError(
            f"{model.name} is not the model that made the release: it is {str(own)[:12]}, but the manifest names "
            f"{str(said)[:12]}"
        )
    return method


def _as_released(method: Method[Any], manifest: Manifest, model: Path | None) -> Method[Any]:
    """The same under the settings of a release; raises where it cannot be run under them."""
    name, said, own = "the model" if model is None else model.name, manifest.config, method.public_config()
    fields = as_dict(method.config)
    changed = {setting: value for setting, value in said.items() if setting in fields and own[setting] != value}
    try:
        method = method.reconfigured(None, changed)
    except UsageError as error:
        raise CheckpointError(f"{name} cannot be run as the release was made: {error}") from None
    if others := differing(said, as_json(method.public_config())):
        which = "; ".join(f"{setting}: {one} there, {two} in the model" for setting, (one, two) in others.items())
        raise CheckpointError(
            f"{name} cannot be run as the release was made: its manifest has other settings ({which})"
        )
    return method


class FreshKeys:
    """Protects pictures again, as `attacks.target.Protector`: the draw's number takes the place of a fresh key.

    A picture's randomness derives from its own values and the draw, so that it does not matter who shares a call.
    """

    def __init__(self, method: Method[Any], seed: int) -> None:
        self._method = method
        self._rng = bind(Randomness.from_seed(seed).child("again"), method)
        self._made: dict[tuple[str, int], Tensor] = {}

    def __call__(self, images: Tensor, draw: int) -> Tensor:
        """Images (N, 3, H, W) in [0, 1] to protected ones, under the key of this draw."""
        names = _names(images)
        if any((name, draw) not in self._made for name in names):
            self._make(images, names, range(draw, draw + _AHEAD))
        return torch.stack([self._made[name, draw] for name in names])

    def _make(self, images: Tensor, names: list[str], draws: range) -> None:
        batch = ImageBatch(
            images.repeat(len(draws), 1, 1, 1), tuple(f"{name} {draw}" for draw in draws for name in names)
        )
        protected = self._method.protect(batch, rng=self._rng).images
        assert protected is not None
        keys = [(name, draw) for draw in draws for name in names]
        self._made = dict(zip(keys, protected, strict=True))  # earlier draws are not asked for again


def one_identity(method: object, seed: int) -> Oracle | None:
    """The method with one identity for everybody, who all go by one name; None where it injects no identity."""
    if not isinstance(method, InjectsIdentity):
        return None
    alike = method.with_one_identity()
    rng = bind(Randomness.from_seed(seed).child("one identity"), alike)

    def protect(images: Tensor) -> Tensor:
        made = alike.protect(ImageBatch(images, tuple(_names(images)), ("everybody",) * len(images)), rng=rng).images
        assert made is not None
        return made

    return protect


def _names(images: Tensor) -> list[str]:
    """Of pictures, by their pixels."""
    return [hashlib.sha256(image.contiguous().numpy().tobytes()).hexdigest() for image in images]

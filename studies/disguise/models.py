"""The methods of Disguise's study: one swapper under several identity transforms, and the controls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from studies.disguise.plan import ALONE, DisguiseStudyConfig
from veilkit.attacks import Oracle, Protector
from veilkit.attacks.learned.learning import digest
from veilkit.errors import ConfigError
from veilkit.experts import Embedder
from veilkit.experts.base import ExpertInfo
from veilkit.experts.faces import FACE_EMBEDDERS, Viewed, load_identity
from veilkit.methods import METHODS
from veilkit.methods.base import Method
from veilkit.methods.disguise.identity_transforms import Kind
from veilkit.methods.disguise.method import Disguise
from veilkit.methods.disguise.training.transform import fit_transform
from veilkit.rng import Randomness
from veilkit.training.fitting import FitConfig
from veilkit.types import ImageBatch

_CONTROLS = {"blur": "faceblur", "replace": "facereplace", "pixelate": "pixelate"}
_VIEWS = {"dlib": "dlib"}


def load_models(files: Sequence[Path]) -> dict[str, Disguise]:
    """Trained methods by their transform; two of one transform are refused."""
    models: dict[str, Disguise] = {}
    for file in files:
        method = Disguise.load(file)
        kind = method.config.transform.kind
        if kind in models:
            raise ConfigError(f"expected one model of each transform, but {file.name} is another {kind}")
        models[kind] = method
    if not models:
        raise ConfigError("the study needs a trained model of Disguise: `veilkit fit disguise`, and --model")
    return models


def independent_judges(names: Sequence[str], methods: Iterable[Disguise]) -> dict[str, Embedder]:
    """Identity experts by name, each shown the part of a wide crop that it is used to.

    One that supervised the training of any of these methods is refused: it would find what it was trained to find.
    """
    own = {expert.info.sha256 for method in methods for expert in method.encoder.experts}
    judges: dict[str, Embedder] = {}
    for name in names:
        expert = load_identity(name)
        if expert.info.sha256 in own:
            raise ConfigError(f"{name} supervised a model's training, so it cannot judge it: name another judge")
        view = _VIEWS.get(name, "arcface" if name in FACE_EMBEDDERS else "whole")
        judges[judge_name(name)] = Viewed(expert, view)
    return judges


def judge_name(expert: str) -> str:
    """What cells call a judge."""
    return expert.replace("/", "-")


class Models:
    """Disguise under each transform: the model trained with it, or else the main swapper and a fitted transform."""

    def __init__(self, given: Mapping[str, Disguise], config: DisguiseStudyConfig, folder: Path) -> None:
        if config.main not in given:
            raise ConfigError(
                f"the study is about {config.main}, but the models are of {', '.join(given)}: give one, or set main"
            )
        self._given, self._config, self._folder = dict(given), config, folder
        self._fitted: dict[str, Disguise] = {}

    @property
    def main(self) -> Disguise:
        """The trained method that the claims are about."""
        return self._given[self._config.main]

    @property
    def given(self) -> tuple[Disguise, ...]:
        """All trained methods, whose experts must not judge."""
        return tuple(self._given.values())

    def trained(self, kind: str) -> bool:
        """Whether a transform was trained together with its swapper."""
        return kind in self._given

    def fingerprints(self) -> dict[str, str]:
        """Of the given models, by transform."""
        return {kind: method.fingerprint() for kind, method in sorted(self._given.items())}

    def method(self, release: str, identities: Callable[[], Tensor]) -> Method[Any]:
        """The method of a release such as `blur`, `ved` or `mlp@8`; identities: (N, D) to fit transforms to."""
        kind, _, scale = release.partition("@")
        if kind in _CONTROLS:
            return METHODS[_CONTROLS[kind]].configured(None, self._found() if kind != "pixelate" else {})
        method = self.disguise(kind, identities)
        return method.reconfigured(None, {"transform.noise": float(scale)}) if scale else method

    def disguise(self, kind: str, identities: Callable[[], Tensor]) -> Disguise:
        """Disguise under a transform."""
        if (made := self._given.get(kind) or self._fitted.get(kind)) is not None:
            return made
        main = self.main
        known: dict[str, Kind] = {"opp": "opp", "mlp": "mlp", "ved": "ved", ALONE: "noise"}
        transform = replace(main.config.transform, kind=known[kind])
        config = replace(main.config, transform=transform)
        self._folder.mkdir(parents=True, exist_ok=True)
        fit = FitConfig(self._config.steps, batch=64, rate=1e-3, seed=self._config.seed)
        network, sensitivity = fit_transform(
            transform, identities(), config, fit, state=self._folder / f"{kind}.safetensors"
        )
        self._fitted[kind] = Disguise(config, replace(main.model, transform=network, sensitivity=sensitivity))
        return self._fitted[kind]

    @property
    def identity(self) -> Embedder:
        """The identity experts of the main model, as they see aligned crops."""
        return _Identity(self.main)

    def again(self, seed: int) -> Protector:
        """The main method on aligned crops, each draw under a key of its own."""
        method = self._on_crops({})

        def protect(images: Tensor, draw: int) -> Tensor:
            return _made(method, images, (), Randomness.from_seed(seed).child("again", draw))

        return protect

    def neutral(self, seed: int) -> Oracle:
        """The main method on aligned crops with one synthetic identity for everybody, who all go by one name."""
        method = self._on_crops({"consistent": True})
        node = Randomness.from_seed(seed).child("neutral")
        return lambda images: _made(method, images, ("everybody",) * len(images), node)

    def _on_crops(self, more: Mapping[str, object]) -> Disguise:
        return self.main.reconfigured(None, {"finder": "whole", "second": "none", **more})

    def _found(self) -> dict[str, object]:
        config = self.main.config
        return {"finder": config.finder, "second": config.second, "hide": config.hide, "unfound": config.unfound}


class _Identity(Embedder):
    """What a model's identity experts say of wide crops of any size, as vectors of length 1."""

    def __init__(self, method: Disguise) -> None:
        self._method = method

    @property
    def info(self) -> ExpertInfo:
        config = self._method.config
        return ExpertInfo(
            name="identity", kind="embedder", dim=config.transform.dim,
            sha256=f"{self._method.model.sha256} {config.swapper.size}", differentiable=True, licence="not stated",
            source="the model's experts", origin="file",
        )  # fmt: skip

    def embed(self, images: Tensor) -> Tensor:
        size = (self._method.config.swapper.size,) * 2
        return self._method.encoder(
            F.interpolate(images, size=size, mode="bilinear", align_corners=False, antialias=True)
        )


def _made(method: Disguise, images: Tensor, people: tuple[str, ...], node: Randomness) -> Tensor:
    """Protected images; each is named by its pixels, so that it does not matter which others share the call."""
    items = tuple(digest(image) for image in images)
    made = method.protect(ImageBatch(images.float(), items, people), rng=node).images
    assert made is not None
    return made

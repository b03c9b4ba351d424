"""Disguise by a generator of photoreal faces, without any training: G(x) = g(attributes(x), psi(h(x)))."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import torch
from torch import Tensor

from veilkit.configs import as_dict, check_range
from veilkit.errors import UsageError
from veilkit.experts.base import Detector, Embedder, ExpertInfo
from veilkit.experts.dlib_identity import DlibIdentity
from veilkit.experts.finders import FaceSettings
from veilkit.methods.faces.aligning import NOT_ALIGNED, wide_alignment
from veilkit.methods.faces.method import Changed, FaceMethod, FoundFace, digest_text
from veilkit.methods.faces.photoreal import PhotorealConfig, Strangers
from veilkit.rng import Randomness
from veilkit.synthetic.photoreal.weights import PACKAGE, VERSION, package_file

SWAPPED = "swapped"
NOBODY = "nobody is known in it, so that consistent does nothing: its faces have identities of this picture alone"


@dataclass(frozen=True, slots=True)
class PhotorealDisguiseConfig(FaceSettings):
    """Settings of Disguise with the generator of photoreal faces, which needs no training.

    face: how a face of nobody is chosen, drawn and laid in. consistent: who is known by the picture's label gets the
    same face in all pictures under one key; otherwise each picture is by itself. least_side: a face whose box is
    narrower, in pixels, is hidden. most_misfit: so is one whose points lie, after alignment, farther from their
    places (root mean square, in shares of the crop).
    """

    face: PhotorealConfig = field(default_factory=PhotorealConfig)
    consistent: bool = False
    least_side: int = 24
    most_misfit: float = 0.08

    def __post_init__(self) -> None:
        check_range("least_side", self.least_side, 2, 100_000)
        check_range("most_misfit", self.most_misfit, 0.0, 10.0)


class PhotorealDisguise(FaceMethod[PhotorealDisguiseConfig]):
    """Disguise with faces that an installed generator draws; see `Disguise` for the paper's own swapper.

    Each face is replaced by one of nobody with its pose, expression, light and colours. Who it shows derives from the
    key; with several candidates, the one is taken that a recogniser finds no more like the original than strangers.
    """

    name = "disguise"
    summary = "every face swapped for a synthetic identity that keeps pose, expression and gaze"
    default = PhotorealDisguiseConfig()
    presets = {"photoreal": default}  # noqa: RUF012
    random = True

    def __init__(
        self,
        config: PhotorealDisguiseConfig | None = None,
        *,
        finder: Detector | None = None,
        second: Detector | None = None,
    ) -> None:
        super().__init__(config, finder=finder, second=second)
        self._strangers = Strangers(self.config.face)

    @classmethod
    def installed(cls, preset: str | None, settings: Mapping[str, object] | None) -> Self:
        """The method under its settings; raises where the generator's package is missing."""
        try:
            package_file("SynthesisNetwork.bin")
        except UsageError as error:
            raise UsageError(
                f"{error}; or train a swapper of your own: `veilkit fit disguise DATA --out FILE`, and --model"
            ) from None
        return cls.configured(preset, settings)

    def change(self, picture: Tensor, face: FoundFace, item: str, *, rng: Randomness) -> Changed:
        """Put somebody else's face in the place of one, or say why not."""
        config = self.config
        matrix = wide_alignment(face, 1, least_side=config.least_side, most_misfit=config.most_misfit)
        if isinstance(matrix, str):
            return Changed(None, matrix)
        points = self._strangers.landmarks(picture, face)
        if points is None:
            return Changed(None, NOT_ALIGNED)
        known = face.person if config.consistent else None
        person = None if known is None else rng.child("person", f"label {known}")
        node = rng.child("identity", item, face.number)
        made = self._strangers.replaced(picture, points, node, person)
        unknown = config.consistent and person is None and face.number == 0
        return Changed(made, SWAPPED, NOBODY if unknown else "")

    def reconfigured(self, preset: str | None = None, settings: Mapping[str, object] | None = None) -> Self:
        """The same method under other settings."""
        changed = super().reconfigured(preset, settings)
        changed._strangers = Strangers(changed.config.face)
        return changed

    def with_one_identity(self) -> Self:
        """The same method, which gives everybody of one name one identity, whatever their faces say."""
        return self.reconfigured(None, {"consistent": True})

    def identity_expert(self) -> Embedder:
        """Who the largest face of a picture is to the recogniser that compares candidates."""
        return _LargestFace(self)

    def features_of(self, picture: Tensor) -> Tensor:
        """(128,) of the largest face of a picture (3, H, W); zeros where none is found."""
        for face in self.look(picture, twice=False)[0][:1]:
            if (points := self._strangers.landmarks(picture, face)) is not None:
                return self._strangers.features(picture, points)
        return picture.new_zeros(128)

    def check(self) -> None:
        """Load the finders and the generator, and raise where something is missing."""
        super().check()
        self._strangers.load()

    def public_config(self) -> dict[str, Any]:
        """The configuration, and whose faces they are."""
        return {**super().public_config(), "generator": f"{PACKAGE} {VERSION}"}


class _LargestFace(Embedder):
    """dlib's features of the largest face of a picture, found and aligned as the method does it."""

    def __init__(self, method: PhotorealDisguise) -> None:
        self._method = method

    @property
    def info(self) -> ExpertInfo:
        own = DlibIdentity.load().info
        return replace(
            own, name="disguise-identity", sha256=digest_text(f"{own.sha256} {self._method.fingerprint()}")
        )

    @torch.no_grad()
    def embed(self, images: Tensor) -> Tensor:
        answers = [self._method.features_of(image) for image in images]
        return torch.stack(answers) if answers else images.new_zeros(0, self.dim)


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """What of a release's public configuration can be set."""
    names = {each.name for each in fields(PhotorealDisguiseConfig)}
    return {name: value for name, value in config.items() if name in names}


def is_photoreal(config: Mapping[str, Any]) -> bool:
    """Whether a release's public configuration is one of this method."""
    return "generator" in config and set(settings_of(config)) == set(as_dict(PhotorealDisguise.default))

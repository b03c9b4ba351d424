"""Disguise: every face swapped for a synthetic identity (see docs/methods/disguise.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from veilkit.checkpoint import load_checkpoint, save_checkpoint, understood
from veilkit.configs import as_dict, check_range, digest, from_json, read_facts, with_settings
from veilkit.errors import ConfigError
from veilkit.experts import Embedder
from veilkit.experts.alignment import warp
from veilkit.experts.base import Detector
from veilkit.experts.faces import load_identity, load_utility
from veilkit.experts.finders import FaceSettings
from veilkit.methods.disguise.critics import CriticsConfig
from veilkit.methods.disguise.identity import IdentityEncoder, OwnIdentity, cluster_people, known_person
from veilkit.methods.disguise.identity_channel import Channel, ChannelKind, check_channel, make_channel
from veilkit.methods.disguise.identity_transforms import Ensemble, TransformConfig
from veilkit.methods.disguise.model import DisguiseModel
from veilkit.methods.disguise.photoreal import (
    NOBODY,
    SWAPPED,
    PhotorealDisguise,
    PhotorealDisguiseConfig,
    is_photoreal,
    settings_of,
)
from veilkit.methods.disguise.swapper import SwapperConfig
from veilkit.methods.disguise.training.config import DisguiseTrainingConfig
from veilkit.methods.faces.aligning import wide_alignment
from veilkit.methods.faces.method import Changed, FaceMethod, FoundFace, digest_text, found_faces
from veilkit.methods.faces.pasting import colour_matched, feather, paste
from veilkit.rng import Randomness
from veilkit.synthetic.photoreal.weights import PACKAGE, TERMS
from veilkit.types import Guarantee, Level, Split

if TYPE_CHECKING:
    from veilkit.methods.disguise.training.train import TrainedDisguise

NOT_DRAWN = "a face for which the model drew nothing"
_NOTHING = 1e-4  # the standard deviation of values in [0, 1] below which a drawn face is one colour
_STILL = 0.25  # of the way from strangers to the very same face, from which on a face counts as recognised
# What can still be set once the networks are trained.
_LATER = (
    *(each.name for each in fields(FaceSettings)), "channel", "epsilon", "delta", "consistent", "same_person",
    "least_side", "most_misfit", "match_colours",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DisguiseConfig(DisguiseTrainingConfig):
    """Settings of Disguise, beside those of its training.

    channel: `paper` (Laplace noise of scale transform.noise, no formal guarantee), `privunit` or `gaussian`: a
    mechanism with a proof on the identity vector, with noise of the operating system. epsilon, delta: of such a one.
    consistent: who is known, by the picture's label or by `Disguise.enrolled`, gets the same synthetic identity in
    all pictures under one key; otherwise each picture is by itself. same_person: the cosine from which on
    two faces are one person. least_side: a face whose box is narrower, in pixels, is hidden. most_misfit: one whose
    five points lie, after alignment, farther from their places (root mean square, in shares of the crop) is hidden.
    match_colours: whether a swapped face gets the colours of the original one.
    """

    channel: ChannelKind = "paper"
    epsilon: float | None = None
    delta: float = 0.0
    consistent: bool = False
    same_person: float = 0.5
    least_side: int = 24
    most_misfit: float = 0.08
    match_colours: bool = True

    def __post_init__(self) -> None:
        # Not super(): a dataclass with slots is made anew, and super() would look for the old one.
        DisguiseTrainingConfig.__post_init__(self)
        check_channel(self.channel, self.epsilon, self.delta)
        check_range("same_person", self.same_person, -1.0, 1.0)
        check_range("least_side", self.least_side, 2, 100_000)
        check_range("most_misfit", self.most_misfit, 0.0, 10.0)


PAPER = DisguiseConfig()
# Made for about three hours on two cores, and for dlib's identity expert of 128 numbers.
SMALL = DisguiseConfig(
    identity=("dlib",),
    views=("dlib",),
    centred=True,
    transform=TransformConfig(dim=128, mlp=(512, 256), ved=(256, 256), latent=128),
    swapper=SwapperConfig(size=112, width=16, halvings=2, blocks=6, dim=128, masked=True),
    critics=CriticsConfig(width=16, layers=3),
    ensemble_steps=1000,
    id_weight=40.0,
    deid_weight=60.0,
    natural_weight=300.0,
    gan_weight=2.0,
    shaken=0.05,
    transform_steps=2000,
    swapper_steps=20_000,
    joint_steps=6_000,
    batch=8,
    rate=4e-4,
    check_every=1000,
    save_every=250,
)


class Disguise(FaceMethod[DisguiseConfig]):
    """Disguise without disruption (Cai et al., AAAI 2024).

    Each face is found, aligned, swapped for a synthetic identity that is far from its own, and pasted back; pose,
    expression and gaze stay. A face that cannot be swapped is hidden, and a picture without any face found is
    pixelated as a whole, unless told otherwise; the private ledger says which. The default is the preset `small`.
    """

    name = "disguise"
    summary = "every face swapped for a synthetic identity that keeps pose, expression and gaze"
    default = SMALL
    presets = {"paper": PAPER, "small": SMALL, "photoreal": PhotorealDisguise.default}  # noqa: RUF012
    random = True
    terms = (
        f"The faces are drawn with weights of the package {PACKAGE} ({TERMS}). What is around the face "
        "stays: at a false-positive rate of 1 %, recognisers still matched 1 to 4 % with other pictures of the "
        "person. Audit the release; see docs/methods/photoreal.md."
    )

    def __init__(
        self,
        config: DisguiseConfig | None = None,
        model: DisguiseModel | None = None,
        *,
        identity: Sequence[Embedder] = (),
        utility: Sequence[Embedder] = (),
        finder: Detector | None = None,
        second: Detector | None = None,
    ) -> None:
        """identity, utility, finder, second: experts of your own in place of those that the configuration names."""
        super().__init__(config, finder=finder, second=second)
        self._model = model
        self._identity, self._utility = tuple(identity), tuple(utility)
        self._encoder: IdentityEncoder | None = None
        self._trained: TrainedDisguise | None = None

    @classmethod
    def configured(cls, preset: str | None = None, settings: Mapping[str, object] | None = None) -> Self:
        """Disguise with a swapper that is still to be trained."""
        if isinstance(cls.default if preset is None else cls.preset_table()[preset], PhotorealDisguiseConfig):
            raise ConfigError(f"the preset {preset} has nothing to learn: protect with it as it is, without a model")
        return super().configured(preset, settings)

    @classmethod
    def unfitted(
        cls, preset: str | None, settings: Mapping[str, object] | None, released: Mapping[str, Any] | None = None
    ) -> PhotorealDisguise | None:
        """Disguise with photoreal faces, which learns nothing; None where preset or release need a model.

        released: the public configuration of a release, which then takes the place of settings.
        """
        if released is not None:
            return PhotorealDisguise.installed(None, settings_of(released)) if is_photoreal(released) else None
        return PhotorealDisguise.installed(None, settings) if preset in (None, "photoreal") else None

    @property
    def model(self) -> DisguiseModel:
        """The networks; raises where none were trained."""
        if self._model is None:
            raise ConfigError(
                "disguise needs its swapper: train one with `veilkit fit disguise`, and name it with --model"
            )
        return self._model

    @property
    def encoder(self) -> IdentityEncoder:
        """The identity experts, loaded at first use and joined; raises where they are not those of the training."""
        if self._encoder is None:
            encoder = self._encoder_of(self._identity_experts(), self.model.ensemble, self.model.centres)
            if encoder.fingerprint != self.model.experts:
                named = ", ".join(expert.name for expert in encoder.experts)
                raise ConfigError(
                    f"this disguise was trained with other identity experts than {named}: name those, or train again"
                )
            self._encoder = encoder
        return self._encoder

    @property
    def channel(self) -> Channel:
        """The way from identities to synthetic ones."""
        config = self.config
        return make_channel(
            config.channel, config.transform, self.model.transform,
            sensitivity=self.model.sensitivity, epsilon=config.epsilon, delta=config.delta,
        )  # fmt: skip

    def fit(self, split: Split, *, work_dir: Path | None = None, init: Path | None = None) -> Self:
        """Train on the labelled people of `split`, some of whom are only watched. init: a model to go on from."""
        if work_dir is None:
            raise ConfigError("disguise trains networks, which needs a work folder for its state")
        from veilkit.methods.disguise.training.train import (  # only who trains pays for these imports
            Start,
            train_disguise,
        )

        identity = self._identity_experts()
        utility = self._utility or tuple(load_utility(name) for name in self.config.utility)
        start = None
        if init is not None:
            known = self._like(init).model
            start = Start(known.swapper, known.transform, known.ensemble, known.centres, known.experts, known.sha256)
        trained = train_disguise(
            split, self.config, identity=identity, utility=utility, finder=self.finder, work_dir=work_dir, start=start
        )
        return self.take(trained, identity)

    def take(self, trained: TrainedDisguise, identity: Sequence[Embedder]) -> Self:
        """Take over what a training under this configuration, with these experts, has left."""
        encoder = self._encoder_of(identity, trained.ensemble, trained.centres)
        self._model = DisguiseModel(
            trained.swapper, trained.transform, trained.ensemble, encoder.fingerprint,
            tuple(expert.dim for expert in identity), trained.sensitivity,
            torch.zeros(0, self.config.transform.dim), trained.centres,
        )  # fmt: skip
        self._encoder, self._trained = encoder, trained
        return self

    def enrolled(self, split: Split) -> Self:
        """The same method, knowing the people of `split` by their faces, so that `consistent` needs no labels.

        Its model file then holds their identities: keep it as private as the pictures.
        """
        from veilkit.training.faces import read_upright

        vectors = [torch.zeros(0, self.config.transform.dim)]
        for index in range(len(split)):
            picture = read_upright(split.file(index))
            for face in found_faces(self.finder.detect(picture[None])[0], None):
                matrix = self._alignment(face)
                if isinstance(matrix, str):
                    continue
                vectors.append(self._identity_of(self._crop(picture, matrix)))
        people = cluster_people(torch.cat(vectors), self.config.same_person)
        return self._with(self.config, replace(self.model, people=people))

    @torch.no_grad()
    def change(self, picture: Tensor, face: FoundFace, item: str, *, rng: Randomness) -> Changed:
        """Swap one face, or say why it cannot be."""
        matrix = self._alignment(face)
        if isinstance(matrix, str):
            return Changed(None, matrix)
        crop = self._crop(picture, matrix)
        vector = self._identity_of(crop)
        person = self._person(face, vector)
        if person is None:
            synthetic = self.channel.synthetic(vector, rng.child("identity", item, face.number))
        else:
            synthetic = self._invented(rng.child("person", person))
        made = self.model.swapper(crop[None], synthetic)[0]
        mask = feather(self.config.swapper.size)
        if not drawn(made, mask):
            return Changed(None, NOT_DRAWN)
        if self.config.match_colours:
            made = colour_matched(made, crop, mask)
        unknown = self.config.consistent and person is None and face.number == 0
        return Changed(paste(picture, made, matrix, mask), SWAPPED, NOBODY if unknown else "")

    def identity_of(self, picture: Tensor, face: FoundFace) -> Tensor | None:
        """(1, D) who a face of a picture (3, H, W) is to the model's experts; None where it cannot be aligned."""
        matrix = self._alignment(face)
        return None if isinstance(matrix, str) else self._identity_of(self._crop(picture, matrix))

    def with_one_identity(self) -> Self:
        """The same method, which gives everybody of one name one identity, whatever their faces say."""
        return self.reconfigured(None, {"consistent": True})

    def identity_expert(self) -> Embedder:
        """Who the largest face of a picture is to the model's own experts."""
        return OwnIdentity(self)

    def guarantee(self) -> Guarantee:
        """What the channel claims and proves, and that it is not about the whole picture."""
        claimed = self.channel.guarantee()
        if not self.config.consistent:
            return claimed
        if len(self.model.people):
            told = "who is known by their face gets an identity that is bound to it, of which nothing is proved"
            text = f"disguise: no formal guarantee; {told}"
            return replace(claimed, text=text, level=Level.L0, epsilon_proved=math.inf)
        told = "people who are known get an identity that does not depend on their face, but links their pictures"
        return replace(claimed, text=f"{claimed.text}; {told}")

    def check(self) -> None:
        """Load what is needed, and raise where something is missing."""
        super().check()
        _ = self.encoder, self.channel

    @property
    def expert_sha256(self) -> str:
        """SHA-256 of what the identity experts are, together."""
        return self.model.experts

    def public_config(self) -> dict[str, Any]:
        """The configuration without paths, the model's fingerprint, and what is guaranteed."""
        said = self.guarantee()
        proved = said.epsilon_proved if said.epsilon_proved not in (None, float("inf")) else "infinite"
        return {
            **super().public_config(),
            "identity": [expert.name for expert in self.encoder.experts],
            "utility": len(self.config.utility),
            "model": self.model.sha256,
            "guarantee": {"text": said.text, "epsilon_claimed": said.epsilon_claimed, "epsilon_proved": proved},
        }

    def fingerprint(self) -> str:
        """A hash of the configuration, the finders, the experts and the networks."""
        plain = replace(self.config, finder="", second="none", bodies="none", identity=(), utility=())
        model = "no model" if self._model is None else f"{self._model.sha256} {self.finders_fingerprint()}"
        return f"{self.name}:{digest(plain)}:{digest_text(model)}"

    def reconfigured(self, preset: str | None = None, settings: Mapping[str, object] | None = None) -> Self:
        """The same networks under other settings; how they were trained cannot change any more."""
        start: Any = self.config if preset is None else self.preset_table()[preset]
        if isinstance(start, PhotorealDisguiseConfig):
            raise ConfigError(f"the preset {preset} draws its faces itself: leave the model out")
        config = with_settings(start, settings or {})
        later = {name: getattr(config, name) for name in _LATER}
        noise = replace(self.config.transform, noise=config.transform.noise)
        if replace(self.config, **later, transform=noise) != config:
            raise ConfigError(
                f"the swapper is trained already: only {', '.join(_LATER)} and transform.noise can still be set"
            )
        return self._with(config, self._model)

    def after_fit(self, out: Path) -> tuple[str, ...]:
        """Who may have the file, what was left out, and whether faces of people it had not seen were disguised."""
        notes: tuple[str, ...] = (
            f"{out} swaps faces: keep it private, since who has it can learn to undo what it does, or fake pictures.",
        )
        if self._trained is None:
            return notes
        if self._trained.without_face:
            notes += (f"{self._trained.without_face} pictures were left out: no face was found in them.",)
        watched = self._trained.watched
        if watched and watched["original"] > watched["strangers"] + _STILL * (1 - watched["strangers"]):
            notes += (
                "Warning: to its own identity experts, disguised faces of people it had not seen still look like "
                f"themselves (mean cosine {watched['original']:.2f}; strangers: {watched['strangers']:.2f}): it "
                "protects nobody yet. Train it for longer.",
            )
        return notes

    def save(self, path: Path) -> None:
        """Write the networks; the experts stay where they are, and are known by their fingerprint."""
        config = {"method": as_dict(self.config), "model": self.model.facts()}
        save_checkpoint(path, self.model.tensors(), config, f"method/{self.name}")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote; experts and finders are loaded at first use."""
        checkpoint, source = load_checkpoint(path, f"method/{cls.name}"), Path(path).name
        with understood(source):
            settings = read_facts(checkpoint.config, {"method": dict})["method"]
            if (
                settings.get("second") == "none"
            ):  # how a model is used is said when it is used, not when it is trained
                settings = {name: value for name, value in settings.items() if name != "second"}
            config = from_json(cls.default, settings)
        config = replace(config, identity=tuple(_beside(name, Path(path)) for name in config.identity))
        return cls(config, DisguiseModel.read(config, checkpoint, source))

    def _like(self, path: Path) -> Self:
        """A model file whose networks have the shapes of this configuration."""
        known = type(self).load(path)
        shapes = ("centred", "transform", "swapper")
        other = [name for name in shapes if getattr(known.config, name) != getattr(self.config, name)]
        if other:
            raise ConfigError(
                f"{Path(path).name} has another setting of {' and '.join(other)} than this training: "
                "give the same, or begin anew"
            )
        return known

    def _with(self, config: DisguiseConfig, model: DisguiseModel | None) -> Self:
        finder, second = self._brought
        return type(self)(
            config, model, identity=self._identity, utility=self._utility, finder=finder, second=second
        )  # fmt: skip

    def _encoder_of(
        self, experts: Sequence[Embedder], ensemble: Ensemble | None, centres: Sequence[Tensor]
    ) -> IdentityEncoder:
        return IdentityEncoder(experts, self.config.transform.dim, ensemble, views=self.config.views, centres=centres)

    def _identity_experts(self) -> tuple[Embedder, ...]:
        return self._identity or tuple(load_identity(name) for name in self.config.identity)

    def _alignment(self, face: FoundFace) -> Tensor | str:
        """The matrix (2, 3) from the picture to the crop, or why there is none."""
        config = self.config
        return wide_alignment(face, config.swapper.size, least_side=config.least_side, most_misfit=config.most_misfit)

    def _crop(self, picture: Tensor, matrix: Tensor) -> Tensor:
        size = self.config.swapper.size
        return warp(picture[None], matrix[None], (size, size), beyond="border")[0].clamp(0, 1)

    @torch.no_grad()
    def _identity_of(self, crop: Tensor) -> Tensor:
        return self.encoder(crop[None])

    def _person(self, face: FoundFace, vector: Tensor) -> str | None:
        """Who somebody is known as, where that matters."""
        if not self.config.consistent:
            return None
        if face.person is not None:
            return f"label {face.person}"
        place = known_person(vector[0], self.model.people, self.config.same_person)
        return None if place is None else f"face {place}"

    def _invented(self, node: Randomness) -> Tensor:
        """The synthetic identity of somebody who is known: of a random vector, without a look at the face."""
        start = torch.nn.functional.normalize(node.child("start").normal(1, self.config.transform.dim))
        answer: Tensor = self.model.transform(start, None).vectors
        return answer


def drawn(made: Tensor, mask: Tensor) -> bool:
    """Whether a crop (3, S, S) is numbers, and more than one colour where the mask (S, S) is not 0."""
    inside = made[:, mask > 0]
    return bool(made.isfinite().all()) and float(inside.std(1).max()) > _NOTHING


def _beside(expert: str, model: Path) -> str:
    """The path of an expert's file; where it is not where it was, it may lie beside the model."""
    near = model.parent / Path(expert).name
    return str(near) if expert.endswith(".safetensors") and not Path(expert).exists() and near.exists() else expert

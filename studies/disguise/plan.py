"""What Disguise's study computes: its options, the releases that it compares, and the attacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from veilkit.attacks import ATTACKS
from veilkit.attacks.averaging import Averaging
from veilkit.attacks.learned.retrained import start_facts
from veilkit.attacks.people_split import FEWEST
from veilkit.attacks.person_search import AttributePath
from veilkit.datasets.augment import AugmentConfig
from veilkit.errors import ConfigError
from veilkit.experts.base import Expert
from veilkit.training.face_attributes import CropConfig, FaceAttributesTraining

Learned = Literal["opp", "mlp", "ved"]
ORIGINAL, STRANGER = "original", "stranger"  # the picture itself; a picture of somebody else
CONTROLS = ("blur", "pixelate", "replace")
RATES = (1e-2, 1e-3)  # false positive rates at which true ones are told
ALONE = "noise"
JUDGE = "mobilefacenet"  # of the published figures
_CHOICES = ("attacks", "compared", "noises", "alone", "trained")  # each entry of these has cells of its own
_OF_METHOD = (Averaging.name, AttributePath.name)  # that run the protection once more

# About two core minutes for each of three networks, of some eight hundred faces. Crops vary about that of the test,
# `plain_matrix`: away from it a network of so few faces does worse than one and the same mean face for everybody.
LANDMARK_TRAINING = FaceAttributesTraining(
    stored=128, cut=96, side=96, epochs=40,
    crop=CropConfig(zoom=(0.74, 0.86), right=(-0.03, 0.03), down=(-0.13, -0.07), turn=4.0, coarse=0.1, noise=0.02),
    augment=AugmentConfig(flip=0, pad=0, erase=0, jitter=0.3, cast=0.15, grey=0.1),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DisguiseStudyConfig:
    """folds: of LFW, whose people are for the test alone. people: the first of them by name; None is everybody.

    shots: pictures of each test person, besides those that the official pairs of the folds name. public_people,
    public_shots: of other people, those with the most pictures, and pictures of each: attackers learn from these, and
    landmark networks. side: of the aligned crops, in pixels, that recognisers and attackers see.
    main: the transform that the claims are about. noises: further scales of `mlp` and `ved` at which inversion is
    tried; alone: scales of noise without any transform (Table 9). steps: of fitting transforms that no model brings.

    finder: who tells where faces are, for alignment. landmarks, gaze, expression, quality: who judges what is kept;
    empty leaves it out. attacks: on the main release; compared: on the blurred one too. updates, batch: of every
    attacker who trains. counts: protections that are averaged; averaged: pictures for that.
    trained: releases on which landmark networks are trained alone (Table 3), and how; truth: whose 68 landmarks of
    the originals teach and test them. epsilon: of the sound channel whose guarantee is told and measured in `draws`
    releases. shown: people in the picture grid.
    """

    folds: tuple[int, ...] = (8, 9, 10)
    people: int | None = None
    shots: int = 4
    public_people: int = 600
    public_shots: int = 3
    side: int = 160
    main: Learned = "ved"
    noises: tuple[float, ...] = (0.5, 8.0)
    alone: tuple[float, ...] = (0.25, 1.0, 4.0)
    steps: int = 3000
    finder: str = "yunet"
    landmarks: str = "openvino-landmarks"
    gaze: str = "openvino-gaze"
    expression: str = "fer-expression"
    quality: str = "yunet"
    attacks: tuple[str, ...] = (
        "stock_recogniser", "linkage", "farthest_match", "own_original", "embedding_inversion", "retrained",
        "averaging", "attribute_path",
    )  # fmt: skip
    compared: tuple[str, ...] = ("linkage", "farthest_match", "embedding_inversion")
    updates: int = 800
    inversion_updates: int = 20_000
    batch: int = 32
    counts: tuple[int, ...] = (1, 4, 16)
    averaged: int = 200
    trained: tuple[str, ...] = (ORIGINAL, "ved", "blur")
    truth: str = "dlib-landmarks-68"
    landmark_training: FaceAttributesTraining = field(default_factory=lambda: LANDMARK_TRAINING)
    epsilon: float = 8.0
    draws: int = 4000
    shown: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        for name in (*self.attacks, *self.compared):
            _ = ATTACKS[name]
        if both := [name for name in self.compared if name in _OF_METHOD]:
            raise ConfigError(f"compared must not name what runs Disguise once more, but got {', '.join(both)}")
        if len(set(self.folds)) < 2:
            raise ConfigError(f"folds must name two or more, to choose a threshold on others, but got {self.folds}")
        if min(self.public_people, FEWEST if self.people is None else self.people) < FEWEST:
            raise ConfigError(f"people and public_people must be at least {FEWEST}")
        if min(self.shots, self.public_shots) < 1 or self.side < 16 or self.shown < 1:
            raise ConfigError("shots, public_shots and shown must be at least 1, and side at least 16")
        if self.main not in get_args(Learned):
            raise ConfigError(f"main must be opp, mlp or ved, but got {self.main!r}")
        for scale in (*self.noises, *self.alone):
            if scale <= 0:
                raise ConfigError(f"noises and alone must be positive scales, but got {scale}")
        if unknown := sorted(set(self.trained) - {ORIGINAL, *CONTROLS, *get_args(Learned)}):
            raise ConfigError(f"trained must name releases of the first table, but got {', '.join(unknown)}")

    @property
    def plain(self) -> tuple[str, ...]:
        """The releases of the first table, originals and strangers apart."""
        return (*CONTROLS, *get_args(Learned))

    @property
    def noisy(self) -> tuple[str, ...]:
        """The releases at other scales of noise, as `ved@8`, and with noise alone, as `noise@1`."""
        levels = [f"{kind}@{scale:g}" for kind in ("mlp", "ved") for scale in self.noises]
        return (*levels, *(f"{ALONE}@{scale:g}" for scale in self.alone))

    @property
    def inverted(self) -> tuple[str, ...]:
        """The releases whose embeddings an attacker inverts."""
        return (*get_args(Learned), *self.noisy)


def rows_of(config: DisguiseStudyConfig) -> tuple[str, ...]:
    """The rows of the first tables: the original, somebody else's picture, and the releases at one scale of noise."""
    return (ORIGINAL, STRANGER, *config.plain)


def cell_names(config: DisguiseStudyConfig, judges: Sequence[str], elsewhere: bool = False) -> tuple[str, ...]:
    """All cells, in the order in which they are computed. elsewhere: whether there are faces of another set."""
    rows = rows_of(config)
    judged = [
        name
        for judge in judges
        for name in (
            *(f"verified/{release}/{judge}" for release in (*rows, *config.noisy)),
            *(f"inverted/{release}/{judge}" for release in config.inverted),
            f"order/{judge}",
            *(f"elsewhere/{release}/{judge}" for release in get_args(Learned) if elsewhere),
        )
    ]
    return (
        "pictures",
        *(f"utility/{release}" for release in rows),
        *judged,
        "utility order",
        *(f"landmarks/{release}" for release in config.trained),
        *(f"attack/{config.main}/{name}" for name in config.attacks),
        *(f"attack/blur/{name}" for name in config.compared),
        "guarantee",
    )


def study_settings(
    config: DisguiseStudyConfig, models: Mapping[str, str], judges: Sequence[Expert], start: Path | None = None
) -> dict[str, Any]:
    """All that the cells of a study depend on, besides the pictures. models: fingerprints by transform.

    start: weights of attackers who train a recogniser; those that nobody can start from are refused.
    """
    shared = {name: value for name, value in asdict(config).items() if name not in _CHOICES}
    fingerprints = [judge.info.fingerprint for judge in judges]
    return {**shared, "models": dict(models), "judges": fingerprints, **start_facts(start)}

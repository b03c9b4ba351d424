"""What the comparison of all methods computes: its options, and the rows of its two tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from veilkit.attacks import UNPAIRED_ATTACKS
from veilkit.attacks.learned.retrained import start_facts
from veilkit.attacks.people_split import FEWEST
from veilkit.audit.options import wanted_attacks
from veilkit.errors import ConfigError
from veilkit.experts import Embedder
from veilkit.lookup import Lookup

PEOPLE: Final = "people"
POOL: Final = "pool"
FACES: Final = "faces"
Data = Literal["people", "pool", "faces"]
_OF_FACES = ("faces", "shots", "folds", "finder", "side", "face_attacks")
_OF_BOTH = ("updates", "seed")
_CHOICES = ("methods",)  # each has a row of its own
_LEARNERS = ("recovery", "feature_decoder", "averaging", "identification", "retrained")
_ON_FACES = (
    "stock_recogniser", "linkage", "farthest_match", "own_original", "mean_image", "attribute_path", "recovery",
    "embedding_inversion", "averaging", "identification", "retrained", "identity_inversion",
)  # fmt: skip
_OTHERS = ("stock_recogniser", "linkage", "own_original", "mean_image", "jigsaw", "unmix", "stolen_decoder")


@dataclass(frozen=True, slots=True)
class Entry:
    """A row: a method as it is run. data: the pictures that it protects.

    bound: its pictures are made for the general expert. own: what its own training gave judges it, the file
    MODEL.expert; else the general expert does. features: what is released is the features of that expert.
    """

    label: str
    method: str
    data: Data = PEOPLE
    preset: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    bound: bool = False
    own: bool = False
    features: bool = False

    @property
    def table(self) -> str:
        """Of people or of faces."""
        return FACES if self.data == FACES else PEOPLE


ENTRIES: Lookup[Entry] = Lookup(
    "row",
    [
        ("pixelfade", Entry("PixelFade", "pixelfade", bound=True)),
        ("avih", Entry("AVIH", "avih", bound=True)),
        ("privacyreid", Entry("PrivacyReID", "privacyreid", own=True)),
        ("fro", Entry("FRO", "fro", POOL)),
        ("peprnet", Entry("PEPR-Net, pictures", "peprnet", own=True)),
        ("peprnet-features", Entry("PEPR-Net, features", "peprnet", own=True, features=True)),
        ("blur", Entry("blur", "blur")),
        ("pixelate", Entry("pixelation", "pixelate")),
        ("noise", Entry("noise", "noise")),
        ("patches", Entry("PRO (patches)", "patches")),
        ("mixup", Entry("mix-up", "mixup")),
        ("disguise", Entry("Disguise", "disguise", FACES, settings={"finder": "whole"})),
        ("face-blur", Entry("blur", "faceblur", FACES, "crops")),
        ("face-pixelate", Entry("pixelation", "pixelate", FACES)),
        ("face-replace", Entry("random replacement", "facereplace", FACES, "crops")),
    ],
)


@dataclass(frozen=True, slots=True)
class ComparisonConfig:
    """people: of the test part, the first by name. queries, gallery: pictures of each, cameras in turn.

    Half of them teach the attackers who learn, and the others are attacked. updates: of each such attacker; the same
    for all methods. attacks: names of `veilkit attacks list`. public_people, public_pictures: of the training part,
    on whom methods that are bound to the general expert are calibrated.

    faces, shots: people of LFW's test `folds` with at least two pictures, and pictures of each. finder: of the faces,
    which are cut to `side` pixels. face_attacks: on them, for whom no recogniser is authorised.
    methods: rows of `ENTRIES` to compute, all where none is named.
    """

    people: int = 200
    queries: int = 2
    gallery: int = 2
    updates: int = 800
    attacks: tuple[str, ...] = (*_OTHERS, *_LEARNERS, *UNPAIRED_ATTACKS)
    public_people: int = 100
    public_pictures: int = 4
    faces: int = 150
    shots: int = 4
    folds: tuple[int, ...] = (8, 9, 10)
    finder: str = "dlib"
    side: int = 128
    face_attacks: tuple[str, ...] = _ON_FACES
    methods: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.methods:
            _ = ENTRIES[name]
        wanted_attacks(self.attacks)
        wanted_attacks(self.face_attacks)
        if min(self.people, self.faces) < 2 * FEWEST:
            raise ConfigError(
                f"people and faces must be at least {2 * FEWEST}, half to teach attackers and half to be attacked, "
                f"but got {self.people} and {self.faces}"
            )
        if min(self.queries, self.gallery, self.public_pictures) < 1 or min(self.shots, self.public_people) < 2:
            raise ConfigError("queries, gallery and public_pictures must be at least 1, shots and public_people 2")
        if not 32 <= self.side <= 256:
            raise ConfigError(f"side must be between 32 and 256, but got {self.side}")

    @property
    def wanted(self) -> tuple[str, ...]:
        """The rows to compute, in the table's order."""
        return tuple(name for name in ENTRIES if not self.methods or name in self.methods)


@dataclass(frozen=True, slots=True)
class Starts:
    """Public weights from which attackers start who train a recogniser of people, or of faces; None for scratch."""

    people: Path | None = None
    faces: Path | None = None

    def resolved(self) -> Starts:
        """By whole paths: in a spec, paths start from its folder."""
        return Starts(*(None if each is None else each.resolve() for each in (self.people, self.faces)))


def study_settings(
    config: ComparisonConfig, expert: Embedder, judge: Embedder, face_judge: str, starts: Starts
) -> dict[str, dict[str, Any]]:
    """For each table all that its rows depend on, besides pictures and models. More rows may be added.

    Weights that nobody can start from are refused.
    """
    shared = {name: value for name, value in asdict(config).items() if name not in _CHOICES}
    people = {name: value for name, value in shared.items() if name not in _OF_FACES}
    faces = {name: shared[name] for name in (*_OF_FACES, *_OF_BOTH)}
    return {
        PEOPLE: {**people, "expert": expert.info.fingerprint, "judge": judge.info.fingerprint,
                 **start_facts(starts.people)},
        FACES: {**faces, "face judge": face_judge, **start_facts(starts.faces)},
    }  # fmt: skip

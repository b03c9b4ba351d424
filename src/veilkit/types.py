"""The values that pass between the parts of veilkit: frozen, checked on creation, without behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from veilkit.display import counted
from veilkit.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Record:
    """One image of a dataset.

    `path` is relative to the dataset's root, with "/" between its parts; bytes that are not UTF-8 are kept as
    surrogate escapes (`os.fsencode` gives them back). `identity` and `camera` are None where unknown.
    """

    path: str
    identity: str | None = None
    camera: str | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """An ordered part of a dataset: `root` joined with each record's path is a file."""

    name: str
    root: Path
    records: tuple[Record, ...]

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        held = f"{counted(len(self), 'picture', 'pictures')} of {counted(len(self.identities), 'person', 'people')}"
        return f"Split({self.name!r}: {held})"

    def file(self, index: int) -> Path:
        """The path on disk of record `index`."""
        return self.root / self.records[index].path

    @property
    def identities(self) -> tuple[str, ...]:
        """The distinct identities, sorted; unknown ones are left out."""
        return tuple(sorted({r.identity for r in self.records if r.identity is not None}))

    @property
    def cameras(self) -> tuple[str, ...]:
        """The distinct cameras, sorted; unknown ones are left out."""
        return tuple(sorted({r.camera for r in self.records if r.camera is not None}))


@dataclass(frozen=True, slots=True)
class Region:
    """A box of a picture that somebody drew: left, top, right, bottom in pixels.

    action: what is to happen there, whatever a detector says: as with a face that was found (`protect`), hidden
    (`hide`), or left as it is (`spare`). identity: who is there, where that is known.
    """

    box: tuple[float, float, float, float]
    action: Literal["protect", "hide", "spare"] = "hide"
    identity: str | None = None


@dataclass(frozen=True, slots=True)
class ImageBatch:
    """Images on their way through a method.

    images: float32 NCHW in [0, 1], 3 channels, all of one size.
    items: for each image a name that never changes with batching; random values are derived from it.
    identities: for each image its identity, or None where unknown.
    regions: for each image the boxes that somebody drew in it, for methods that heed them (`ChangesParts`).
    """

    images: Tensor
    items: tuple[str, ...]
    identities: tuple[str | None, ...] = ()
    regions: tuple[tuple[Region, ...], ...] = ()

    def __post_init__(self) -> None:
        import torch  # who only lists pictures need not wait for it

        if self.images.ndim != 4 or self.images.shape[1] != 3 or self.images.dtype != torch.float32:
            raise DataError(
                "images must be a float32 tensor of shape (N, 3, H, W), "
                f"but got {self.images.dtype} of shape {tuple(self.images.shape)}"
            )
        if len(self.items) != len(self.images):
            raise DataError(f"expected one item name per image, but got {len(self.items)} for {len(self.images)}")
        if not self.identities:
            object.__setattr__(self, "identities", (None,) * len(self.items))
        elif len(self.identities) != len(self.items):
            raise DataError(f"expected one identity per image, but got {len(self.identities)}")
        if not self.regions:
            object.__setattr__(self, "regions", ((),) * len(self.items))
        elif len(self.regions) != len(self.items):
            raise DataError(f"expected regions for each image, but got {len(self.regions)}")

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        height, width = self.images.shape[2:]
        return f"ImageBatch({counted(len(self), 'picture', 'pictures')} of {width}x{height} pixels)"


class Level(StrEnum):
    """What an attacker knows, from nothing to the authorised model's weights."""

    L0 = "L0"
    L1 = "L1"
    L2 = "L2"
    L3 = "L3"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a method claims for its release.

    `epsilon_proved` is infinite where no proof stands behind `epsilon_claimed`.
    """

    text: str
    level: Level
    epsilon_claimed: float | None = None
    epsilon_proved: float | None = None
    delta: float | None = None


@dataclass(frozen=True, slots=True)
class PictureReport:
    """What the owner of a picture may know of how it was protected; no adversary sees it.

    notes: sentences for the owner, which are counted over all pictures. within_limit: whether the method kept to the
    limit that it sets itself; None where it sets none. details: all else, as JSON values.
    """

    notes: tuple[str, ...] = ()
    within_limit: bool | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As the private ledger keeps it, under the names that ledgers have had from the first version on."""
        limit = {} if self.within_limit is None else {"held": self.within_limit}
        notes = {"told": list(self.notes)} if self.notes else {}
        return {**self.details, **limit, **notes}


@dataclass(frozen=True, slots=True)
class Release:
    """Exactly what an adversary sees: images or features, never both absent.

    images: float32 NCHW in [0, 1]. features: float32 (N, D). source_index: for each output the position of its
    source in the batch that was protected, or None when no output belongs to one source (unpaired). reports: for
    each output what its owner may know of how it was made.
    """

    images: Tensor | None = None
    features: Tensor | None = None
    source_index: tuple[int, ...] | None = None
    soft_labels: Tensor | None = None
    guarantee: Guarantee | None = None
    reports: tuple[PictureReport, ...] | None = None

    def __post_init__(self) -> None:
        released = [part for part in (self.images, self.features) if part is not None]
        if not released:
            raise DataError("a release needs images or features, but got neither")
        if self.source_index is not None and len(self.source_index) != len(released[0]):
            raise DataError(
                f"expected one source index per output, but got {len(self.source_index)} for {len(released[0])}"
            )
        if self.reports is not None and len(self.reports) != len(released[0]):
            raise DataError(f"expected one report per output, but got {len(self.reports)} for {len(released[0])}")

    def __repr__(self) -> str:
        parts = {"images": self.images, "features": self.features, "soft_labels": self.soft_labels}
        shown = [f"{name} {tuple(part.shape)}" for name, part in parts.items() if part is not None]
        return f"Release({', '.join(shown)}, {'paired' if self.paired else 'unpaired'})"

    @property
    def paired(self) -> bool:
        """Whether each output belongs to one source."""
        return self.source_index is not None


class Role(StrEnum):
    """Whose interest a number speaks for; its direction follows from it."""

    PRIVACY = "privacy"
    UTILITY = "utility"
    QUALITY = "quality"


@dataclass(frozen=True, slots=True)
class Score:
    """A measured number with its interval, its role and which direction is good for that role."""

    metric: str
    value: float
    role: Role
    higher_is_better: bool
    low: float | None = None
    high: float | None = None
    note: str = ""


class ReasonCode(StrEnum):
    """Why an attack was not made, or why what it found proves nothing. Decisions rest on these, never on a text."""

    NO_IMAGES = "no images"
    NO_FEATURES = "no features"
    NO_PAIRS = "no pairs"
    NO_IDENTITIES = "no identities"
    NO_EXPERT = "no expert"
    NO_BUDGET = "no budget"
    NO_PROTECTOR = "no protector"
    NO_AUTHORISED = "no authorised expert"
    NO_MASKS = "no masks"
    NO_DECODER = "no decoder"
    NO_NEUTRAL = "no neutral identity"
    NO_IDENTITY_EXPERT = "no identity expert"
    NO_SOFT_LABELS = "no soft labels"
    NO_STUDENT = "no student"
    NO_UNSEEN = "no unseen pictures"
    NO_HELD_OUT = "no held-out people"
    NO_NON_MEMBERS = "no non-members"
    NO_SHADOWS = "no shadows"
    NO_MODEL = "no model"
    SMALL_BUDGET = "small budget"
    NOT_ASKED = "not asked for"
    SYNTHETIC = "synthetic release"
    TOO_FEW_PEOPLE = "too few people"
    ONE_PICTURE = "a single picture"
    NOTHING_TO_UNDO = "nothing to undo"
    NOT_MEASURABLE = "not measurable"
    NOT_TRAINED = "not trained"
    NO_ORIGINALS = "no originals"
    FOUND_IN_NOISE = "found in noise"
    BELOW_POSSIBLE = "below what is possible"
    NOT_ABOVE_CHANCE = "not above chance on originals"
    BELOW_MEAN_IMAGE = "below the mean image"
    GATES_NOT_RUN = "gates not run"


@dataclass(frozen=True, slots=True)
class Reason:
    """A code to decide on, and the same for people."""

    code: ReasonCode
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an attack found.

    `invalid`: why its gates failed; with any, the scores prove nothing and must be shown as INVALID.
    `missing`: what the release lacks that the attack needs; with any, the attack does not apply.
    """

    attack: str
    level: Level
    scores: tuple[Score, ...] = ()
    missing: tuple[Reason, ...] = ()
    invalid: tuple[Reason, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        if not self.applicable:
            return f"Evidence({self.attack!r}, {self.level}: does not apply)"
        shown = [f"{score.metric} {score.value:.4g}" for score in self.scores[:1]]
        return f"Evidence({self.attack!r}, {self.level}: {', '.join([*shown, *['INVALID'] * bool(self.invalid)])})"

    @property
    def applicable(self) -> bool:
        """Whether the attack could be made."""
        return not self.missing

    @property
    def why_missing(self) -> str:
        """Why it does not apply, for people; empty where it does."""
        return "; ".join(map(str, self.missing))

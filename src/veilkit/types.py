"""The values that pass between the parts of veilkit: frozen, checked on creation, without behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from veilkit.errors import DataError


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
class ImageBatch:
    """Images on their way through a method.

    images: float32 NCHW in [0, 1], 3 channels, all of one size.
    items: for each image a name that never changes with batching; random values are derived from it.
    identities: for each image its identity, or None where unknown.
    """

    images: Tensor
    items: tuple[str, ...]
    identities: tuple[str | None, ...] = ()

    def __post_init__(self) -> None:
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

    def __len__(self) -> int:
        return len(self.items)


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
class Release:
    """Exactly what an adversary sees: images or features, never both absent.

    images: float32 NCHW in [0, 1]. features: float32 (N, D). source_index: for each output the position of its
    source in the batch that was protected, or None when no output belongs to one source (unpaired). reports: for
    each output what its owner may know of how it was made, as JSON values; the one part that no adversary sees.
    """

    images: Tensor | None = None
    features: Tensor | None = None
    source_index: tuple[int, ...] | None = None
    soft_labels: Tensor | None = None
    guarantee: Guarantee | None = None
    reports: tuple[Mapping[str, Any], ...] | None = None

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


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an attack found.

    `invalid` holds the reasons why its gates failed; with any, the scores prove nothing and must be shown as
    INVALID. `applicable` is False (with `reason`) where the release lacks what the attack needs.
    """

    attack: str
    level: Level
    scores: tuple[Score, ...] = ()
    applicable: bool = True
    reason: str = ""
    invalid: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

"""What every protection method is: a frozen configuration, `fit`, `protect`, `save` and `load`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from veilkit.checkpoint import load_checkpoint, refuse_tensors, save_checkpoint, understood
from veilkit.configs import as_dict, differing, digest, from_json, with_settings
from veilkit.errors import DataError
from veilkit.lookup import Lookup
from veilkit.rng import Randomness
from veilkit.types import ImageBatch, Release, Split

if TYPE_CHECKING:
    from veilkit.experts import Embedder
    from veilkit.media.tracks import Seen


@dataclass(frozen=True, slots=True)
class Item:
    """What a method may know of a picture before it is read: its unchanging name, and who is in it."""

    name: str
    identity: str | None = None


FrameLook: TypeAlias = Literal["small", "full", "again", "twice"]
C = TypeVar("C")


class Method(ABC, Generic[C]):
    """Turns originals into a release.

    A subclass sets the class attributes and writes `protect`. What more it can do are capabilities, the protocols
    below, which others ask for with isinstance or issubclass. An image's result depends on that image alone, unless
    the method `Mixes` images. `random`: whether another key gives another result. `undone_by`: an attack that is
    known to bring the originals back. `videos`: whether it also protects videos, frame by frame or along the tracks
    of faces (`FollowsFaces`). `terms`: what to say of others' data that it works with when it has no model.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    default: ClassVar[Any]
    presets: ClassVar[Mapping[str, Any]] = {}
    random: ClassVar[bool] = False
    undone_by: ClassVar[str] = ""
    videos: ClassVar[bool] = False
    terms: ClassVar[str] = ""

    def __init__(self, config: C | None = None) -> None:
        self.config: C = self.default if config is None else config

    def __repr__(self) -> str:
        changed = differing(as_dict(self.default), as_dict(self.config))
        return f"{type(self).__name__}({', '.join(f'{name}={now!r}' for name, (_, now) in changed.items())})"

    @classmethod
    def configured(cls, preset: str | None = None, settings: Mapping[str, object] | None = None) -> Self:
        """The method with a named preset (None: its default) and single settings replaced."""
        config = cls.default if preset is None else cls.preset_table()[preset]
        return cls(with_settings(config, settings or {}))

    @classmethod
    def preset_table(cls) -> Lookup[C]:
        """All presets; "default" is always among them."""
        return Lookup(f"preset of {cls.name}", [("default", cls.default), *cls.presets.items()])

    def reconfigured(self, preset: str | None = None, settings: Mapping[str, object] | None = None) -> Self:
        """The same method, with what it has learned, under another preset or other settings."""
        config = self.config if preset is None else self.preset_table()[preset]
        changed = copy(self)
        changed.config = with_settings(config, settings or {})
        return changed

    @abstractmethod
    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Protect a batch; every random value is derived from `rng`, a purpose and the item's name."""

    def protect_many(self, batches: Sequence[ImageBatch], *, rng: Randomness) -> list[Release]:
        """A release for each batch, which may be of different sizes: for methods that gain from many at once."""
        return [self.protect(batch, rng=rng) for batch in batches]

    @property
    def at_once(self) -> int:
        """How many pictures it is best given together; where it does not mix them, the result is the same for any."""
        return 1

    def check(self) -> None:
        """Raise what would keep the method from protecting anything, before a run begins."""
        return

    @property
    def expert_sha256(self) -> str | None:
        """SHA-256 of the weights of the expert that a release is bound to, if any."""
        return None

    def public_config(self) -> dict[str, Any]:
        """The configuration as the public manifest shows it: without paths."""
        return as_dict(self.config)

    def fingerprint(self) -> str:
        """A hash of the method's name and configuration, and of what it has learned."""
        return f"{self.name}:{digest(self.config)}"

    def save(self, path: Path) -> None:
        """Write configuration and weights as one checkpoint."""
        save_checkpoint(path, {}, config=as_dict(self.config), kind=f"method/{self.name}")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        checkpoint, source = load_checkpoint(path, kind=f"method/{cls.name}"), Path(path).name
        refuse_tensors(checkpoint.tensors, source)
        with understood(source):
            return cls(from_json(cls.default, checkpoint.config))


@runtime_checkable
class Mixes(Protocol):
    """A method that mixes pictures: `protect` is given exactly one group."""

    def groups(self, items: Sequence[Item], *, rng: Randomness) -> Iterator[tuple[int, ...]]:
        """Positions in `items` that are protected together, before any batching; each is in exactly one group."""


@runtime_checkable
class Learns(Protocol):
    """A method that must be fitted, or loaded from a model file, before it can protect."""

    def fit(self, split: Split, *, work_dir: Path | None = None, init: Path | None = None) -> Method[Any]:
        """Learn from `split`. work_dir: keeps the state, to go on after a stop. init: weights to start from."""

    def after_fit(self, out: Path) -> tuple[str, ...]:
        """Notes for whoever fitted it on the file `out`, which `save` wrote; a line each."""


@runtime_checkable
class WorksUnfitted(Protocol):
    """A method that learns, and of which there is a form that can protect without."""

    @classmethod
    def unfitted(
        cls, preset: str | None, settings: Mapping[str, object] | None, released: Mapping[str, Any] | None = None
    ) -> Method[Any] | None:
        """That form under its settings, or as a release's configuration has it; None where that needs a model."""


@runtime_checkable
class Calibrates(Protocol):
    """A method that may be calibrated on pictures like those that it will protect, and otherwise does without."""

    def calibrate(self, split: Split) -> Method[Any]:
        """Measure on the labelled people of `split` what the configuration leaves open."""


@runtime_checkable
class Recoverable(Protocol):
    """A method with a way back for those who may have it."""

    def recover(self, images: Tensor, *, rng: Randomness) -> Tensor:
        """Pictures like the originals, from released ones (N, 3, H, W); `rng` as `protect` was given it."""


@runtime_checkable
class InjectsIdentity(Protocol):
    """A method that gives people the identity of somebody else."""

    def with_one_identity(self) -> Method[Any]:
        """The same method, which gives everybody of one name one identity, whatever their faces say."""

    def identity_expert(self) -> Embedder:
        """The method's own recogniser, which says whose identity it replaces."""


@runtime_checkable
class ChangesParts(Protocol):
    """A method that changes parts of a picture and leaves the rest; it heeds the regions of a batch.

    Its reports list all `faces`, or people, with box and outcome, and the `counts` of them.
    """

    def parts(self) -> Literal["faces", "people"]:
        """What it looks for."""


@runtime_checkable
class ChangesPlace(Protocol):
    """A method that changes one place of every picture and leaves what is around it."""

    def place(self) -> tuple[float, float, float, float]:
        """Its top, bottom, left and right, as fractions of height and width."""


@runtime_checkable
class ChangesFaces(ChangesParts, Protocol):
    """A method that changes the faces of a picture and nothing else."""

    def for_people(self, spare: Sequence[Path], only: Sequence[Path]) -> Method[Any]:
        """The same method, which leaves the faces of some people as they are, whom example pictures show.

        spare: pictures of people to be left as they are. only: of those who are to be protected, and nobody else.
        """

    def count_faces(self, picture: Tensor) -> dict[str, int]:
        """How many faces are `found` in a picture (3, H, W), and how many `doubtful` regions may be one."""


@runtime_checkable
class FollowsFaces(Protocol):
    """A method on faces that takes the frames of a video, (H, W, 3) uint8, with faces followed through them."""

    def seen_in(self, pixels: NDArray[np.uint8], look: FrameLook) -> list[Seen]:
        """What is, or may be, a face in a frame.

        look: at the frame shrunk (`small`), as it is (`full`), or as it is by the second finder too, in its quick
        search (`again`) or as thoroughly as it does (`twice`).
        """

    def treated(
        self, pixels: NDArray[np.uint8], tracks: Sequence[tuple[int, Seen]], item: str, *, rng: Randomness
    ) -> tuple[NDArray[np.uint8], dict[int, str]]:
        """A frame with the face of each track changed or hidden, and what became of each; item: the video's name."""

    def faceless(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
        """What a frame becomes of a video in which no face was found at all; None where it stays as it is."""


class Synthesiser(Method[C]):
    """A method whose pictures belong to no original: it is asked for pictures of people, not of pictures.

    `plan` says whom each picture stands for, group by group; `synthesise` makes one group.
    """

    random = True

    @abstractmethod
    def plan(self, counts: Mapping[str, int], *, rng: Randomness) -> list[tuple[str, ...]]:
        """The people of each group, from the number of originals of each person."""

    @abstractmethod
    def synthesise(self, items: Sequence[str], people: Sequence[str], *, rng: Randomness) -> Release:
        """One picture for each of `people`; every random value derives from `rng` and the items' names."""

    @property
    @abstractmethod
    def classes(self) -> tuple[str, ...]:
        """The people that soft labels speak of, in their order."""

    @abstractmethod
    def soft_labels(self, images: Tensor) -> Tensor:
        """Logits (N, classes) of images (N, 3, H, W): what goes with the release."""

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """As many synthetic pictures of the batch's people; its pixels are not looked at."""
        people = [person for person in batch.identities if person is not None]
        if len(people) < len(batch):
            raise DataError(f"{self.name} makes pictures of known people, but some here are unknown; give labels")
        return self.synthesise(batch.items, people, rng=rng)


def bind(rng: Randomness, method: Method[Any]) -> Randomness:
    """The randomness of one configured method.

    Two releases of a picture under one key must never share noise: from x + 0.1 n and x + 0.2 n anyone finds x.
    """
    return rng.child("method", method.fingerprint())

"""What a run asks of its workers: a job, which all of its tasks share, and the tasks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilkit.media.reading import Limits
from veilkit.media.shape import Shape
from veilkit.media.video import VideoFormat, VideoLimits
from veilkit.media.writing import Files
from veilkit.methods import Method
from veilkit.pipeline.ledger import Entry
from veilkit.pipeline.sealing.folder import SealedFolder
from veilkit.rng import Randomness

if TYPE_CHECKING:
    from veilkit.media.boxes import Boxes


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks of a run share. `scratch` is on the file system of `destination`.

    sealed: where originals are sealed, if they are to be. parts: the private folder of what is done of videos.
    boxes: what somebody drew, by the pictures' paths. shown: a private folder for copies of pictures that a browser
    cannot show, for the review.
    """

    method: Method[Any]
    randomness: Randomness
    source: Path
    destination: Path
    scratch: Path
    files: Files
    limits: Limits
    sealed: SealedFolder | None = None
    shape: Shape = field(default_factory=Shape)
    parts: Path | None = None
    video: VideoFormat = field(default_factory=VideoFormat)
    video_limits: VideoLimits = field(default_factory=VideoLimits)
    boxes: Boxes = field(default_factory=dict)
    shown: Path | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """Pictures to be protected together; with `check`, only to be read, to learn which of them can be.

    apart: they have nothing to do with each other, and are done together for speed alone. look: report the
    size of each and write nothing; with `faces`, how many the method sees in it.
    """

    entries: tuple[Entry, ...]
    check: bool = False
    look: bool = False
    faces: bool = False
    apart: bool = False
    retried: bool = False


def item_name(source: str, source_sha256: str) -> str:
    """The name from which a picture's random values derive.

    It holds the content as well as the path: another picture under an old name must not get the old noise.
    """
    return f"{source}\0{source_sha256}"


def refused_entry(entry: Entry, reason: str) -> Entry:
    """The entry with its refusal. What the release already holds of the picture, from before, stays in it."""
    return replace(entry, state="done" if entry.state == "done" else "refused", reason=reason)

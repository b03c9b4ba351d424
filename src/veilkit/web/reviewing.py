"""Decisions of a review: noted in the private folder of the release, and made into boxes for `protect --boxes`."""

from __future__ import annotations

import datetime
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from veilkit.errors import DestinationError, UsageError
from veilkit.media.boxes import DrawnBox, write_csv

Pixels = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]


class Box(BaseModel):
    """What is to happen in a part of a picture: left, top, right, bottom in pixels."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    box: tuple[Pixels, Pixels, Pixels, Pixels]
    action: Literal["hide", "spare", "protect"]


class Decision(BaseModel):
    """What somebody decided of one picture. boxes: all that are to hold from now on; None where nothing changes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    made: Annotated[str, Field(max_length=64)]
    boxes: Annotated[list[Box], Field(max_length=500)] | None = None


def write_boxes(ledger: Path, decisions: Sequence[Decision], known: Mapping[str, Any]) -> Path | None:
    """A private file of boxes for the pictures that are to change; None where none is."""
    boxes: dict[str, tuple[DrawnBox, ...]] = {}
    for each in decisions:
        if each.path not in known or known[each.path]["made"] != each.made:
            raise UsageError("the release has changed since this review was opened: load it again")
        drawn = []
        for box in each.boxes or ():
            left, top, right, bottom = box.box
            if right - left < 1 or bottom - top < 1:
                raise UsageError("a box must be at least one pixel wide and high")
            drawn.append(DrawnBox(left, top, right - left, bottom - top, box.action))
        if drawn:
            boxes[each.path] = tuple(drawn)
        elif each.boxes is not None:
            raise UsageError("a change needs at least one box: to take one back, let it be protected as it was found")
    if not boxes:
        return None
    file = ledger.with_name(f"{ledger.stem}.review-{time.time_ns()}.csv")
    draft = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    os.close(draft)
    write_csv(file, boxes)
    return file


def note(ledger: Path, decisions: Sequence[Decision], boxes: Path | None) -> None:
    """Append what was decided to the review's log beside the ledger, which its owner alone can read."""
    when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    lines = [
        {
            "time": when,
            "picture": each.path,
            "made": each.made,
            "decision": "accepted" if each.boxes is None else "changed",
            "boxes": None if each.boxes is None else [box.model_dump() for box in each.boxes],
            "file": None if boxes is None or not each.boxes else boxes.name,
        }
        for each in decisions
    ]
    try:
        held = os.open(log_of(ledger), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(held, "w", encoding="ascii") as out:
            out.write("".join(json.dumps(line) + "\n" for line in lines))
            out.flush()
            os.fsync(out.fileno())
    except OSError as error:
        raise DestinationError(f"the log of reviews cannot be written: {error.strerror}") from None


def decided(ledger: Path) -> set[tuple[str, str]]:
    """Which pictures were reviewed as they are now made: path and `made`."""
    found = set()
    try:
        for line in log_of(ledger).read_text(encoding="ascii").splitlines():
            entry = json.loads(line)
            found.add((entry["picture"], entry["made"]))
    except (OSError, ValueError, KeyError, TypeError):
        return found
    return found


def log_of(ledger: Path) -> Path:
    """The log of reviews of a release."""
    return ledger.with_suffix(".reviews.jsonl")

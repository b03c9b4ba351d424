"""Who was trained on: originals parted into training pictures, other pictures of these people, and other people."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from veilkit.datasets.folder import load_folder
from veilkit.datasets.labels import MARKET_FOLDERS, is_market_layout, labeller
from veilkit.datasets.market1501 import JUNK
from veilkit.types import Record, Split

_TRAIN, _QUERY, _GALLERY = (f"{folder}/" for folder in MARKET_FOLDERS)
MEMBERS, UNSEEN, HELD_OUT = "training pictures", "unseen pictures", "held-out pictures"


@dataclass(frozen=True, slots=True)
class Parts:
    """Labelled pictures, each part possibly empty, and notes for the reader."""

    members: Split
    unseen: Split
    held_out: Split
    notes: tuple[str, ...]


def people_in(originals: Path, labels: str) -> tuple[str, ...]:
    """Everybody in the originals."""
    return Split("", originals, _labelled(originals, originals, labels)).identities


def part_people(
    originals: Path, labels: str, trained: AbstractSet[str], unseen: Path | None = None, held_out: Path | None = None
) -> Parts:
    """The originals of the people in `trained`, and others.

    In the layout of Market-1501 only its training part was trained on, and of the others only people are held out who
    are searched for: its distractors are many people under one name. unseen, held_out: folders with more pictures,
    labelled like the originals; held_out replaces those among the originals.
    """
    records = _labelled(originals, originals, labels)
    notes = []
    searched: frozenset[str | None] | None = None
    if labels in ("auto", "market") and is_market_layout(originals):
        searched = frozenset(r.identity for r in records if r.path.startswith((_TRAIN, _QUERY)))
    members = [r for r in records if r.identity in trained and (searched is None or r.path.startswith(_TRAIN))]
    others = [r for r in records if r.identity not in trained and (searched is None or r.identity in searched)]
    if aside := len(records) - len(members) - len(others):
        notes.append(
            f"{aside} originals of the test part show training people or distractors, and are neither trained on nor "
            "held out"
        )
    known = () if unseen is None else _labelled(unseen, originals, labels)
    new = [r for r in known if r.identity in trained]
    if strangers := len(known) - len(new):
        notes.append(f"{strangers} of the unseen pictures show nobody who was trained on and are left out")
    if held_out is not None:
        known = _labelled(held_out, originals, labels)
        others = [r for r in known if r.identity not in trained]
        if familiar := len(known) - len(others):
            notes.append(f"{familiar} of the held-out pictures have a training person's name and are left out")
    return Parts(
        Split(MEMBERS, originals, tuple(members)),
        Split(UNSEEN, originals if unseen is None else unseen, tuple(new)),
        Split(HELD_OUT, originals if held_out is None else held_out, tuple(others)),
        tuple(notes),
    )


def _labelled(root: Path, originals: Path, labels: str) -> tuple[Record, ...]:
    """The pictures below `root` that show somebody known: labelled like the originals, or else as `root` needs it."""
    paths = [record.path for record in load_folder(root, "none").records]
    for place in (originals, root):
        label = labeller(labels, place)
        records = tuple(Record(path, *label(path)) for path in paths)
        found = tuple(record for record in records if record.identity not in (None, JUNK))
        if found or labels != "auto":
            return found
    return ()

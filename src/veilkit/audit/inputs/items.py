"""The items of an audit: protected files, or people in boxes, each with its original and with who is in it."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from veilkit.audit.inputs.pictures import Box
from veilkit.datasets.labels import MARKET_FOLDERS, is_market_layout, labeller
from veilkit.datasets.market1501 import JUNK
from veilkit.display import cell_text, counted
from veilkit.errors import DataError
from veilkit.pipeline.pairing import Pairing

_TRAIN, _QUERY, _GALLERY = (f"{folder}/" for folder in MARKET_FOLDERS)
COLUMNS = ("path", "x", "y", "w", "h")


@dataclass(frozen=True, slots=True)
class PersonBox:
    """A person in an original: its path, the box, and who it is and by which camera where that is known."""

    path: str
    box: Box
    identity: str | None = None
    camera: str | None = None


def read_boxes(file: Path) -> tuple[PersonBox, ...]:
    """Read a CSV file with the columns path, x, y, w, h and, if wanted, identity and camera.

    path is an original's, relative to its folder; the others are pixels of the upright picture, x and y of the upper
    left corner. Raises DataError with the line's number where it holds no box; what stands there is not repeated.
    """
    try:
        with file.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as lines:
            reader = csv.DictReader(lines)
            if not set(COLUMNS) <= set(reader.fieldnames or ()):
                raise DataError(f"expected a first line '{','.join(COLUMNS)},identity' in {file.name}")
            boxes = []
            for number, row in enumerate(reader, 2):
                try:
                    left, top, width, height = (round(float(row[name])) for name in COLUMNS[1:])
                except (TypeError, ValueError, OverflowError):
                    raise DataError(f"line {number} of {file.name}: x, y, w and h must be numbers") from None
                if width < 1 or height < 1 or not row["path"]:
                    raise DataError(f"line {number} of {file.name}: a box needs a path, and w and h of at least 1")
                identity, camera = cell_text(row.get("identity") or "") or None, row.get("camera") or None
                boxes.append(PersonBox(cell_text(row["path"]), (left, top, width, height), identity, camera))
    except OSError as error:
        raise DataError(f"the file of boxes {file} cannot be read: {error.strerror}") from None
    except csv.Error as error:
        raise DataError(f"the file of boxes {file.name} is not CSV: {error}") from None
    if not boxes:
        raise DataError(f"{file.name} holds no boxes: expected a line for each person")
    return tuple(boxes)


@dataclass(frozen=True, slots=True)
class Item:
    """A protected picture with its original (None where unknown) and what is known of who is in it."""

    original: str | None
    protected: str
    identity: str | None
    camera: str | None
    box: Box | None = None

    @property
    def labelled_path(self) -> str:
        """The path that its labels come from."""
        return self.protected if self.original is None else self.original


def items_of_files(
    originals: Path, protected: Path, protected_paths: Sequence[str], pairing: Pairing, labels: str
) -> tuple[list[Item], list[str]]:
    """An item for each pair, or for each protected picture where there are no pairs; then notes."""
    if pairing.pairs:
        label = labeller(labels, originals)
        return [Item(original, path, *label(original)) for original, path in pairing.pairs], []
    label = labeller(labels, protected)
    items = [Item(None, path, *label(path)) for path in sorted(protected_paths, key=os.fsencode)]
    if any(item.identity is not None for item in items):
        return items, ["no protected picture could be paired with an original: only the protected ones are measured"]
    better = (
        "With pairs, everything could be measured: keep the paths or file names of the originals, or give the key of "
        "the release (--key). Without pairs, how well the protected pictures of one person find each other could be: "
        "say who is in them (--labels)"
    )
    if pairing.notes:  # there is a key that pairs them, and it is not here
        raise DataError(
            "nothing can be measured: no protected picture could be paired with an original "
            f"({'; '.join(pairing.notes)}), and the protected pictures do not say who is in them. {better}"
        )
    return items, [
        "no protected picture could be paired with an original, for no path or file name occurs in both folders, and "
        f"the protected pictures do not say who is in them: only their files and pixels are looked into. {better}"
    ]


def items_of_boxes(pairing: Pairing, boxes: Sequence[PersonBox]) -> tuple[list[Item], list[str]]:
    """An item for each box of a picture that has a partner."""
    made = dict(pairing.pairs)
    items = [Item(box.path, made[box.path], box.identity, box.camera, box.box) for box in boxes if box.path in made]
    if not items:
        raise DataError(
            f"nothing can be measured: of {counted(len(boxes), 'box', 'boxes')} none lies in an original that has a "
            "protected picture. Paths in the file of boxes are relative to ORIGINALS, as in 'street/1.jpg'"
        )
    lost = len(boxes) - len(items)
    away = "box lies in a picture that is not there or has no partner, and is left out"
    many = "boxes lie in pictures that are not there or have no partner, and are left out"
    return items, [counted(lost, away, many)] if lost else []


def is_market(root: Path, labels: str) -> bool:
    """Whether the official query and gallery parts are to be used; both must hold pictures."""
    return (
        labels in ("auto", "market")
        and is_market_layout(root)
        and all(any((root / folder).iterdir()) for folder in (_QUERY, _GALLERY))
    )


def market_test_part(items: list[Item]) -> tuple[list[Item], list[str]]:
    """Query and gallery of the Market-1501 layout, without its junk detections."""
    tested = [item for item in items if item.labelled_path.startswith((_QUERY, _GALLERY)) and item.identity != JUNK]
    notes = ["the layout of Market-1501: its query pictures are searched for in its gallery"]
    if train := sum(item.labelled_path.startswith(_TRAIN) for item in items):
        notes.append(f"{train} pictures of the training part are not measured")
    if not tested:
        raise DataError(
            f"nothing can be measured: none of the {len(items)} pairs lies in the query or gallery folder of the "
            "Market-1501 layout; protect those folders too, or audit the training folder by itself"
        )
    return tested, notes


def queries_and_gallery(items: Sequence[Item], market: bool) -> tuple[list[int], list[int]]:
    """Places of the items that are searched for, and of those that they are searched among."""
    if not market:
        return list(range(len(items))), list(range(len(items)))
    asking = [index for index, item in enumerate(items) if item.labelled_path.startswith(_QUERY)]
    return asking, [index for index, item in enumerate(items) if item.labelled_path.startswith(_GALLERY)]

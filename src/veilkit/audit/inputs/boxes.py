"""Where people stand in whole pictures: boxes from a CSV file, each of which is audited as a picture of its own."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from veilkit.audit.inputs.pictures import Box
from veilkit.errors import DataError

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
                identity, camera = row.get("identity") or None, row.get("camera") or None
                boxes.append(PersonBox(row["path"], (left, top, width, height), identity, camera))
    except OSError as error:
        raise DataError(f"the file of boxes {file} cannot be read: {error.strerror}") from None
    except csv.Error as error:
        raise DataError(f"the file of boxes {file.name} is not CSV: {error}") from None
    if not boxes:
        raise DataError(f"{file.name} holds no boxes: expected a line for each person")
    return tuple(boxes)

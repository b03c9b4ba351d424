"""Boxes that somebody drew: read from and written to CSV, COCO and YOLO files.

Coordinates are those of the upright picture. A box says what is to happen there: it is protected as a face that was
found (`protect`), hidden (`hide`), or left as it is (`spare`), whatever a detector says.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from veilkit.display import cell_text, safe_cell
from veilkit.errors import DataError

Action = Literal["protect", "hide", "spare"]
COLUMNS = ("path", "x", "y", "w", "h")
_MOST_BYTES = 256 * 2**20
_FORMS = "CSV (path,x,y,w,h,action), COCO (.json), or a folder of YOLO files (.txt, one for each picture)"


@dataclass(frozen=True, slots=True)
class DrawnBox:
    """x, y: the upper left corner; w, h: width and height, in pixels, or with `relative` as shares of the sides.

    identity, camera: who is in it and by which camera, where a file says so.
    """

    x: float
    y: float
    w: float
    h: float
    action: Action = "hide"
    relative: bool = False
    identity: str | None = None
    camera: str | None = None

    def corners(self, width: int, height: int) -> tuple[float, float, float, float]:
        """Left, top, right, bottom in pixels of a picture of this size, cut to it."""
        across, down = (width, height) if self.relative else (1, 1)
        left, top = self.x * across, self.y * down
        right, bottom = left + self.w * across, top + self.h * down
        return max(0.0, left), max(0.0, top), min(float(width), right), min(float(height), bottom)


Boxes = Mapping[str, tuple[DrawnBox, ...]]
"""The boxes of each picture, by its path below the folder of originals."""


def read_boxes(place: Path, action: Action = "hide") -> Boxes:
    """Boxes from a file or folder, in whichever of the three forms it is. action: of those that name none."""
    try:
        if place.is_dir():
            return _read_yolo(place, action)
        if place.stat().st_size > _MOST_BYTES:
            raise DataError(f"the file of boxes {place.name} is larger than {_MOST_BYTES} bytes")
        if place.suffix.lower() == ".json":
            return _read_coco(place, action)
        return _read_csv(place, action)
    except OSError as error:
        raise DataError(f"the boxes {place} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{place.name} is not text: expected boxes as {_FORMS}") from None


def write_csv(file: Path, boxes: Boxes) -> None:
    """Write boxes as `read_boxes` takes them."""
    with file.open("w", newline="", encoding="utf-8", errors="surrogateescape") as out:
        writer = csv.writer(out)
        named = any(box.identity for drawn in boxes.values() for box in drawn)
        writer.writerow((*COLUMNS, "action", *["identity"] * named))
        for path in sorted(boxes, key=os.fsencode):
            for box in boxes[path]:
                if box.relative:
                    raise DataError("boxes as shares of the sides cannot be written as pixels")
                values = (round(value, 1) for value in (box.x, box.y, box.w, box.h))
                who = [safe_cell(box.identity or "")] * named
                writer.writerow((safe_cell(path), *values, box.action, *who))


def write_coco(file: Path, boxes: Boxes, sizes: Callable[[str], tuple[int, int]]) -> None:
    """Write boxes in COCO's form; `sizes` answers with width and height of a picture."""
    actions = list(get_args(Action))
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, path in enumerate(sorted(boxes, key=os.fsencode), 1):
        width, height = sizes(path)
        images.append({"id": number, "file_name": path, "width": width, "height": height})
        for box in boxes[path]:
            left, top, right, bottom = box.corners(width, height)
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": actions.index(box.action) + 1,
                    "bbox": [left, top, right - left, bottom - top],
                    "area": (right - left) * (bottom - top),
                    "iscrowd": 0,
                }
            )
    categories = [{"id": number, "name": name} for number, name in enumerate(actions, 1)]
    file.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))


def write_yolo(folder: Path, boxes: Boxes, sizes: Callable[[str], tuple[int, int]]) -> None:
    """Write one file for each picture, beside a list of the classes' names."""
    actions = list(get_args(Action))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "classes.txt").write_text("\n".join(actions) + "\n")
    for path, drawn in boxes.items():
        width, height = sizes(path)
        lines = []
        for box in drawn:
            left, top, right, bottom = box.corners(width, height)
            middle = ((left + right) / 2 / width, (top + bottom) / 2 / height)
            values = (*middle, (right - left) / width, (bottom - top) / height)
            lines.append(f"{actions.index(box.action)} " + " ".join(f"{value:.6f}" for value in values))
        target = (folder / path).with_suffix(".txt")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(lines) + "\n")


def _read_csv(file: Path, action: Action) -> Boxes:
    found: dict[str, list[DrawnBox]] = {}
    try:
        with file.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as lines:
            reader = csv.DictReader(lines)
            if not set(COLUMNS) <= set(reader.fieldnames or ()):
                raise DataError(f"expected a first line '{','.join(COLUMNS)}' in {file.name}, or boxes as {_FORMS}")
            for number, row in enumerate(reader, 2):
                where = f"line {number} of {file.name}"
                if not row["path"]:
                    raise DataError(f"{where}: a box needs a path")
                box = _box([row[name] for name in COLUMNS[1:]], row.get("action") or action, where)
                who, camera = (cell_text(row.get(name) or "") or None for name in ("identity", "camera"))
                found.setdefault(cell_text(row["path"]), []).append(
                    DrawnBox(*box[:4], box[4], identity=who, camera=camera)
                )
    except csv.Error as error:
        raise DataError(f"the file of boxes {file.name} is not CSV: {error}") from None
    return _some(found, file)


def _read_coco(file: Path, other: Action) -> Boxes:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        names = {each["id"]: str(each["file_name"]) for each in content["images"]}
        classes = {each["id"]: str(each["name"]) for each in content.get("categories", [])}
        annotations = content["annotations"]
        found: dict[str, list[DrawnBox]] = {}
        for number, each in enumerate(annotations, 1):
            action = classes.get(each.get("category_id"))
            box = _box(each["bbox"], action if action in get_args(Action) else other, f"box {number} of {file.name}")
            found.setdefault(names[each["image_id"]], []).append(DrawnBox(*box[:4], box[4]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(
            f"{file.name} is not a COCO file of boxes: expected images with id and file_name, and annotations with "
            "image_id and bbox"
        ) from None
    return _some(found, file)


def _read_yolo(folder: Path, other: Action) -> Boxes:
    """Boxes of pictures whose paths are those of the text files, without a suffix."""
    listed = folder / "classes.txt"
    classes = listed.read_text(encoding="utf-8").split() if listed.exists() else []
    found: dict[str, list[DrawnBox]] = {}
    for file in sorted(folder.rglob("*.txt")):
        if file == listed:
            continue
        path = file.relative_to(folder).with_suffix("").as_posix()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if not line.strip():
                continue
            where, parts = f"line {number} of {file.name}", line.split()
            if len(parts) < 5 or not parts[0].isdigit():
                raise DataError(f"{where}: expected a class and four shares (x, y, width, height)")
            name = classes[int(parts[0])] if int(parts[0]) < len(classes) else None
            x, y, w, h, action = _box(parts[1:5], name if name in get_args(Action) else other, where, most=1.5)
            found.setdefault(path, []).append(DrawnBox(x - w / 2, y - h / 2, w, h, action, relative=True))
    return _some(found, folder)


def _box(
    values: Sequence[object], action: str | None, where: str, most: float = math.inf
) -> tuple[float, float, float, float, Action]:
    try:
        x, y, w, h = (float(value) for value in values)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{where}: x, y, w and h must be numbers") from None
    if not all(math.isfinite(value) and abs(value) <= most for value in (x, y, w, h)) or w <= 0 or h <= 0:
        raise DataError(f"{where}: w and h must be above 0, and all four in range")
    if action not in get_args(Action):
        raise DataError(f"{where}: the action must be one of {', '.join(get_args(Action))}")
    return x, y, w, h, action  # type: ignore[return-value]


def _some(found: Mapping[str, Iterable[DrawnBox]], place: Path) -> Boxes:
    if not found:
        raise DataError(f"{place.name} holds no boxes: expected {_FORMS}")
    return {path: tuple(drawn) for path, drawn in found.items()}

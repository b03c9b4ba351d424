"""Disk to memory: generated faces as a split, with the truth as arrays."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilkit.datasets.folder import load_folder
from veilkit.errors import LayoutError
from veilkit.synthetic.faces.expression import EMOTIONS
from veilkit.synthetic.faces.generate import DESCRIPTION
from veilkit.synthetic.faces.truth import FaceTruth
from veilkit.synthetic.view import Floats
from veilkit.types import Record, Split

LABELS = tuple(EMOTIONS)


@dataclass(frozen=True, slots=True)
class GeneratedFaces:
    """F faces in the pictures of `split`; of portraits, face i is in picture i.

    picture: (F,) index into the split. people: who each face is. landmarks: (F, 68, 2), irises: (F, 2, 2), boxes: (F,
    4) as left, top, right, bottom, all in pixels from the picture's left top corner. visible: (F, 68). gaze,
    camera_gaze: (F, 2) yaw and pitch. pose: (F, 3) yaw, pitch, roll, degrees. expression: (F,) index into LABELS.
    intensity: (F,). actions: (F, A), in the order of ACTIONS.
    """

    split: Split
    picture: NDArray[np.int64]
    people: tuple[str, ...]
    landmarks: Floats
    visible: NDArray[np.bool_]
    irises: Floats
    boxes: Floats
    gaze: Floats
    camera_gaze: Floats
    pose: Floats
    expression: NDArray[np.int64]
    intensity: Floats
    actions: Floats

    def __len__(self) -> int:
        return len(self.people)


def load_generated_faces(root: Path) -> GeneratedFaces:
    """Read what `generate_faces` wrote to `root`."""
    try:
        described = json.loads((root / DESCRIPTION).read_bytes())
    except (OSError, ValueError):
        raise LayoutError(
            f"expected generated faces with their {DESCRIPTION} in {root}, but it is not there"
        ) from None
    if described.get("kind") != "generated faces":
        raise LayoutError(f"expected generated faces in {root}, but got {described.get('kind')}")
    if not described.get("complete"):
        raise LayoutError(f"the generated faces in {root} are unfinished: run the same command again")
    split = load_folder(root, "folder", "generated faces")
    if described["faces_per_picture"] > 1:
        split = Split(split.name, root, tuple(Record(record.path) for record in split.records))
    picture, people, truths = [], [], []
    for index in range(len(split)):
        file = split.file(index).with_suffix(".json")
        try:
            faces = json.loads(file.read_bytes())["faces"]
            truths += [FaceTruth.from_json(each) for each in faces]
        except (OSError, ValueError, KeyError):
            raise LayoutError(f"the truth of {split.records[index].path} is missing or damaged") from None
        people += [str(each["person"]) for each in faces]
        picture += [index] * len(faces)

    def table(name: str) -> Floats:
        return np.array([getattr(truth, name) for truth in truths], np.float32)

    return GeneratedFaces(
        split=split,
        picture=np.array(picture, np.int64),
        people=tuple(people),
        landmarks=table("landmarks"),
        visible=np.array([truth.visible for truth in truths], bool),
        irises=table("irises"),
        boxes=table("box"),
        gaze=table("gaze"),
        camera_gaze=table("camera_gaze"),
        pose=table("pose"),
        expression=np.array([LABELS.index(truth.expression) for truth in truths], np.int64),
        intensity=table("intensity"),
        actions=table("actions"),
    )

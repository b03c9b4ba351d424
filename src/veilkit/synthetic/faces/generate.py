"""Writing a set of generated faces: pictures, and the truth of each beside it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from veilkit.errors import ConfigError, DestinationError
from veilkit.rng import Randomness
from veilkit.synthetic.faces.capture import Ranges
from veilkit.synthetic.faces.pictures import SMALLEST, face, render_face, render_group
from veilkit.synthetic.writing import each, write_whole
from veilkit.version import __version__

DESCRIPTION, PEOPLE = "generated.json", "people.json"
GROUPS = "groups"
_MOST = 20  # faces in one picture
_README = """\
Nobody in these pictures exists: heads, hair, places and cameras were drawn by veilkit from random numbers.
PERSON/PERSON_SHOT.png is a portrait, groups/NUMBER.png a picture of several people. The file of the same name that
ends in .json holds what is known of each face in it. people.json holds the shape and the colours of each person.
generated.json holds the numbers from which the same version of veilkit draws the same set again.
"""


@dataclass(frozen=True, slots=True)
class FacesSpec:
    """What to draw: `images` of each of `people`, alone or with up to `faces_per_picture` in one picture."""

    people: int
    images: int
    seed: int
    size: int = 128
    faces_per_picture: int = 1
    ranges: Ranges = field(default_factory=Ranges)

    def __post_init__(self) -> None:
        for name, least in (("people", 1), ("images", 1), ("size", SMALLEST), ("faces_per_picture", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, but got {getattr(self, name)}")
        if self.faces_per_picture > min(_MOST, self.people):
            raise ConfigError(
                f"faces_per_picture must be at most {_MOST} and at most the number of people, "
                f"but got {self.faces_per_picture} with {self.people} people"
            )

    @property
    def pictures(self) -> int:
        """How many pictures there will be."""
        return self.images * math.ceil(self.people / self.faces_per_picture)

    def group(self, number: int) -> list[int]:
        """Who is in group picture `number`, which counts from 1.

        Each round shows everybody once, in an order of its own, so that nobody is twice in one picture.
        """
        per_round = math.ceil(self.people / self.faces_per_picture)
        turn, place = divmod(number - 1, per_round)
        order = Randomness.from_seed(self.seed).child("faces", "round", turn).permutation(self.people)
        return [int(index) + 1 for index in np.array_split(order, per_round)[place]]


def person_name(identity: int) -> str:
    """The folder of an identity, which counts from 1."""
    return f"{identity:04d}"


def generate_faces(
    dst: Path,
    *,
    people: int,
    images: int,
    seed: int,
    size: int = 128,
    faces_per_picture: int = 1,
    ranges: Ranges = Ranges(),  # noqa: B008 - frozen
    workers: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write generated faces, PNG, to `dst`, which must be absent, empty, or an unfinished set of the same numbers.

    A run that was stopped goes on: what is there is whole, and is not drawn again. A portrait's bytes depend only on
    (seed, identity, shot, size, ranges), never on workers. on_progress: called with (pictures there, pictures in
    all).
    """
    spec = FacesSpec(people, images, seed, size, faces_per_picture, ranges)
    if workers < 1:
        raise ConfigError(f"workers must be at least 1, but got {workers}")
    described = {"kind": "generated faces", "real_people": False, "version": __version__, **asdict(spec)}
    try:
        _open(dst, described)
        done, alone = 0, faces_per_picture == 1
        job = partial(_write_person if alone else _write_group, dst, spec)
        numbers = range(1, (people if alone else spec.pictures) + 1)
        for count in each(job, numbers, workers, "faces"):
            done += count
            if on_progress is not None:
                on_progress(done, spec.pictures)
        known = {person_name(identity): asdict(face(seed, identity)) for identity in range(1, people + 1)}
        write_whole(dst / PEOPLE, (json.dumps(known) + "\n").encode())
        write_whole(dst / DESCRIPTION, _as_file({**described, "complete": True}))
    except OSError as error:
        raise DestinationError(f"cannot write generated faces to {dst}: {error.strerror or error}") from error


def _as_file(described: dict[str, Any]) -> bytes:
    return (json.dumps(described, indent=2) + "\n").encode()


def _open(dst: Path, described: dict[str, Any]) -> None:
    """Begin a set at `dst`, or go on with the one that is there."""
    if dst.exists() and (not dst.is_dir() or any(dst.iterdir())):
        try:
            found = json.loads((dst / DESCRIPTION).read_bytes())
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict) or {**found, "complete": False} != {**described, "complete": False}:
            raise DestinationError(
                f"expected {dst} to be absent, an empty folder or an unfinished set of the same numbers and version; "
                "choose another or empty it"
            )
        return
    dst.mkdir(parents=True, exist_ok=True)
    write_whole(dst / DESCRIPTION, _as_file({**described, "complete": False}))
    write_whole(dst / "README.txt", _README.encode())


def _write_person(dst: Path, spec: FacesSpec, identity: int) -> int:
    """Draw and write what is missing of one identity; returns how many pictures it has."""
    name = person_name(identity)
    (dst / name).mkdir(exist_ok=True)
    for shot in range(1, spec.images + 1):
        stem = dst / name / f"{name}_{shot:06d}"
        if not stem.with_suffix(".json").exists():
            picture, truth = render_face(spec.seed, identity, shot, size=spec.size, ranges=spec.ranges)
            _write_picture(stem, picture, [truth.as_json(name)])
    return spec.images


def _write_group(dst: Path, spec: FacesSpec, number: int) -> int:
    """Draw and write group picture `number` unless it is there."""
    (dst / GROUPS).mkdir(exist_ok=True)
    stem = dst / GROUPS / f"{number:06d}"
    if not stem.with_suffix(".json").exists():
        who = spec.group(number)
        picture, truths = render_group(spec.seed, who, number, size=spec.size, ranges=spec.ranges)
        faces = [truth.as_json(person_name(identity)) for truth, identity in zip(truths, who, strict=True)]
        _write_picture(stem, picture, faces)
    return 1


def _write_picture(stem: Path, picture: NDArray[np.uint8], faces: list[dict[str, Any]]) -> None:
    """The picture, then its truth: where the truth is, the picture is too."""
    _, data = cv2.imencode(".png", picture[..., ::-1])
    write_whole(stem.with_suffix(".png"), data.tobytes())
    height, width = picture.shape[:2]
    truth = {"picture": f"{stem.name}.png", "height": height, "width": width, "faces": faces}
    write_whole(stem.with_suffix(".json"), (json.dumps(truth) + "\n").encode())

"""Writing a set of generated people in the layout of Market-1501."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import cv2

from veilkit.errors import ConfigError, DestinationError
from veilkit.synthetic.cameras import camera_jpeg_quality
from veilkit.synthetic.people.render import render_person
from veilkit.synthetic.writing import each, write_whole

_TRAIN, _QUERY, _GALLERY = "bounding_box_train", "query", "bounding_box_test"

_README = """\
Nobody in these pictures exists: bodies, clothes, places and cameras were drawn by veilkit from random numbers.
The layout is that of Market-1501; names are PERSON_cCAMERAs1_FRAME_00.jpg.
generated.json holds the numbers from which the same version of veilkit draws the same set again:
veilkit.synthetic.people.generate_people(dst, identities=..., images=..., cameras=..., seed=..., height=...)
"""


@dataclass(frozen=True, slots=True)
class PeopleSpec:
    """What to draw: `images` per identity, spread over `cameras`, in the world of `seed`, half as wide as high."""

    identities: int
    images: int
    cameras: int
    seed: int
    height: int = 256

    def __post_init__(self) -> None:
        for name, least in (("identities", 2), ("images", 2), ("cameras", 1), ("height", 64)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, but got {getattr(self, name)}")

    def shots(self, identity: int) -> Iterator[tuple[str, int, int]]:
        """(folder, camera, shot) of each picture of `identity`, which counts from 1, as cameras do.

        The first half of the identities is for training. Of each other one, the first shot of each camera is a query
        and the others are in the gallery. With fewer than two images per camera only the first picture is a query, so
        that its match can come from another camera; with one camera there is no other.
        """
        for index in range(self.images):
            camera, shot = 1 + (identity + index) % self.cameras, index // self.cameras
            is_query = shot == 0 if self.images >= 2 * self.cameras else index == 0
            yield (_TRAIN if identity <= self.identities // 2 else _QUERY if is_query else _GALLERY), camera, shot


def _write_identity(dst: Path, spec: PeopleSpec, identity: int) -> int:
    """Draw and write all pictures of one identity; returns how many."""
    for folder, camera, shot in spec.shots(identity):
        picture = render_person(spec.seed, identity, camera, shot, height=spec.height, width=spec.height // 2)
        quality = camera_jpeg_quality(spec.seed, camera)
        _, data = cv2.imencode(".jpg", picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
        write_whole(dst / folder / f"{identity:04d}_c{camera}s1_{shot + 1:06d}_00.jpg", data.tobytes())
    return spec.images


def generate_people(
    dst: Path,
    *,
    identities: int,
    images: int,
    cameras: int,
    seed: int,
    height: int = 256,
    workers: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write generated people, JPEG of `height` and half its width, to `dst`, which must be absent or empty.

    images: per identity, spread evenly over the cameras. `PeopleSpec.shots` says which go where: with
    images >= 2 * cameras each identity outside training has one query per camera and a match in every camera;
    with fewer, one query and matches in the others. A file's bytes depend only on (seed, identity, camera, shot),
    and on the height.
    on_progress: called with (pictures written, pictures in all). generated.json is written last, when all is there.
    """
    spec = PeopleSpec(identities, images, cameras, seed, height)
    if workers < 1:
        raise ConfigError(f"workers must be at least 1, but got {workers}")
    try:
        if dst.exists() and (not dst.is_dir() or any(dst.iterdir())):
            raise DestinationError(f"expected {dst} to be absent or an empty folder; choose another or empty it")
        for folder in (_TRAIN, _QUERY, _GALLERY):
            (dst / folder).mkdir(parents=True, exist_ok=True)
        done, total = 0, identities * images
        for count in each(partial(_write_identity, dst, spec), range(1, identities + 1), workers, "people"):
            done += count
            if on_progress is not None:
                on_progress(done, total)
        write_whole(dst / "README.txt", _README.encode())
        size = {"height": height, "width": height // 2}
        described = {"kind": "generated people", "real_people": False, **size, **asdict(spec)}
        write_whole(dst / "generated.json", (json.dumps(described, indent=2) + "\n").encode())
    except OSError as error:
        raise DestinationError(f"cannot write generated people to {dst}: {error.strerror or error}") from error

"""Contact sheets of generated people and faces; `python benchmarks/sheets.py OUT` draws forty people into one."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from veilkit.errors import ConfigError
from veilkit.synthetic.cameras import camera_jpeg_quality
from veilkit.synthetic.faces.pictures import render_face, render_group
from veilkit.synthetic.people.render import render_person

PEOPLE, SHOTS = 8, 6  # of the sheet of faces


def contact_sheet(images: Sequence[NDArray[np.uint8]], columns: int, gap: int = 4) -> NDArray[np.uint8]:
    """`images` (H, W, 3), all of one size, in rows of `columns` on white, `gap` pixels apart."""
    if not images or columns < 1 or gap < 0:
        raise ConfigError(
            f"expected images, columns >= 1 and gap >= 0, but got {len(images)} images, {columns} columns, gap {gap}"
        )
    height, width = images[0].shape[:2]
    rows = -(-len(images) // columns)
    sheet = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap, 3), 255, np.uint8)
    for index, image in enumerate(images):
        top, left = (index // columns) * (height + gap), (index % columns) * (width + gap)
        sheet[top : top + height, left : left + width] = image
    return sheet


def forty_people(seed: int = 1) -> NDArray[np.uint8]:
    """Ten people in each of four rows; one row per camera, each person once, compressed as the camera would."""
    pictures = []
    for index in range(40):
        camera = 1 + index // 10
        picture = render_person(seed, index, camera, 0)
        stored = io.BytesIO()
        Image.fromarray(picture).save(stored, "JPEG", quality=camera_jpeg_quality(seed, camera))
        pictures.append(np.asarray(Image.open(stored)))
    return contact_sheet(pictures, columns=10)


def faces_sheet(seed: int = 1, size: int = 128) -> NDArray[np.uint8]:
    """`PEOPLE` columns of `SHOTS` portraits each."""
    pictures = [render_face(seed, person, shot, size=size)[0] for shot in range(SHOTS) for person in range(PEOPLE)]
    return contact_sheet(pictures, columns=PEOPLE)


def group_sheet(seed: int = 1, size: int = 160) -> NDArray[np.uint8]:
    """One group photograph of seven people."""
    return render_group(seed, range(1, 8), 1, size=size)[0]


def main() -> None:
    """Write the sheet of forty people to the file named on the command line."""
    if len(sys.argv) != 2:
        sys.exit("usage: python benchmarks/sheets.py OUT")
    Image.fromarray(forty_people()).save(sys.argv[1], optimize=True)


if __name__ == "__main__":
    main()

"""A contact sheet of generated faces: people down, and across what varies while a person stays the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.synthetic.faces.group import render_group
from veilkit.synthetic.faces.portrait import render_face
from veilkit.synthetic.people.sheet import contact_sheet

PEOPLE, SHOTS = 8, 6


def faces_sheet(seed: int = 1, size: int = 128) -> NDArray[np.uint8]:
    """`PEOPLE` columns of `SHOTS` portraits each."""
    pictures = [render_face(seed, person, shot, size=size)[0] for shot in range(SHOTS) for person in range(PEOPLE)]
    return contact_sheet(pictures, columns=PEOPLE)


def group_sheet(seed: int = 1, size: int = 160) -> NDArray[np.uint8]:
    """One group photograph of seven people."""
    return render_group(seed, range(1, 8), 1, size=size)[0]

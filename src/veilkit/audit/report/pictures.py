"""Small pictures for a page, as addresses that hold the picture itself."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from veilkit.attacks import ATTACKS, AttackTarget
from veilkit.attacks.recovered import RecoveredPictures, ShowsRecovered
from veilkit.audit.inputs.subject import Subject
from veilkit.types import Evidence

_STRIP = 8  # pictures shown
_SIZE = (320, 192)  # at most so wide and high

Row = dict[str, str]


def strip(subject: Subject, show_originals: bool) -> list[Row]:
    """Evenly chosen pictures; originals only where the reader asked for them."""
    count = len(subject.protected)
    places = np.unique(np.linspace(0, count - 1, min(_STRIP, count)).round().astype(int))
    rows = []
    for place in places:
        row = {}
        if show_originals and subject.originals is not None:
            row["original"] = data_address(subject.originals.pixels(int(place)))
        rows.append({**row, "protected": data_address(subject.protected.pixels(int(place)))})
    return rows


def recovered_rows(pictures: RecoveredPictures) -> list[Row]:
    """Original, protected and recovered, for each victim."""
    return [
        {
            name: data_address(images[place].permute(1, 2, 0).contiguous().numpy())
            for name, images in pictures.rows().items()
        }
        for place in range(len(pictures.recovered))
    ]


def data_address(pixels: NDArray[np.uint8]) -> str:
    """HWC uint8 pixels, made small, as a data: address of a PNG without metadata."""
    image = Image.fromarray(pixels)
    image.thumbnail(_SIZE)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


@dataclass(frozen=True, slots=True, eq=False)
class Recovered:
    """Pictures that an attack recovered."""

    attack: str
    pictures: RecoveredPictures


def recovering(evidence: Iterable[Evidence]) -> list[str]:
    """Names of the attacks that were made and can show pictures which they recovered, in the order of their table."""
    made = {each.attack for each in evidence if each.applicable}
    return [name for name, attack in ATTACKS.items() if name in made and issubclass(attack, ShowsRecovered)]


def recovered_pictures(evidence: Iterable[Evidence], target: AttackTarget, count: int) -> Recovered | None:
    """At most `count` pictures by the first attack that can show some; None where none was made."""
    for name in recovering(evidence):
        attack = ATTACKS[name]()
        assert isinstance(attack, ShowsRecovered)
        return Recovered(name, attack.recovered_pictures(target, count))
    return None

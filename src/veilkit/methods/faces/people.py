"""People whose faces are left as they are, or alone are protected, known by example pictures and a face network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.errors import ConfigError, RefusedImage
from veilkit.experts.alignment import WIDE, view
from veilkit.experts.base import Embedder
from veilkit.media.reading import Limits, decode, read_bytes
from veilkit.types import Region

if TYPE_CHECKING:
    from veilkit.methods.faces.method import FoundFace

SAME, OTHER = 0.45, 0.70
"""Distances of dlib's features: nearer than the first is surely one person, farther than the second surely another.

Chosen on people who are in none of the test folds: see `benchmarks/known_people.py`.
"""
LEAST_SIDE = 48
"""Pixels of a face's box, below which nobody is surely anybody."""


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """spare, only: features (n, D) of examples. A face in doubt is never left as it is."""

    network: Embedder
    spare: Tensor
    only: Tensor

    @classmethod
    def of(cls, spare: Sequence[Path], only: Sequence[Path], faces_of: Callable[[Tensor], list[FoundFace]]) -> People:
        """From example pictures, each of which must show one face."""
        from veilkit.experts.dlib_identity import DlibIdentity  # extra: faces

        network = DlibIdentity.load()
        return cls(network, *(_examples(network, files, faces_of) for files in (spare, only)))

    def known(self, picture: Tensor, faces: Sequence[FoundFace], regions: Sequence[Region] = ()) -> set[int]:
        """The numbers of the faces of a picture (3, H, W) that surely are to be left as they are."""
        from veilkit.methods.faces.method import asked

        sure = [face for face in faces if face.points is not None and face.side >= LEAST_SIDE]
        sure = [face for face in sure if asked(face.box, regions) is None]
        if not sure:
            return set()
        features = torch.cat([face_features(self.network, picture, face) for face in sure])
        numbers = [face.number for face in sure]
        known: set[int] = set()
        if len(self.spare):
            apart = torch.cdist(features, self.spare)
            near, place = apart.min(0)  # an example is one person, who is in a picture once
            known |= {
                numbers[at] for at, distance in zip(place.tolist(), near.tolist(), strict=True) if distance < SAME
            }
        if len(self.only):
            far = torch.cdist(features, self.only).amin(1) > OTHER
            known |= {number for number, other in zip(numbers, far.tolist(), strict=True) if other}
        return known

    def public(self) -> dict[str, Any]:
        """What the public manifest says of them."""
        return {"spared_examples": len(self.spare), "only_examples": len(self.only)}

    def fingerprint(self) -> str:
        """All that decides who is known."""
        values = [sorted(map(str, each.double().round(decimals=4).tolist())) for each in (self.spare, self.only)]
        return f"{self.network.info.fingerprint} {SAME} {OTHER} {LEAST_SIDE} {values}"


def face_features(network: Embedder, picture: Tensor, face: FoundFace) -> Tensor:
    """(1, D): what the network says of a face with points, cut as dlib's own."""
    assert face.points is not None
    with torch.no_grad():
        crop = WIDE[face.order].align(picture[None], face.points.float()[None], 212)
        return network.embed(F.interpolate(view(crop, "dlib"), size=(150, 150), mode="bilinear", antialias=True))


def _examples(network: Embedder, files: Sequence[Path], faces_of: Callable[[Tensor], list[FoundFace]]) -> Tensor:
    found = []
    for file in files:
        try:
            pixels = decode(read_bytes(Path(file), Limits()), Limits())
        except RefusedImage as refusal:
            raise ConfigError(f"the example picture {file} cannot be used: {refusal.reason}") from None
        picture = torch.from_numpy(pixels).permute(2, 0, 1).float().div(255)
        faces = [face for face in faces_of(picture) if face.points is not None and face.side >= LEAST_SIDE]
        if len(faces) != 1:
            raise ConfigError(
                f"the example picture {file} must show one face, at least {LEAST_SIDE} pixels wide, but shows "
                f"{len(faces)}: cut it to the person meant"
            )
        found.append(face_features(network, picture, faces[0]))
    return torch.cat(found) if found else torch.empty(0, network.dim)

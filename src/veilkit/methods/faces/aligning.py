"""Which faces can be changed: large enough, and upright by a similarity of their points."""

from __future__ import annotations

from torch import Tensor

from veilkit.experts.alignment import WIDE
from veilkit.methods.faces.method import FoundFace

TOO_SMALL, NOT_ALIGNED = "a face too small to be swapped", "a face that did not align"


def wide_alignment(face: FoundFace, size: int, *, least_side: float, most_misfit: float) -> Tensor | str:
    """The matrix (2, 3) from the picture to the wide crop of `size` pixels, or why there is none."""
    if face.side < least_side:
        return TOO_SMALL
    if face.points is None:
        return NOT_ALIGNED
    template, points = WIDE[face.order], face.points[None]
    matrix = template.matrix(points, size)[0]
    fits = bool(matrix.isfinite().all()) and float(matrix[0, :2].abs().sum()) > 1e-6
    return matrix if fits and float(template.misfit(points)) <= most_misfit else NOT_ALIGNED

"""Mouth and lids of a drawn face moved to those of the photographed one: small warps, and nothing else of it."""

from __future__ import annotations

import cv2
import numpy as np

from veilkit.methods.faces.blending import Picture, Points, eye_distance

_EYES = (range(36, 42), range(42, 48))
_CORNERS, _LIPS = (48, 54), range(48, 68)
_STILL = (*range(0, 17, 2), *range(17, 27), 27, 28, 30, 31, 33, 35)  # jaw, brows, nose
_REACH = 0.16  # of the distance of the eyes' outer corners: how far what is moved takes its surroundings along
_MOST_MOUTH, _LIDS = 0.1, (0.6, 1.5)  # the most that a corner moves, in that distance; the least and most scaling
_GRID = 96  # cells a side in which the warp is worked out


def expressed(face: Picture, face_points: Points, points: Points) -> tuple[Picture, Points]:
    """A drawn face (H, W, 3) and its 68 landmarks, with mouth corners and lids as they stand at `points` (68, 2).

    What is taken over: how far the mouth's corners lie from its middle, in distances between the eyes, and how open
    each eye is. Of all else that landmarks tell, nothing.
    """
    moves = np.zeros_like(face_points)
    ours, theirs = _axes(face_points), _axes(points)
    unit, other = eye_distance(face_points), eye_distance(points)
    for corner in _CORNERS:
        wanted = (points[corner] - points[_LIPS].mean(0)) @ theirs.T / other
        found = (face_points[corner] - face_points[_LIPS].mean(0)) @ ours.T / unit
        move = (wanted - found) @ ours
        moves[corner] = move * unit * min(1.0, _MOST_MOUTH / max(1e-6, float(np.hypot(*move))))
    for eye in _EYES:
        outer, upper, upper_2, inner, lower_2, lower = eye
        pairs = ((upper, lower), (upper_2, lower_2))
        wide = [float(np.hypot(*(at[inner] - at[outer]))) for at in (face_points, points)]
        open_ = [sum(float(np.hypot(*(at[a] - at[b]))) for a, b in pairs) for at in (face_points, points)]
        scale = np.clip((open_[1] / max(wide[1], 1e-6)) / max(open_[0] / max(wide[0], 1e-6), 1e-6), *_LIDS)
        for one, two in pairs:
            half = (face_points[one] - face_points[two]) * (scale - 1) / 2
            moves[one], moves[two] = half, -half
    known = [*_STILL, *_CORNERS, *(place for eye in _EYES for place in eye)]
    goals = face_points[known] + moves[known]
    reach = _REACH * unit
    weights = np.linalg.solve(_bumps(goals, goals, reach) + 1e-3 * np.eye(len(known)), moves[known])

    height, width = face.shape[:2]
    x, y = (np.linspace(0, size - 1, _GRID) for size in (width, height))
    cells = np.stack(np.meshgrid(x, y), -1).reshape(-1, 2) + 0.5
    field = (_bumps(cells, goals, reach) @ weights).reshape(_GRID, _GRID, 2).astype(np.float32)
    field = np.asarray(cv2.resize(field, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)
    columns, rows = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    made = cv2.remap(
        face, columns - field[..., 0], rows - field[..., 1], cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    moved = face_points + _bumps(face_points + moves, goals, reach) @ weights
    return np.asarray(np.clip(made, 0, 1), np.float32), moved


def _axes(points: Points) -> Points:
    """(2, 2): the unit vectors along the eyes and down the face."""
    along = points[42:48].mean(0) - points[36:42].mean(0)
    along = along / max(1e-6, float(np.hypot(*along)))
    return np.array([along, [-along[1], along[0]]])


def _bumps(at: Points, centres: Points, reach: float) -> Points:
    """(N, M): how much each centre takes a place along."""
    apart = ((at[:, None] - centres[None]) ** 2).sum(2)
    return np.asarray(np.exp(-apart / (2 * reach**2)))

"""What is kept in protected faces: landmarks, gaze, expression and quality, by judges, picture by picture.

A judge's answer on the original is the truth here. Pictures in whose original it sees no face are left out. Where it
sees none in the protected picture, its mean answer over the originals stands in (its commonest, for expressions):
who gets nothing can only say the same of everybody. So every release is measured on the same pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from studies.shared.attacks import rounded
from veilkit.attacks.intervals import mean_score
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.pictures import FilePictures
from veilkit.errors import DataError, VeilkitError
from veilkit.experts import load_predictor
from veilkit.experts.base import Detector, Predictor
from veilkit.experts.finders import load_finder
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.types import Role

Array = NDArray[np.float64]
PARTS: dict[int, dict[str, tuple[int, ...]]] = {
    68: {"eyes": tuple(range(36, 48)), "nose": tuple(range(27, 36)), "mouth": tuple(range(48, 68))},
    5: {"eyes": (0, 1), "nose": (2,), "mouth": (3, 4)},
}
"""Which points are which part, by how many points there are: iBUG's 68, or eyes, nose and corners of the mouth."""
_EYES = {68: (36, 45), 5: (0, 1)}


def landmark_errors(found: Array, truth: Array) -> dict[str, Array]:
    """Mean distances (N,) of points (N, P, 2) to the true ones, in % of the distance between the eyes there.

    "all" points, and each of `PARTS`. Of 68 points, the eyes' distance is that of their outer corners.
    """
    points = truth.shape[1] if truth.ndim == 3 else 0
    if points not in _EYES or found.shape != truth.shape or truth.shape[2] != 2:
        raise DataError(f"expected two sets of 68 or 5 points (N, P, 2), but got {found.shape} and {truth.shape}")
    left, right = _EYES[points]
    between = np.linalg.norm(truth[:, left] - truth[:, right], axis=1)
    if not (between > 0).all():
        raise DataError("the eyes of a face lie in one place: such landmarks are no measure")
    away = 100 * np.linalg.norm(found - truth, axis=2) / between[:, None]
    return {"all": away.mean(1), **{part: away[:, list(places)].mean(1) for part, places in PARTS[points].items()}}


def gaze_errors(found: Array, truth: Array) -> Array:
    """Angles (N,) in degrees between directions (N, 2), each a yaw and a pitch in degrees.

    >>> gaze_errors(np.array([[30.0, 0.0]]), np.array([[-15.0, 0.0]])).round(6).tolist()
    [45.0]
    """
    if found.shape != truth.shape or truth.ndim != 2 or truth.shape[1] != 2:
        raise DataError(f"expected two sets of yaw and pitch (N, 2), but got {found.shape} and {truth.shape}")
    inner = (_direction(found) * _direction(truth)).sum(1)
    return np.asarray(np.degrees(np.arccos(np.clip(inner, -1.0, 1.0))))


def expression_agreement(found: Array, truth: Array) -> Array:
    """(N,) 1 where two sets of scores (N, classes) name the same expression, else 0."""
    if found.shape != truth.shape or truth.ndim != 2:
        raise DataError(f"expected two sets of scores (N, classes), but got {found.shape} and {truth.shape}")
    return np.asarray(found.argmax(1) == truth.argmax(1), dtype=np.float64)


def _direction(gaze: Array) -> Array:
    yaw, pitch = np.radians(gaze).T
    return np.stack([np.cos(pitch) * np.sin(yaw), np.sin(pitch), np.cos(pitch) * np.cos(yaw)], 1)


KINDS = ("landmarks", "gaze", "expression")
BETTER_HIGH = frozenset({"expression", "quality"})
_CHUNK = 16


@dataclass(frozen=True, slots=True)
class Judge:
    """Who judges one kind of utility; `why` where nobody can."""

    kind: str
    name: str
    predictor: Predictor | None
    why: str = ""


def load_judge(kind: str, name: str) -> Judge:
    """A predictor by name; where it or its files are missing that is told, and not a reason to stop."""
    if not name:
        return Judge(kind, name, None, "nobody was asked")
    try:
        predictor = load_predictor(name)
        predictor.predict(torch.zeros(1, 3, 64, 64))  # what is missing shows when it is first used
    except VeilkitError as error:
        return Judge(kind, name, None, str(error))
    return Judge(kind, name, predictor)


def predicted(predictor: Predictor, pictures: FilePictures, cache: Cache) -> Array:
    """Answers (N, ...) on picture files, kept by file; NaN where the judge sees no face."""
    kind = f"predicted {predictor.name} {predictor.sha256}"
    shapes = f"{kind} shape"
    known = cache.get(kind, [file.sha256 for file in pictures.files])
    missing = [place for place, file in enumerate(pictures.files) if file.sha256 not in known]
    with Progress(len(pictures), f"asking {predictor.name}", done=len(pictures) - len(missing)) as progress:
        for start in range(0, len(missing), _CHUNK):
            for part, images in pictures.batches(missing[start : start + _CHUNK]):
                with torch.no_grad():
                    answers = predictor.predict(images).numpy().astype(np.float32)
                cache.put(shapes, [("one", np.array(answers.shape[1:], dtype=np.float32))])
                new = [(pictures.files[i].sha256, row.ravel()) for i, row in zip(part, answers, strict=True)]
                cache.put(kind, new)
                known.update(new)
                progress.advance(len(part))
    shape = tuple(int(side) for side in cache.get(shapes, ["one"])["one"])
    rows = np.stack([known[file.sha256] for file in pictures.files])
    return rows.reshape(len(rows), *shape).astype(np.float64)


def kept(judge: Judge, truth: Array, found: Array, people: NDArray[np.int64], rng: Randomness) -> dict[str, Any]:
    """One kind of utility: [mean, low, high] over people, the same of parts, and of each picture.

    truth, found: (N, ...) answers on originals and on protected pictures. "found": share of pictures in which the
    judge still sees a face; "constant": what saying the same of everybody gets.
    """
    seen = _whole(truth)
    if len(np.unique(people[seen])) < 2:
        return {"judge": judge.name, "why": "the judge sees faces of fewer than two people in the originals"}
    truth, found, people = truth[seen], found[seen], people[seen]
    same = np.broadcast_to(_constant(judge.kind, truth), truth.shape)
    there = _whole(found)
    answers = np.where(there.reshape(-1, *[1] * (truth.ndim - 1)), np.nan_to_num(found), same)
    measured = _measures(judge.kind)(answers, truth)
    name, values = next(iter(measured.items()))

    def mean(each: Array) -> list[float | None]:
        score = mean_score(
            judge.kind, each, people, role=Role.UTILITY, higher_is_better=judge.kind in BETTER_HIGH, rng=rng
        )
        return [score.value, score.low, score.high]

    return {
        "judge": judge.name,
        "mean": mean(values),
        "parts": {part: mean(each) for part, each in measured.items() if part != name},
        "constant": float(next(iter(_measures(judge.kind)(same, truth).values())).mean()),
        "found": float(there.mean()),
        "pictures": len(values),
        "people": people.tolist(),
        "each": rounded(values),
    }


def sureness(finder: Detector, pictures: FilePictures, cache: Cache) -> Array:
    """(N,) how sure a detector is of the face that it is surest of, in [0, 1]; 0 where it sees none."""
    kind = f"sureness {finder.info.fingerprint}"
    known = cache.get(kind, [file.sha256 for file in pictures.files])
    with Progress(len(pictures), f"asking {finder.name}", done=len(known)) as progress:
        for index, file in enumerate(pictures.files):
            if file.sha256 in known:
                continue
            scores = finder.detect(pictures.load(index)[None])[0].scores
            value = np.array([float(scores.max()) if len(scores) else 0.0], dtype=np.float32)
            cache.put(kind, [(file.sha256, value)])
            known[file.sha256] = value
            progress.advance(1)
    return np.array([known[file.sha256][0] for file in pictures.files], dtype=np.float64)


def quality(
    name: str,
    pictures: FilePictures,
    places: NDArray[np.int64],
    people: NDArray[np.int64],
    cache: Cache,
    rng: Randomness,
) -> dict[str, Any]:
    """A detector's sureness of pictures at `places` (N,), of people (N,); why there is none, where it is missing."""
    try:
        finder = load_finder(name) if name else None
    except VeilkitError as error:
        return {"judge": name, "why": str(error)}
    if finder is None:
        return {"judge": name, "why": "nobody was asked"}
    values = sureness(finder, pictures, cache)[places]
    score = mean_score("quality", values, people, role=Role.UTILITY, higher_is_better=True, rng=rng)
    return {
        "judge": name, "mean": [score.value, score.low, score.high], "found": float((values > 0).mean()),
        "people": people.tolist(), "each": rounded(values),
    }  # fmt: skip


def _whole(answers: Array) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(answers.reshape(len(answers), -1)).all(axis=1))


def _constant(kind: str, truth: Array) -> Array:
    """What to say of everybody: the mean answer, or the commonest expression."""
    if kind != "expression":
        return np.asarray(truth.mean(axis=0))
    commonest = np.zeros(truth.shape[1])
    commonest[np.bincount(truth.argmax(1)).argmax()] = 1.0
    return commonest


def _measures(kind: str) -> Callable[[Array, Array], dict[str, Array]]:
    return {
        "landmarks": landmark_errors,
        "gaze": lambda found, truth: {"all": gaze_errors(found, truth)},
        "expression": lambda found, truth: {"all": expression_agreement(found, truth)},
    }[kind]

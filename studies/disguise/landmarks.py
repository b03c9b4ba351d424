"""Protected faces as training data (the paper's Table 3): a landmark network that saw nothing else, on real faces.

The truth are a judge's landmarks of the *originals*, in training and test; so what is measured is agreement with that
judge, and a protection that moves the face under its landmarks teaches wrong ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studies.disguise.utility import landmark_errors
from studies.shared.attacks import rounded
from veilkit.attacks.intervals import mean_score
from veilkit.attacks.people_split import pixels
from veilkit.audit.inputs.pictures import FilePictures
from veilkit.errors import DataError
from veilkit.experts.alignment import moved
from veilkit.metrics import bootstrap_means, percentile_interval
from veilkit.networks.face_attributes import load_face_attributes
from veilkit.rng import Randomness
from veilkit.training.face_attributes import FaceAttributesTraining, crops, plain_matrix, train_face_attributes
from veilkit.training.face_examples import UNKNOWN, FaceExamples
from veilkit.types import Role

Array = NDArray[np.float64]
POINTS = (68, 2)
_CHUNK = 64


def trained_on(pictures: FilePictures, truth: Array, taught: str, config: FaceAttributesTraining, out: Path) -> Path:
    """A network of landmarks taught by these pictures alone and `truth` (N, 68, 2), in their pixels; found again."""
    if not out.exists():
        examples = _examples(pictures, truth, config.stored, taught)
        train_face_attributes(examples, config, out, work_dir=out.with_suffix(".training"), half=False)
    return out


@torch.no_grad()
def landmark_error(
    model: Path, pictures: FilePictures, truth: Array, people: NDArray[np.int64], side: int, rng: Randomness
) -> dict[str, Any]:
    """Errors of a network on pictures with `truth` (N, 68, 2), in % of the distance between the eyes' outer corners.

    Faces are cut by the true landmarks. "mean face": what the mean of all true landmarks, so cut, would get.
    """
    seen = _seen(truth)
    network, _ = load_face_attributes(model)
    sized, marks = _sized(pictures, truth, side)
    matrix = plain_matrix(marks[seen], side)
    wanted = moved(marks[seen], matrix)
    images = crops(sized[seen], matrix, side)
    answers = [network.predict(part, "landmarks") * side for part in torch.split(images, _CHUNK)]
    goal = wanted.double().numpy()
    each = landmark_errors(torch.cat(answers).double().numpy(), goal)["all"]
    mean = landmark_errors(np.broadcast_to(goal.mean(0), goal.shape), goal)["all"]
    who = people[seen.numpy()]
    score = mean_score("landmarks", each, who, role=Role.UTILITY, higher_is_better=False, rng=rng)
    return {
        "mean": [score.value, score.low, score.high],
        "mean face": float(mean.mean()),
        "people": who.tolist(),
        "each": rounded(each),
    }


def ratio(first: dict[str, Any], second: dict[str, Any], rng: Randomness) -> list[float]:
    """[mean(first) / mean(second), low, high] of errors on the same pictures; people are drawn again."""
    values = np.array([first["each"], second["each"]], dtype=np.float64)
    draws = bootstrap_means(values, first["people"], generator=rng.child("bootstrap").numpy())
    found = percentile_interval(float(values[0].mean() / values[1].mean()), draws[0] / draws[1])
    return [found.value, found.low, found.high]


def _examples(pictures: FilePictures, truth: Array, side: int, taught: str) -> FaceExamples:
    seen = _seen(truth)
    if not bool(seen.any()):
        raise DataError("expected landmarks of some faces to learn from, but the judge sees none")
    sized, marks = _sized(pictures, truth, side)
    count = int(seen.sum())
    return FaceExamples(
        pixels=sized[seen],
        landmarks=marks[seen],
        gaze=torch.full((count, 2), torch.nan),
        expression=torch.full((count,), UNKNOWN),
        taught={"landmarks": taught, "gaze": "", "expression": ""},
    )


def _sized(pictures: FilePictures, truth: Array, side: int) -> tuple[Tensor, Tensor]:
    """All pictures at side x side, uint8, and their landmarks there."""
    scale = torch.tensor([side, side]) / torch.from_numpy(pictures.sizes[:, ::-1].copy()).float()
    return pixels(pictures, (side, side)), torch.from_numpy(truth).float() * scale[:, None]


def _seen(truth: Array) -> Tensor:
    return torch.from_numpy(np.isfinite(truth).all(axis=(1, 2)))

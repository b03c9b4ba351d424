"""Knowledge replay (FRO, Eq. 7): a student learns from pictures and a teacher's logits on them, never from labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TextIO

import torch
from torch import Tensor

from veilkit.datasets.augment import AugmentConfig
from veilkit.datasets.folder import load_folder
from veilkit.datasets.soft_labels import SOFT_LABELS, Views, read_soft_labels
from veilkit.errors import DataError
from veilkit.training.reid import ReidTraining, train_reid
from veilkit.training.reid_config import PLAIN, ReidConfig
from veilkit.types import Split

# The pool's own recipe, with soft targets. A pool is nearly sure of most pictures; at a higher temperature a student
# learns from its small logits as well: who looks like whom (measured in docs/methods/fro.md).
STUDENT: ReidConfig = replace(
    PLAIN, backbone="mobilenetv2", epochs=30, temperature=4.0, augment=AugmentConfig(erase=0.0)
)


def load_synthetic(folder: Path) -> tuple[Split, Tensor]:
    """A synthetic folder: its pictures, each labelled by its own folder, and the logits (N, C) that go with them."""
    labels = read_soft_labels(folder)
    if labels is None:
        raise DataError(f"{folder} holds no {SOFT_LABELS}; give a teacher whose logits on the pictures are matched")
    split = load_folder(folder, "folder", "synthetic")
    return split, torch.from_numpy(labels.of([record.path for record in split.records]))


def views_of(split: Split, targets: Tensor) -> Tensor | Views:
    """What a student of some pictures of a synthetic folder is told: its views of them, or else just `targets`."""
    labels = read_soft_labels(split.root)
    views = None if labels is None else labels.views_of([record.path for record in split.records])
    return targets if views is None else views


def train_student(
    split: Split,
    targets: Tensor | Views,
    config: ReidConfig,
    out: Path,
    *,
    work_dir: Path,
    init: Path | None = None,
    stream: TextIO | None = None,
) -> ReidTraining:
    """Train a student on `split` by KL(teacher || student) and write it as an expert; resumable as `train_reid`.

    targets: a teacher's views, or its logits (N, C) on the pictures at rest, which are then varied at random.
    """
    return train_reid(split, config, out, work_dir=work_dir, init=init, targets=targets, stream=stream)

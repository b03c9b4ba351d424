"""Re-ID training: from a split of labelled people to a model file, resumable to the same bits after any kill.

All randomness derives from (seed, epoch, step), and the state is saved at each epoch's end: a run that was killed
repeats the epoch it was in and reaches the same weights, on the same machine with the same number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from torch import Tensor

from veilkit.datasets.soft_labels import Views
from veilkit.errors import ConfigError
from veilkit.networks.reid import ReidNetwork, save_reid
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.training.loop import keep_memory, train_epochs
from veilkit.training.pixels import read_pixels
from veilkit.training.reid_config import ReidConfig
from veilkit.training.reid_run import ReidRun
from veilkit.training.retrieval import Holdout, evaluate_reid, hold_out
from veilkit.types import Split


@dataclass(frozen=True, slots=True)
class Validation:
    """What the held-out people said after `epoch` epochs; shares in [0, 1]."""

    epoch: int
    rank1: float
    mean_ap: float

    def __str__(self) -> str:
        return f"epoch {self.epoch}: validation Rank-1 {self.rank1:.1%}, mAP {self.mean_ap:.1%}"


@dataclass(frozen=True, slots=True)
class ReidTraining:
    """A finished run: the model file's SHA-256 and the validations on the way."""

    sha256: str
    validations: tuple[Validation, ...]


def train_reid(
    train: Split,
    config: ReidConfig,
    out: Path,
    *,
    work_dir: Path,
    init: Path | None = None,
    targets: Tensor | Views | None = None,
    validation: float = 0.0,
    validate_every: int = 5,
    half: bool = True,
    stream: TextIO | None = None,
) -> ReidTraining:
    """Train on the labelled people of `train` and write the embedding network to `out`.

    half: store the weights in 16 bits. All else is as in `train_network`.
    """
    network, validations = train_network(
        train, config, work_dir=work_dir, init=init, targets=targets, validation=validation,
        validate_every=validate_every, stream=stream,
    )  # fmt: skip
    return ReidTraining(save_reid(out, network, half=half), validations)


def train_network(
    train: Split,
    config: ReidConfig,
    *,
    work_dir: Path,
    init: Path | None = None,
    targets: Tensor | Views | None = None,
    validation: float = 0.0,
    validate_every: int = 5,
    stream: TextIO | None = None,
) -> tuple[ReidNetwork, tuple[Validation, ...]]:
    """Train on the labelled people of `train`; the network comes with its classifier, people in sorted order.

    work_dir: where the state is kept after each epoch; a run found there goes on, provided it is the same one.
    init: a backbone file (see models/convert_imagenet.py). targets: a teacher's logits (N, C) on the images, or its
    views of them, which are matched in place of the labels. validation: share of the people that is set aside to
    watch Rank-1 and mAP every `validate_every` epochs.
    """
    if targets is not None and validation:
        raise ConfigError("with soft targets no people can be set aside for validation: the teacher knows them all")
    keep_memory()
    watch = _Watch(hold_out(train, validation, Randomness.from_seed(config.seed)), config) if validation else None
    run = ReidRun(watch.people.train if watch else train, config, init, targets)
    state = Path(work_dir) / "state.safetensors"
    if state.exists():
        run.restore(state)
    validations: list[Validation] = []

    def after_epoch(progress: Progress) -> None:
        run.save(state)
        if watch and (run.epoch % validate_every == 0 or run.epoch == config.epochs):
            validations.append(watch.validate(run))
            progress.say(str(validations[-1]))

    train_epochs(run, config.epochs, after_epoch, note="loss {:.2f}".format, stream=stream)
    return run.finished(), tuple(validations)


class _Watch:
    """The held-out people and their pictures."""

    def __init__(self, people: Holdout, config: ReidConfig) -> None:
        self.people = people
        size = config.stored or config.size
        self._query, self._gallery = read_pixels(people.query, size), read_pixels(people.gallery, size)

    def validate(self, run: ReidRun) -> Validation:
        found = evaluate_reid(run.finished(), self.people.query, self.people.gallery, self._query, self._gallery)
        return Validation(run.epoch, found.rank(1), found.mean_ap)

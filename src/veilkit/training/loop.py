"""What training loops share: the learning rate's schedule, epochs with progress, and what makes a CPU quicker."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TextIO

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.errors import ConfigError
from veilkit.progress import Progress

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4


class Decay(StrEnum):
    """How the rate falls after the warm-up."""

    STEPS = "steps"
    COSINE = "cosine"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Factor on the base learning rate.

    A linear warm-up from a tenth over `warmup` epochs, then: steps multiplies by 0.1 at each of `milestones` (shares
    of all epochs; AGW: 40 and 70 of 120), cosine falls to zero at the end, exponential falls evenly (in logarithm) to
    a hundredth.
    """

    epochs: int
    warmup: float = 0.0
    decay: Decay = Decay.COSINE
    milestones: tuple[float, ...] = (40 / 120, 70 / 120)

    def __post_init__(self) -> None:
        if self.epochs < 1 or not 0 <= self.warmup <= self.epochs:
            raise ConfigError(f"expected 0 <= warmup <= epochs, but got {self.warmup} and {self.epochs}")

    def factor(self, epoch: float) -> float:
        """The factor at `epoch`, in [0, epochs], which may be a fraction."""
        if epoch < self.warmup:
            return 0.1 + 0.9 * epoch / self.warmup
        if self.decay is Decay.STEPS:
            return math.prod(0.1 for milestone in self.milestones if epoch >= milestone * self.epochs)
        share = (epoch - self.warmup) / max(self.epochs - self.warmup, 1e-9)
        if self.decay is Decay.EXPONENTIAL:
            return math.exp(share * math.log(0.01))
        return 0.5 * (1 + math.cos(math.pi * min(share, 1.0)))


class EpochRun(Protocol):
    """A training run between two epochs, `epoch` of which are done."""

    epoch: int

    def batches(self, epoch: int) -> list[NDArray[np.int64]]:
        """The batches of `epoch`, as positions in the split."""

    def step(self, step: int, positions: NDArray[np.int64], progress: float) -> Any:
        """One update on the batch `step` of the current epoch, `progress` (0 to 1) of which is done; its losses."""


def train_epochs(
    run: EpochRun,
    epochs: int,
    after_epoch: Callable[[Progress], None],
    *,
    note: Callable[[Any], str] = str,
    what: str = "training",
    stream: TextIO | None = None,
) -> None:
    """Train until `epochs` are done. after_epoch: saves the state, and what else is due. note: of a step's losses."""
    steps = len(run.batches(0))
    bar = Progress(epochs * steps, what, done=run.epoch * steps, stream=stream)
    with without_denormals(), bar as progress:
        while run.epoch < epochs:
            batches = run.batches(run.epoch)
            for step, positions in enumerate(batches):
                losses = run.step(step, positions, step / len(batches))
                progress.advance(1, f"epoch {run.epoch + 1}/{epochs}, {note(losses)}")
            run.epoch += 1
            after_epoch(progress)


def follow(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Step along the gradients at `rate`, times the `scale` of a group that has one."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("scale", 1.0)
    optimizer.step()


def keep_memory() -> bool:
    """Tell malloc to reuse large blocks instead of giving each back to the system; False where it cannot be told.

    Small networks train up to 1.7 times as fast under glibc.
    Each step of training allocates the same large blocks, and every fresh one costs page faults.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # absent from other C libraries
    if mallopt is None:
        return False
    settings = ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, 2**31 - 1), (_M_TOP_PAD, 256 << 20))
    return all(mallopt(option, value) == 1 for option, value in settings)


@contextmanager
def without_denormals() -> Iterator[None]:
    """Numbers below 1e-38 count as zero inside, in this thread and those it starts; as before afterwards.

    Weight decay drives unused channels, and Adam's memory of them, that low, where a CPU is several times slower.
    """
    before = 5e-324 * 1.0 == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)

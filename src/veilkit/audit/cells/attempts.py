"""What a recovery network makes of protected pictures, to be looked at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks import AttackTarget
from veilkit.attacks.learned.recovery import Recoverer, Recovery, RecoveryConfig
from veilkit.attacks.people_split import divide, pixels


@dataclass(frozen=True, slots=True, eq=False)
class Attempts:
    """Pictures of people who taught the network nothing: uint8 (N, 3, H, W) each, the same picture in each place."""

    original: Tensor
    protected: Tensor
    recovered: Tensor

    def rows(self) -> dict[str, Tensor]:
        """The three by their names."""
        return {"original": self.original, "protected": self.protected, "recovered": self.recovered}


def recover(
    target: AttackTarget, config: RecoveryConfig, only: NDArray[np.int64] | None = None
) -> tuple[AttackTarget, Tensor]:
    """Victims and what the trained network makes of them, (N, 3, H, W) in [0, 1]; of some of them with `only`.

    The training is found again in the target's work folder, where the attack left it.
    """
    division = divide(target, None, None)
    assert target.budget is not None
    learner = Recoverer(division, target.budget, config, None)
    learner.learn(target.work, Recovery.name)
    victims = division.victims if only is None else division.victims.only(only)
    assert victims.protected is not None
    return victims, learner.recover(victims.protected)


def attempts(target: AttackTarget, config: RecoveryConfig, count: int) -> Attempts:
    """Evenly chosen victims of the attack `recovery`: before, after, and recovered."""
    victims = divide(target, None, None).victims.originals
    assert victims is not None
    chosen = np.unique(np.linspace(0, len(victims) - 1, count).astype(np.int64))
    some, answers = recover(target, config, chosen)
    assert some.originals is not None
    assert some.protected is not None
    size = (answers.shape[2], answers.shape[3])
    return Attempts(pixels(some.originals, size), pixels(some.protected, size), (answers * 255).round().byte())

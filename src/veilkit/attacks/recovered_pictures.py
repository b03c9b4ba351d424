"""What an attack can show of its success: pictures before, after, and recovered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

from veilkit.attacks.base import AttackTarget


@dataclass(frozen=True, slots=True, eq=False)
class RecoveredPictures:
    """Pictures of people who taught the attacker nothing: uint8 (N, 3, H, W), the same picture in each place."""

    original: Tensor
    protected: Tensor
    recovered: Tensor

    def rows(self) -> dict[str, Tensor]:
        """The three by their names."""
        return {"original": self.original, "protected": self.protected, "recovered": self.recovered}


@runtime_checkable
class ShowsRecovered(Protocol):
    """An attack that recovers pictures which a reader may look at."""

    def recovered_pictures(self, target: AttackTarget, count: int) -> RecoveredPictures:
        """At most `count` victims, evenly chosen. What was learned on this target before is not learned again."""

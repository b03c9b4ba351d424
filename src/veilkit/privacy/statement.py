"""What a ledger tells: one release, and what somebody has lost so far."""

from __future__ import annotations

from dataclasses import dataclass

from veilkit.privacy.cost import Budget, Cost


@dataclass(frozen=True, slots=True)
class Entry:
    """One release: of which record, charged to whom, when (UTC, ISO 8601), by which mechanism, at what cost."""

    record: str
    charged: str
    at: str
    mechanism: str
    cost: Cost


@dataclass(frozen=True, slots=True)
class Spent:
    """What one record or person has lost over all releases: `epsilon` at the budget's delta."""

    key: str
    epsilon: float
    budget: Budget
    releases: int

    @property
    def left(self) -> float:
        """The budget's epsilon less what is spent. Costs compose to less than their sum, so a little more may fit."""
        return max(self.budget.epsilon - self.epsilon, 0.0)

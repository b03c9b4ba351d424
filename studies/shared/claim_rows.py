"""What the studies' rows of claims have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from studies.shared.tables import with_interval


def named_cells(cells: Mapping[str, Any], kind: str, names: Iterable[str]) -> dict[str, Any]:
    """The cells `kind/NAME` that are there, by their names, in this order."""
    return {name: cells[f"{kind}/{name}"] for name in names if f"{kind}/{name}" in cells}


def invalid_reasons(attacks: Mapping[str, Any]) -> list[str]:
    """Which of these attacks failed their gates, and why; None stands for one that was not made yet."""
    reasons = {name: [*cell["invalid"], cell["reason"]] for name, cell in attacks.items() if cell}
    return [f"{name} is INVALID: {'; '.join(filter(None, why))}" for name, why in reasons.items() if any(why)]


def percents(value: Sequence[float], digits: int = 1) -> str:
    """[share, low, high] in %."""
    return with_interval([100 * part for part in value], digits)


def claim_row(name: str, claim: str, figure: float, bar: str, unit: str, digits: int, note: str) -> dict[str, Any]:
    """A row of claims; the figure is rounded to so many digits."""
    return {"id": name, "claim": claim, "figure": round(figure, digits) + 0.0, "bar": bar, "unit": unit, "note": note}

"""Tables of a study as Markdown, and rows of claims, from its cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from studies.shared.measures import SETTINGS

Row = Mapping[str, Any]


def matching_table(releases: Mapping[str, Row], by: str, names: Mapping[str, str]) -> str:
    """Rank-1 and mAP of each release in four settings. by: the part of the cells that holds them."""
    head = ("release", *(f"{setting.replace('-', ' to ')}: Rank-1 / mAP" for setting in reversed(SETTINGS)))
    rows = [
        (names[name], *(pair(cell[by]["settings"][setting]) for setting in reversed(SETTINGS)))
        for name, cell in releases.items()
    ]
    return markdown(head, rows)


def mean_image(recovered: Mapping[str, Row]) -> str:
    """The baseline of recovery, in words."""
    found: Mapping[str, float] = next((cell["mean image"] for cell in recovered.values() if cell["mean image"]), {})
    return ", ".join(f"{metric} {value:.3g}" for metric, value in found.items()) or "nothing that was measured"


def attacks_table(attacks: Mapping[str, Row]) -> str:
    """Every score of the stronger attackers."""
    rows: list[Sequence[str]] = []
    for name, cell in attacks.items():
        if not cell["applicable"]:
            rows.append((f"`{name}` ({cell['level']})", "not measured", "", "", "", cell["reason"]))
        for place, (metric, value) in enumerate(cell["scores"].items()):
            chance, baseline = (cell[beside].get(metric) for beside in ("chance", "mean image"))
            rows.append(
                (
                    f"`{name}` ({cell['level']})" if place == 0 else "",
                    metric,
                    with_interval(value, 3),
                    "" if chance is None else f"{chance:.3f}",
                    "" if baseline is None else f"{baseline:.3f}",
                    remark(cell) if place == 0 else "",
                )
            )
    return markdown(("attack", "score", "found", "chance", "mean image", "remark"), rows)


def differences(found: Mapping[str, Sequence[float | None]], metric: str) -> str:
    """Paired differences, by the names of the pairs."""
    rows = [(name, with_interval(value, 4)) for name, value in found.items()]
    return markdown(("pair", f"difference of {metric}"), rows)


def remark(cell: Row) -> str:
    """Why an attack's figures prove nothing, or were not measured; or nothing."""
    return "; ".join(f"INVALID: {why}" for why in cell["invalid"]) or cell["reason"]


def pair(scores: Row) -> str:
    """Rank-1 and mAP in %."""
    return f"{percent(scores['rank-1'])} / {percent(scores['mAP'])}"


def percent(value: Sequence[float | None] | None) -> str:
    """[share, low, high] in %; nothing where there is none."""
    return "" if value is None else with_interval([None if part is None else 100 * part for part in value], 1)


def with_interval(value: Sequence[float | None] | None, digits: int) -> str:
    """[value, low, high] in words."""
    if value is None or value[0] is None:
        return "not measured"
    middle, low, high = value
    return f"{middle:.{digits}f}" + ("" if low is None or high is None else f" [{low:.{digits}f}, {high:.{digits}f}]")


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


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

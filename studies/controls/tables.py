"""The tables of controls as Markdown, from the study's cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from studies.controls.plan import METRICS, ControlsConfig
from veilkit.audit.result import SETTINGS

Value = Sequence[float | None] | None


def page_tables(found: Mapping[str, Any], config: ControlsConfig) -> str:
    """A row for the originals, and one for each control. found: cells by control."""
    if not found:
        return "Not measured yet."
    first = next(iter(found.values()))
    chance = " / ".join(f"{100 * first['chance'][metric]:.2f}" for metric in METRICS)
    lines = [
        f"CUHK03-NP (detected, 128x64), whole test part: {first['queries']:,} queries, {first['gallery']:,} in the "
        f"gallery, {first['people']:,} people. Rank-1 / mAP in %, with 95 % intervals (bootstrap of people). "
        f"Chance: {chance}. Controls at their default settings, seed {config.seed}.",
        "",
    ]
    for by, title in (
        ("expert", "Authorised expert ({}): utility, high is good"),
        ("judge", "Independent judge ({}): privacy, low is good"),
    ):
        lines += [f"**{title.format(first['recognisers'][by])}**", ""]
        lines += ["| control | raw in protected | protected in raw | protected in protected |", "|---|---|---|---|"]
        lines.append(f"| none (originals) | | | {_rates(first['settings'][by]['raw-raw'])} |")
        for method, cell in found.items():
            rates = " | ".join(_rates(cell["settings"][by][setting]) for setting in SETTINGS[1:])
            lines.append(f"| {method} | {rates} |")
        lines.append("")
    lines += ["**Pictures**", "", "| control | SSIM to the original | chaos (AD) |", "|---|---|---|"]
    lines.append(f"| none (originals) | 1 | {_plain(first['AD of originals'], 0)} |")
    lines += [f"| {method} | {_plain(cell['SSIM'], 3)} | {_plain(cell['AD'], 0)} |" for method, cell in found.items()]
    invalid = [
        f"{method}: {attack} ({'; '.join(why)})"
        for method, cell in found.items()
        for attack, why in cell["invalid"].items()
    ]
    lines += ["", f"Invalid attacks: {', '.join(invalid) or 'none'}."]
    return "\n".join(lines)


def _rates(scores: Mapping[str, Value]) -> str:
    return " / ".join(_percent(scores[metric]) for metric in METRICS)


def _percent(value: Value) -> str:
    return "not measured" if value is None else _plain([None if v is None else 100 * v for v in value], 1)


def _plain(value: Value, digits: int) -> str:
    if value is None:
        return "not defined"
    middle, low, high = value
    return f"{middle:.{digits}f}" + ("" if low is None or high is None else f" ({low:.{digits}f}–{high:.{digits}f})")

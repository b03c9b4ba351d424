"""The rows of claims of PrivacyReID's study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.privacyreid.plan import BASE, KIND, WITH, PrivacyReidStudyConfig
from studies.privacyreid.tables import attack_cells, cells_by_stage
from studies.shared.tables import claim_row, invalid_reasons, percents, with_interval

SETTING = "protected-protected"


def rows(cells: Mapping[str, Any], config: PrivacyReidStudyConfig) -> list[dict[str, Any]]:
    """The rows of claims that these cells allow; what rests on an invalid attack is not claimed."""
    found: list[dict[str, Any]] = []
    releases, recovered = (cells_by_stage(cells, kind) for kind in ("release", "recovered"))
    if back := recovered.get(WITH):
        found += [
            _row(f"recovered-{metric.lower()}",
                 f"{metric} of pictures recovered from PNG files by the learned decoder",
                 back["pictures"][metric][0], bar, unit, digits,
                 "; ".join(f"{stage} upgradation {with_interval(cell['pictures'][metric], digits)}"
                           for stage, cell in recovered.items()))
            for metric, bar, unit, digits in (("PSNR", ">= 23", "dB", 2), ("SSIM", ">= 0.85", "SSIM", 3))
        ]  # fmt: skip
    if {BASE, WITH} <= set(releases):
        found += [
            _row(f"anonymised-{metric.lower()}",
                 f"{metric} to the originals, anonymised minus desensitised pictures",
                 releases[WITH]["pictures"][metric][0] - releases[BASE]["pictures"][metric][0], bar, unit, digits,
                 "; ".join(f"{stage} {with_interval(cell['pictures'][metric], digits)}"
                           for stage, cell in releases.items()))
            for metric, bar, unit, digits in (("PSNR", "<= 1.0", "dB", 2), ("SSIM", "<= 0.05", "SSIM", 3))
        ]  # fmt: skip
    if order := cells.get(f"order/{KIND}"):
        bounds = {pair: change[SETTING]["rank-1"] for pair, change in order.items()}
        values = [f"{pair} {percents(value)}" for pair, value in bounds.items()]
        values += [
            f"{stage} {percents(cell['own']['settings'][SETTING]['rank-1'])} %" for stage, cell in releases.items()
        ]
        found.append(
            _row("order", "Rank-1, protected in protected, with > without upgradation > base: least lower bound",
                 100 * min(low for _, low, _ in bounds.values()), "> 0", "points", 1, "; ".join(values))
        )  # fmt: skip
    stock = cells.get(f"attack/{KIND}/{WITH}/stock_recogniser")
    if stock and not invalid_reasons({"stock": stock}) and WITH in releases:
        raw, shown = releases[WITH]["judge"]["settings"]["raw-raw"]["rank-1"], stock["scores"]["rank-1"]
        found.append(
            _row("stock", "A stranger's Rank-1 on protected pictures, as a share of that on raw ones",
                 shown[0] / max(raw[0], 1e-9), "<= 0.25", "of raw", 3,
                 f"raw {percents(raw)} %, protected {percents(shown)} %, "
                 f"chance {100 * stock['chance']['rank-1']:.1f} %")
        )  # fmt: skip
    attacks = attack_cells(cells, WITH, config)
    if len(attacks) == len(config.attacks):
        values = [f"{name} {percents(next(iter(cell['scores'].values())))} %" for name, cell in attacks.items()]
        found.append(
            _row("informed", "Attacks on the release with upgradation without a valid figure and its interval",
                 len(invalid_reasons(attacks)), "== 0", f"of {len(attacks)} attacks", 0,
                 f"Rank-1, of the person or of the very original: {'; '.join(values)}")
        )  # fmt: skip
    return found


def withheld(cells: Mapping[str, Any]) -> list[str]:
    """Why rows are missing although their cells are there: attacks that failed their gates prove nothing."""
    name = f"attack/{KIND}/{WITH}/stock_recogniser"
    return invalid_reasons({name: cells.get(name)})


def _row(name: str, claim: str, figure: float, bar: str, unit: str, digits: int, note: str) -> dict[str, Any]:
    return claim_row(f"privacyreid-{name}", f"PrivacyReID: {claim}", figure, bar, unit, digits, note)

"""The rows of claims of PixelFade's study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.claims import reaches
from studies.pixelfade.plan import AVIH, FLOOR, ORDER, OURS, PixelFadeStudyConfig, people
from studies.pixelfade.tables import cells_of
from studies.shared.tables import invalid_reasons, named_cells

LOST = {
    "pixelfade-pp": ("protected-protected", "protected queries in a protected gallery", 6),
    "pixelfade-op": ("raw-protected", "original queries in a protected gallery", 4),
}
OTHERS = ("paper", "released")


def rows(cells: Mapping[str, Any], config: PixelFadeStudyConfig) -> list[dict[str, Any]]:
    """The rows of claims that these cells allow.

    What rests on an invalid attack is not claimed; what falls short all the same is values, with the reason.
    """
    found: list[dict[str, Any]] = []
    if ours := cells.get(f"release/{OURS}"):
        found += _losses(ours)
    for name, cell in cells_of(cells, "backbone", config).items():
        found += [{**row, "scale": people(config)} for row in _losses(cell, name)]
    if (row := _ordered(cells)) and (not _unproved(cells) or not reaches(row["figure"], row["bar"])):
        found.append(row)
    if (row := _outline(cells)) and (not _unmarked(cells) or not reaches(row["figure"], row["bar"])):
        found.append(row)
    found += [row for row in (_outline_by_energy(cells), _preset_recovery(cells)) if row]
    return found


def _ordered(cells: Mapping[str, Any]) -> dict[str, Any] | None:
    """The row of the paper's order of recovery, where all of it was measured."""
    order = cells.get("order")
    if not order or not all(cells.get(f"recovery/{name}") for name in ORDER):
        return None
    values = [
        _recovery(name, cells[f"recovery/{name}"])
        for name in dict.fromkeys((*ORDER, AVIH, *OTHERS))
        if f"recovery/{name}" in cells
    ]
    values.append(f"mean image {cells[f'recovery/{OURS}']['mean image']['SSIM']:.3f}")
    values += [f"{pair} {_interval(value, 1, 4)}" for pair, value in order.items()]
    against = [pair for pair, (_, _, high) in order.items() if high < 0]
    values += [f"against the order: {pair}, see docs/methods/avih.md" for pair in against]
    return {
        "id": "pixelfade-recovery-order",
        "claim": "Recovery SSIM, PixelFade < AVIH as released < mosaic < blur: least lower bound of differences",
        "figure": round(min(low for _, low, _ in order.values()), 4),
        "bar": "> 0",
        "unit": "SSIM",
        "note": "; ".join([*values, *_unproved(cells)]),
    }


def _unproved(cells: Mapping[str, Any]) -> list[str]:
    return invalid_reasons({f"recovery/{name}": cells.get(f"recovery/{name}") for name in ORDER})


def withheld(cells: Mapping[str, Any]) -> list[str]:
    """Attacks that failed their gates: a row that rests on one is missing, unless it falls short all the same."""
    names = [f"recovery/{name}" for name in ORDER] + [f"outline/{name}" for name in (OURS, *OTHERS)]
    return invalid_reasons({name: cells.get(name) for name in names})


def _losses(ours: Mapping[str, Any], other: str = "") -> list[dict[str, Any]]:
    """other: the name of an expert other than the study's."""
    expert, held = ours["expert"], ours["ledger"]["held"]
    suffix, under = (f"-{other}", f" under {other}") if other else ("", "")
    found: list[dict[str, Any]] = []
    for claim, (setting, words, bar) in LOST.items():
        lost = [-100 * part for part in expert["change"][setting]["rank-1"]]
        ranks = [expert["settings"][each]["rank-1"] for each in ("raw-raw", setting)]
        found.append(
            {
                "id": f"{claim}{suffix}",
                "claim": f"Rank-1 that PixelFade (ours) loses{under}, {words}, on files read back",
                "figure": round(lost[0], 1) + 0.0, "bar": f"<= {bar}", "unit": "points",
                "note": f"paired interval [{lost[2]:.1f}, {lost[1]:.1f}]; Rank-1 {_interval(ranks[0], 100, 1)} % "
                f"unprotected, {_interval(ranks[1], 100, 1)} % protected",
            }
        )  # fmt: skip
    found.append(
        {
            "id": f"pixelfade-held{suffix}",
            "claim": f"Test pictures whose 8-bit file keeps PixelFade's constraint (ours){under}",
            "figure": round(100 * held[0], 2), "bar": ">= 99", "unit": "%",
            "note": f"{ours['ledger']['pictures']} pictures, {_interval(held, 100, 2)}; "
            f"{ours['ledger']['steps']:.0f} steps on average",
        }
    )  # fmt: skip
    return found


def _outline(cells: Mapping[str, Any]) -> dict[str, Any] | None:
    """The row of where people stand by a network that learned it, where all of it was measured."""
    row = _apart(cells, "outlines", "AUC beyond place")
    if row is None:
        return None
    at_floor = cells["outlines"][f"{OURS} - {FLOOR}"][1] <= 0
    word = "nobody's outline is told from ours any better than from noise alone" if at_floor else ""
    return {
        **row,
        "id": "pixelfade-outline",
        "claim": "Outline by a network, beyond place: AUC of person against background, ours minus the less of paper "
        "and released, upper bound",
        "note": "; ".join(filter(None, [word, row["note"], *_unmarked(cells)])),
    }


def _outline_by_energy(cells: Mapping[str, Any]) -> dict[str, Any] | None:
    """The row of where people stand by local energy, which nobody has to learn, where all of it was measured."""
    row = _apart(cells, "energies", "AUC, energy")
    return row and {
        **row,
        "id": "pixelfade-outline-energy",
        "claim": "Outline by local energy: AUC of person against background, ours minus the less of paper and "
        "released, upper bound",
    }


def _preset_recovery(cells: Mapping[str, Any]) -> dict[str, Any] | None:
    """The row that the quicker preset pays for its speed with nothing, where recovery of both was measured."""
    names = (OURS, "released")
    recovered, releases = (named_cells(cells, kind, names) for kind in ("recovery", "release"))
    found = cells.get("preset recovery", {}).get(f"{OURS} - released")
    if found is None or len(recovered) < len(names) or len(releases) < len(names):
        return None
    values = [_recovery(name, cell) for name, cell in recovered.items()]
    reasons = invalid_reasons({f"recovery/{name}": cell for name, cell in recovered.items()})
    return {
        "id": "pixelfade-preset-recovery",
        "claim": "Recovery SSIM of PixelFade (ours) minus that of its preset released",
        "figure": round(found[0], 4), "bar": "<= 0", "unit": "SSIM",
        "note": "; ".join(
            [f"paired interval [{found[1]:.4f}, {found[2]:.4f}]", *values, *_ranks(releases), *reasons]
        ),
    }  # fmt: skip


def _ranks(releases: Mapping[str, Any]) -> list[str]:
    return [
        f"Rank-1 of {name}, protected to protected, "
        f"{_interval(cell['expert']['settings']['protected-protected']['rank-1'], 100, 1)} %"
        for name, cell in releases.items()
    ]


def _apart(cells: Mapping[str, Any], differences: str, metric: str) -> dict[str, Any] | None:
    outlines = {name: cells.get(f"outline/{name}") for name in (OURS, *OTHERS, FLOOR)}
    apart = cells.get(differences)
    if not apart or not all(outlines.values()):
        return None
    measured = {name: cell for name, cell in outlines.items() if cell}
    least = min(OTHERS, key=lambda name: measured[name]["scores"][metric][0])
    values = [f"{name} {_interval(cell['scores'][metric], 1, 3)}" for name, cell in measured.items()]
    values += _ranks(named_cells(cells, "release", (OURS, *OTHERS)))
    values += [f"{pair} {_interval(value, 1, 4)}" for pair, value in apart.items()]
    return {
        "figure": round(apart[f"{OURS} - {least}"][2], 4),
        "bar": "< 0",
        "unit": "AUC",
        "note": "; ".join(values),
    }


def _unmarked(cells: Mapping[str, Any]) -> list[str]:
    return invalid_reasons({f"outline/{name}": cells.get(f"outline/{name}") for name in (OURS, *OTHERS)})


def _recovery(name: str, cell: Mapping[str, Any]) -> str:
    return f"{name} {_interval(cell['scores']['SSIM'], 1, 3)}"


def _interval(value: list[float], times: float, digits: int) -> str:
    middle, low, high = (f"{times * part:.{digits}f}" for part in value)
    return f"{middle} [{low}, {high}]"

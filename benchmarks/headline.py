"""The README's tables: what releases keep and what they give away.

They come from the rows of all methods (benchmarks/headline_study.py) once every method that needs no model has been
measured there; until then from the cells of PixelFade's study.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import study_cells
from studies.comparison.plan import ENTRIES, FACES, PEOPLE, AllStudyConfig
from studies.comparison.rows import missing_row
from studies.comparison.tables import about, table
from studies.pixelfade.plan import OURS, PixelFadeStudyConfig
from studies.pixelfade.tables import markdown, with_interval
from veilkit.methods import METHODS as ALL

NAME, CONFIG = "headline", AllStudyConfig(updates=400, faces=200)
DATA = {PEOPLE: "CUHK03-NP", FACES: "LFW"}
METHODS = {
    OURS: "`pixelfade`", "paper": "`pixelfade --preset paper`", "released": "`pixelfade --preset released`",
    "avih": "`avih`", "avih-released": "`avih --preset released`",
    "pixelate": "`pixelate`", "blur": "`blur`", "noise": "`noise`",
}  # fmt: skip
HEAD = (
    "method", "kept: both sides protected", "kept: gallery protected", "leak L0: stranger",
    "leak L1: recovered, SSIM", "leak L1: recovered, recognised",
)  # fmt: skip


def readme(pixelfade: Mapping[str, Any], config: PixelFadeStudyConfig, rows: Mapping[str, Any]) -> str:
    """What stands in README. rows: of all methods, by name, as far as they are published."""
    if not complete(rows):
        return headline(pixelfade, config)
    kinds = [kind for kind in (PEOPLE, FACES) if any("levels" in row for row in _of(rows, kind).values())]
    rows = {name: rows.get(name) or missing_row(entry.label, "not measured yet") for name, entry in ENTRIES.items()}
    return "\n\n".join(f"{DATA[kind]}: {about(rows, kind, CONFIG)}\n\n{table(rows, kind)}" for kind in kinds)


def published_rows() -> dict[str, Any]:
    """The rows of all methods that are kept with the results, by name."""
    found = study_cells.published(NAME)
    return {
        name: found[f"{ENTRIES[name].table}/{name}"] for name in ENTRIES if f"{ENTRIES[name].table}/{name}" in found
    }


def complete(rows: Mapping[str, Any]) -> bool:
    """Whether all methods for people that need no model were measured."""
    needed = [name for name, entry in ENTRIES.items() if entry.table == PEOPLE and not ALL[entry.method].learns]
    return all("levels" in rows.get(name, ()) for name in needed)


def _of(rows: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {name: row for name, row in rows.items() if ENTRIES[name].table == kind}


def headline(cells: Mapping[str, Any], config: PixelFadeStudyConfig) -> str:
    """Rows of all releases that were made, in the study's order, below what the originals themselves give."""
    made = [name for name in config.releases if f"release/{name}" in cells]
    if not made:
        return "Nothing yet on pictures of real people."
    raw = {by: cells[f"release/{made[0]}"][by]["settings"]["raw-raw"]["rank-1"] for by in ("expert", "judge")}
    rows = [("none (originals)", _percent(raw["expert"]), _percent(raw["expert"]), _percent(raw["judge"]), "1", "")]
    for name in made:
        release, recovery = cells[f"release/{name}"], cells.get(f"recovery/{name}")
        expert, judge = (release[by]["settings"] for by in ("expert", "judge"))
        rows.append(
            (
                METHODS[name],
                *(_percent(expert[setting]["rank-1"]) for setting in ("protected-protected", "raw-protected")),
                _percent(judge["protected-raw"]["rank-1"]),
                *_recovered(recovery),
            )
        )
    return f"{_about(cells, config)}\n\n{markdown(HEAD, rows)}"


def _about(cells: Mapping[str, Any], config: PixelFadeStudyConfig) -> str:
    ours = cells.get(f"recovery/{OURS}")
    baseline = f" Their mean image has SSIM {ours['mean image']['SSIM']:.3f}." if ours else ""
    return (
        f"CUHK03-NP, {config.people} test people, {config.queries} query and {config.gallery} gallery pictures each, "
        f"PNG files read back, seed {config.seed}; 95 % intervals over people. Kept: Rank-1 in % by the authorised "
        "expert. L0: Rank-1 by a stranger's recogniser, who searches the originals for a protected picture. L1: a "
        f"U-Net that learned on {config.public_people} training people and their protection ({config.updates} "
        "updates) undoes it; how like the original that is, and how often the stranger's recogniser finds the very "
        f"original by it.{baseline}"
    )


def _recovered(cell: Mapping[str, Any] | None) -> tuple[str, str]:
    if cell is None:
        return "not measured", "not measured"
    if cell["invalid"] or cell["reason"]:
        return "INVALID", "INVALID"
    return with_interval(cell["scores"]["SSIM"], 3), _percent(cell["scores"]["rank-1"])


def _percent(value: Sequence[float]) -> str:
    return with_interval([100 * part for part in value], 1)

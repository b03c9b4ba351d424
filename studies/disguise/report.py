"""What Disguise's study found: every cell in order, the tables as Markdown, the figures as SVG."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from studies.disguise.plan import CONTROLS, ORIGINAL, STRANGER
from studies.disguise.study import DisguiseStudy
from studies.disguise.tables import (
    farthest_table,
    guarantee_table,
    inverted_table,
    landmarks_table,
    name_of,
    order_table,
    parts_table,
    recognised_table,
    utility_order_table,
    utility_table,
)
from studies.disguise.verification import EDGES
from studies.shared.figures import plot, sheet
from studies.shared.tables import attacks_table
from veilkit.media.writing import write_atomically

_CELL = (112, 112)
_ROC_TICKS = (1e-4, 1e-3, 1e-2, 1e-1)
_DISTANCE_TICKS = (0.0, 0.5, 1.0, 1.5, 2.0)


def run_study(study: DisguiseStudy) -> Path:
    """Compute every cell and write report.md with its figures; returns the report's file."""
    config = study.config
    about = study.pictures()
    rows = (ORIGINAL, STRANGER, *config.plain)
    utility = {release: study.utility(release) for release in rows}
    parts = ["# Disguise in small", _about(study, about)]
    for judge in study.judges:
        parts += _recognised(study, judge, utility)
    parts += [
        "## Tables 2 and 7: what is kept",
        "A judge's answer on the original is the truth. Where it sees no face in the protected picture, its mean "
        "answer stands in. Quality is how sure a detector is that there is a face; it is not SER-FIQ.",
        utility_table(utility),
        parts_table(utility),
        "Paired differences on the same pictures:",
        utility_order_table(study.utility_order()),
    ]
    taught = {release: study.landmarks(release) for release in config.trained}
    parts += [
        "## Table 3: landmark networks trained on protected faces alone",
        f"The truth, in training and test, are the landmarks of {config.truth} on the originals.",
        landmarks_table(taught),
        "## What attackers get",
        attacks_table({name: study.attack(config.main, name) for name in config.attacks}),
        "And of blurred faces:",
        attacks_table({name: study.attack("blur", name) for name in config.compared}),
        "## What is guaranteed",
        guarantee_table(study.guarantee()),
        "## Settings",
        "```json\n" + json.dumps(asdict(config), indent=2) + "\n```",
    ]
    if not (file := study.folder / "sheets" / "faces.png").exists():
        sheet(file, {name_of(name): row for name, row in study.shown().items()}, cell=_CELL)
    report = study.folder / "report.md"
    write_atomically(report, ("\n\n".join(part for part in parts if part) + "\n").encode(), study.folder)
    return report


def _about(study: DisguiseStudy, found: Mapping[str, Any]) -> str:
    config = study.config
    fitted = [kind for kind, together in found["trained together"].items() if not together]
    told = "; ".join(f"{count} {outcome}" for outcome, count in found["outcomes"].items())
    return (
        f"{found['pictures']} pictures of {found['people']} test people (folds {', '.join(map(str, config.folds))}); "
        f"{found['public pictures']} of {found['public people']} others teach attackers and landmark networks; in "
        f"{found['without a face']} more {config.finder} finds no face. Faces of the main release: {told}. "
        + (f"{', '.join(fitted)}: fitted to the main model's swapper, not trained with it. " if fitted else "")
        + "All figures are of PNG files read back; recognisers see crops cut where the original's face is. Intervals "
        f"are 95 %, over people; seed {config.seed}. `cells/` holds each figure; `sheets/` shows people."
    )


def _recognised(study: DisguiseStudy, judge: str, utility: Mapping[str, Mapping[str, Any]]) -> list[str]:
    config = study.config
    rows = (ORIGINAL, STRANGER, *config.plain)
    plain = {release: study.verified(release, judge) for release in rows}
    noisy = {release: study.verified(release, judge) for release in config.noisy}
    inverted = {release: study.inverted(release, judge) for release in config.inverted}
    order = study.order(judge)
    kinds = ("opp", "mlp", "ved") if study.elsewhere is not None else ()
    elsewhere = {kind: study.inverted_elsewhere(kind, judge) for kind in kinds}
    first = plain[ORIGINAL]
    _draw(study, judge, plain)
    return [
        f"## Tables 1 and 6: recognised by {judge}",
        f"All pairs of a protected and another raw picture: {first['genuine']} of one person ({first['people']} "
        f"people), {first['impostors']} of two.",
        recognised_table(plain, utility),
        f"[ROC]({_roc(judge)}); [distances]({_distances(judge)}).",
        "### Farthest match",
        farthest_table(plain),
        "### Tables 4, 5, 8 and 9: inverted",
        "The attacker is a network from the judge's embedding of a protected face to that of the original, learned "
        "on the public people.",
        inverted_table({**plain, **noisy}, inverted),
        order_table(order),
        *(["Learned on another set of faces (Figure 5e):", inverted_table(plain, elsewhere)] if elsewhere else []),
    ]


def _draw(study: DisguiseStudy, judge: str, found: Mapping[str, Mapping[str, Any]]) -> None:
    curves = {name_of(name): [(rate, value, "") for rate, value in cell["ROC"]] for name, cell in found.items()}
    plot(
        study.folder / _roc(judge), f"ROC by {judge} (paper: Figure 7)", curves, across="FPR", up="TPR",
        logarithmic=True, ticks=_ROC_TICKS, dots=False,
    )  # fmt: skip
    middles = ((EDGES[:-1] + EDGES[1:]) / 2).tolist()
    shares = dict(list(found[ORIGINAL]["distances"].items())[:2])
    for name in (*CONTROLS[:1], "opp", "mlp", "ved"):
        shares[f"original and {name_of(name)}"] = found[name]["distances"]["original and protected"]
    series = {name: [(x, y, "") for x, y in zip(middles, each, strict=True)] for name, each in shares.items()}
    plot(
        study.folder / _distances(judge), f"Distances by {judge} (paper: Figure 7)", series,
        across="Euclidean distance of unit vectors", up="share of pairs", ticks=_DISTANCE_TICKS, dots=False,
    )  # fmt: skip


def _roc(judge: str) -> str:
    return f"roc-{judge}.svg"


def _distances(judge: str) -> str:
    return f"distances-{judge}.svg"

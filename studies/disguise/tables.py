"""The tables and figures of Disguise's study, from its cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studies.disguise.plan import ALONE, CONTROLS, JUDGE, ORIGINAL, RATES, STRANGER, DisguiseStudyConfig, rows_of
from studies.disguise.utility import KINDS
from studies.disguise.verification import EDGES
from studies.shared.figures import plot
from studies.shared.study import Cells
from studies.shared.tables import Row, attacks_table, markdown, percent, remark, with_interval

NAMES = {
    ORIGINAL: "original", STRANGER: "somebody else's picture", "blur": "face blur", "pixelate": "pixelation",
    "replace": "random replacement", "opp": "Disguise, opp", "mlp": "Disguise, mlp", "ved": "Disguise, ved",
    ALONE: "noise alone",
}  # fmt: skip
_UNITS = {"landmarks": "% of the eyes' distance", "gaze": "degrees", "expression": "% agree"}


def name_of(release: str) -> str:
    """A release such as `ved@8` in words."""
    kind, _, scale = release.partition("@")
    return f"{NAMES[kind]}, noise {scale}" if scale else NAMES[kind]


def recognised_table(found: Mapping[str, Row], utility: Mapping[str, Row] | None = None) -> str:
    """Tables 1 and 6: TPR and accuracy by one judge, and a detector's sureness for quality."""
    head = ["pictures"]
    head += [f"TPR at FPR {rate:g}, %" for rate in RATES]
    head += [f"at the judge's own threshold ({rate:g})" for rate in RATES]
    head += ["accuracy, %", "its own original, %", "quality"]
    rows = []
    for release, cell in found.items():
        quality = (utility or {}).get(release, {}).get("quality", {})
        rows.append(
            (
                name_of(release),
                *(_rate(cell["TPR"][f"{rate:g}"]) for rate in RATES),
                *(_rate(cell["TPR, own threshold"][f"{rate:g}"]) for rate in RATES),
                "" if cell["accuracy"] is None else percent(cell["accuracy"]),
                _rate(cell["own"][f"{RATES[-1]:g}"]),
                with_interval(quality["mean"], 2) if "mean" in quality else "",
            )
        )
    return markdown(head, rows)


def farthest_table(found: Mapping[str, Row]) -> str:
    """Pairs of one person that are less alike than strangers are: what was pushed away is told by that."""
    head = ("pictures", *(f"farther than all but {rate:g} of strangers, %" for rate in RATES))
    rows = [
        (name_of(name), *(_rate(cell["farthest"][f"{rate:g}"]) for rate in RATES)) for name, cell in found.items()
    ]
    return markdown(head, rows)


def inverted_table(swapped: Mapping[str, Row], inverted: Mapping[str, Row]) -> str:
    """Tables 4, 5, 8 and 9: TPR of swapped faces as they are, and of their inverted embeddings."""
    head = ["pictures", *(f"swapped: TPR at {rate:g}, %" for rate in RATES)]
    head += [*(f"inverted: TPR at {rate:g}, %" for rate in RATES), "very original, %", "remark"]
    rows = []
    for release, cell in inverted.items():
        scores = cell["scores"]
        seen = swapped.get(release)
        rows.append(
            (
                name_of(release),
                *(_rate(seen["TPR"][f"{rate:g}"]) if seen else "" for rate in RATES),
                *(_rate(scores.get(f"TPR at FPR {rate:g}")) for rate in RATES),
                _rate(scores.get("rank-1")),
                remark(cell),
            )
        )
    return markdown(head, rows)


def order_table(order: Row) -> str:
    """Paired differences of inverted TPR, in points."""
    rows = [(name, *(_rate(found[f"{rate:g}"]) for rate in RATES)) for name, found in order.items()]
    return markdown(("difference of inverted TPR", *(f"at {rate:g}, points" for rate in RATES)), rows)


def utility_table(found: Mapping[str, Row]) -> str:
    """Tables 2 and 7: what judges see in a protected face against what they see in the original."""
    first = next(iter(found.values()))
    head = ["pictures"]
    for kind in KINDS:
        judge = first[kind].get("judge", "")
        head += [f"{kind}, {_UNITS[kind]} ({judge})", "face seen, %"]
    rows = []
    for release, cell in found.items():
        row = [name_of(release)]
        for kind in KINDS:
            row += _kept(cell[kind], kind)
        rows.append(row)
    return markdown(head, rows)


def parts_table(found: Mapping[str, Row]) -> str:
    """Landmarks by part of the face; nothing where they were not measured."""
    cells = {name: cell["landmarks"] for name, cell in found.items() if cell["landmarks"].get("parts")}
    if not cells:
        return ""
    parts = list(next(iter(cells.values()))["parts"])
    rows = [
        (name_of(name), with_interval(cell["mean"], 2), *(with_interval(cell["parts"][part], 2) for part in parts))
        for name, cell in cells.items()
    ]
    return markdown(("landmarks, % of the eyes' distance", "all", *parts), rows)


def utility_order_table(order: Row) -> str:
    """Paired differences on the same pictures; of errors, below 0 is better; of agreement, above."""
    pairs = sorted({pair for found in order.values() for pair in found})
    rows = [
        (pair, *(_difference(order[kind].get(pair), kind) for kind in KINDS)) for pair in pairs
    ]  # fmt: skip
    return markdown(("difference", *(f"{kind}, {_UNITS[kind]}" for kind in KINDS)), rows)


def landmarks_table(found: Mapping[str, Row]) -> str:
    """Table 3: networks that were trained on one kind of pictures alone, on originals of people none of them saw."""
    rows = []
    for release, cell in found.items():
        if "mean" not in cell:
            rows.append((name_of(release), "not measured", "", cell.get("why", "")))
            continue
        grown = with_interval(cell["ratio"], 2) if "ratio" in cell else ""
        rows.append((name_of(release), with_interval(cell["mean"], 2), grown, f"mean face {cell['mean face']:.2f}"))
    return markdown(("trained on", "error, % of the eyes' distance", "times that of originals", "remark"), rows)


def guarantee_table(found: Row) -> str:
    """What each channel prints, and what was measured."""
    rows = []
    for channel, cell in found.items():
        claimed, proved, measured = (cell.get(f"epsilon {what}") for what in ("claimed", "proved", "measured"))
        rows.append(
            (
                f"`{channel}`",
                "none" if claimed is None else f"{claimed:.2f}",
                "infinite" if proved is None else f"{proved:.2f}",
                "" if measured is None else f"at least {measured:.2f}",
                cell["text"],
            )
        )
    return markdown(("channel", "epsilon claimed", "proved", "measured", "what a release says"), rows)


def _kept(cell: Row, kind: str) -> list[str]:
    if "mean" not in cell:
        return ["not measured", ""]
    mean = percent(cell["mean"]) if kind == "expression" else with_interval(cell["mean"], 2)
    return [mean, f"{100 * cell['found']:.1f}"]


def _difference(value: Sequence[float | None] | None, kind: str) -> str:
    if value is None:
        return "not measured"
    return percent(value) if kind == "expression" else with_interval(value, 2)


def _rate(value: Sequence[float | None] | None) -> str:
    """A share in %, with two digits, as rates here are small."""
    return "" if value is None else with_interval([None if part is None else 100 * part for part in value], 2)


def page_tables(cells: Mapping[str, Any], config: DisguiseStudyConfig) -> str:
    """What stands on Disguise's page, as far as it is computed."""
    sections = [
        f"LFW: {scale(cells, config)}; seed {config.seed}, on a CPU. PNG files read back; 95 % intervals over people."
    ]
    utility = by_release(cells, "utility", rows_of(config), judge=None)
    for judge in judges_of(cells):
        sections += _recognised(cells, config, judge, utility)
    if utility:
        sections += ["Tables 2 and 7, what is kept:", utility_table(utility)]
    if order := cells.get("utility order"):
        sections.append(utility_order_table(order))
    if apart := parts_table(utility):
        sections += ["Landmarks by part of the face:", apart]
    taught = {name: cells[f"landmarks/{name}"] for name in config.trained if f"landmarks/{name}" in cells}
    if taught:
        sections += [
            f"Table 3; the truth are landmarks of {config.truth} on the originals:",
            landmarks_table(taught),
        ]
    for release in (config.main, "blur"):
        names = config.attacks if release == config.main else config.compared
        attacks = {name: cells[f"attack/{release}/{name}"] for name in names if f"attack/{release}/{name}" in cells}
        if attacks:
            sections += [f"Attacks on {name_of(release)}:", attacks_table(attacks)]
    if found := cells.get("guarantee"):
        sections += ["What is guaranteed:", guarantee_table(found)]
    return "\n\n".join(sections)


def _recognised(
    cells: Mapping[str, Any], config: DisguiseStudyConfig, judge: str, utility: Mapping[str, Row]
) -> list[str]:
    sections = []
    verified = by_release(cells, "verified", (*rows_of(config), *config.noisy), judge)
    plain = {name: cell for name, cell in verified.items() if name in rows_of(config)}
    if plain:
        sections += [f"Tables 1 and 6, by {judge}:", recognised_table(plain, utility)]
        sections += ["The farthest match:", farthest_table(plain)]
    if inverted := by_release(cells, "inverted", config.inverted, judge):
        sections += ["Tables 4, 5, 8 and 9, swapped and inverted:", inverted_table(verified, inverted)]
    if order := cells.get(f"order/{judge}"):
        sections.append(order_table(order))
    if elsewhere := by_release(cells, "elsewhere", ("opp", "mlp", "ved"), judge):
        sections += ["Learned on another set of faces (Figure 5e):", inverted_table(verified, elsewhere)]
    return sections


def scale(cells: Mapping[str, Any], config: DisguiseStudyConfig) -> str:
    """What the figures are of."""
    about = cells.get("pictures")
    if about is None:
        return f"people of folds {config.folds}, all cross-person pairs"
    fitted = [kind for kind, together in about["trained together"].items() if not together]
    return (
        f"{about['pictures']} pictures of {about['people']} test people, all cross-person pairs; attackers: "
        f"{about['public people']} others"
        + (f"; {', '.join(fitted)} fitted to the swapper of {config.main}" if fitted else "")
    )


def judges_of(cells: Mapping[str, Any]) -> list[str]:
    """The judges by whom originals were recognised."""
    return [name.rpartition("/")[2] for name in cells if name.startswith(f"verified/{ORIGINAL}/")]


def by_release(
    cells: Mapping[str, Any], kind: str, releases: Sequence[str], judge: str | None = JUDGE
) -> dict[str, Any]:
    """The cells of one kind that are there, by release. judge: None for cells that are of none."""
    ending = "" if judge is None else f"/{judge}"
    names = {release: f"{kind}/{release}{ending}" for release in releases}
    return {release: cells[name] for release, name in names.items() if name in cells}


_ROC_TICKS = (1e-4, 1e-3, 1e-2, 1e-1)
_DISTANCE_TICKS = (0.0, 0.5, 1.0, 1.5, 2.0)


def draw_recognition(folder: Path, judge: str, found: Cells) -> None:
    """ROC and distances by a judge (the paper's Figure 7). found: the cells of recognition, by release."""
    curves = {name_of(name): [(rate, value, "") for rate, value in cell["ROC"]] for name, cell in found.items()}
    plot(
        folder / f"roc-{judge}.svg", f"ROC by {judge} (paper: Figure 7)", curves, across="FPR", up="TPR",
        logarithmic=True, ticks=_ROC_TICKS, dots=False,
    )  # fmt: skip
    middles = ((EDGES[:-1] + EDGES[1:]) / 2).tolist()
    shares = dict(list(found[ORIGINAL]["distances"].items())[:2])
    for name in (*CONTROLS[:1], "opp", "mlp", "ved"):
        shares[f"original and {name_of(name)}"] = found[name]["distances"]["original and protected"]
    series = {name: [(x, y, "") for x, y in zip(middles, each, strict=True)] for name, each in shares.items()}
    plot(
        folder / f"distances-{judge}.svg", f"Distances by {judge} (paper: Figure 7)", series,
        across="Euclidean distance of unit vectors", up="share of pairs", ticks=_DISTANCE_TICKS, dots=False,
    )  # fmt: skip

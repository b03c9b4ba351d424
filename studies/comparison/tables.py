"""The two tables of all methods as Markdown, from their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from studies.comparison.plan import ENTRIES, FACES, PEOPLE, ComparisonConfig
from studies.shared.tables import markdown, percent
from veilkit.types import Level

Rows = Mapping[str, Mapping[str, Any]]
_LEVELS = tuple(str(level) for level in Level)
_HEADS = {
    PEOPLE: ("method", "kept: Rank-1", "kept: mAP", "recogniser; Rank-1 on originals",
             *(f"leak {level}" for level in _LEVELS)),
    FACES: ("method", "kept: faces found again", "kept: landmarks moved", *(f"leak {level}" for level in _LEVELS)),
}  # fmt: skip
_NO_FACE = "not measured: no face found"
_WHO = {
    PEOPLE: "{config.people} test people, {config.queries} query and {config.gallery} gallery pictures each",
    FACES: "{config.faces} people of the test folds, up to {config.shots} faces each, aligned, {config.side} pixels",
}
_KEPT = {
    PEOPLE: "Kept: Rank-1 and mAP in % by the recogniser authorised for the release, both sides protected; of FRO by "
    "a student of the release, and of PEPR-Net's features by its encoder, both in originals. FRO protects the people "
    "whom its classifier was trained on, and its leaks are theirs.",
    FACES: "Kept: in how many % of the faces dlib finds a face again, and how far its five points moved, in % of the "
    "distance of the eyes.",
}


def table(rows: Rows, kind: str) -> str:
    """The rows of people or of faces, in their order; above those of people what the originals themselves give."""
    chosen = [name for name in ENTRIES if ENTRIES[name].table == kind and name in rows]
    lines = [_originals(rows, chosen)] if kind == PEOPLE else []
    lines += [_line(rows[name], kind) for name in chosen]
    return markdown(_HEADS[kind], [line for line in lines if line])


def about(rows: Rows, kind: str, config: ComparisonConfig) -> str:
    """What the numbers mean, in a paragraph."""
    ran = next((rows[name] for name in ENTRIES if ENTRIES[name].table == kind and "levels" in rows.get(name, ())), {})
    parts = [_WHO[kind].format(config=config) + f"; files read back, seed {config.seed}; 95 % intervals over people."]
    parts += [
        _KEPT[kind],
        "Leak: of the attacks of a level that passed their gates, the one that gets farthest from chance, in %, or "
        "one that failed them for being too weak and found more all the same (≥: a stronger one finds no less); "
        f"judge: {ran.get('judge', 'none yet')}.",
        f"Attackers who learn had {config.updates} updates and half of the people, and are scored on the others.",
        "INVALID: all attacks of the level failed their gates, which proves nothing; †: some did.",
    ]
    return " ".join(parts)


def remarks(rows: Rows, kind: str) -> str:
    """What was not made at which level and why, attack by attack, as a list."""
    lines = []
    for name in ENTRIES:
        if ENTRIES[name].table != kind or "levels" not in rows.get(name, ()):
            continue
        for level, found in rows[name]["levels"].items():
            said = [f"`{attack}` INVALID: {'; '.join(why)}" for attack, why in found["invalid"].items()]
            said += [f"`{attack}` not made: {why}" for attack, why in found["not made"].items()]
            if found["why"] and not said:
                said = [found["why"]]
            lines += [f"- {rows[name]['label']}, {level}: {each}" for each in said]
    return "\n".join(lines)


def _originals(rows: Rows, chosen: Sequence[str]) -> tuple[str, ...]:
    """What the general expert and the judge find where nothing is protected."""
    for name in chosen:
        row = rows[name]
        raw = row.get("kept", {}).get("originals")
        if raw and not ENTRIES[name].own:
            found = row["judge on originals"]
            return ("none (originals)", percent(raw["rank-1"]), percent(raw["mAP"]), row["kept"]["by"],
                    f"{percent(found)} stock_recogniser" if found else "", "", "", "")  # fmt: skip
    return ()


def _line(row: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    if "not run" in row:
        return (row["label"], f"not run: {row['not run']}", *("",) * (len(_HEADS[kind]) - 2))
    kept = row["kept"]
    if "why" in kept:
        shown: tuple[str, ...] = (f"not measured: {kept['why']}", "", "")
    elif kind == FACES:
        shown = (percent(kept["found"]) or _NO_FACE, percent(kept["moved"]) or _NO_FACE)
    else:
        raw = kept.get("originals")
        beside = "" if not raw or raw["rank-1"] is None else f"; {percent(raw['rank-1'])}"
        shown = (percent(kept["rank-1"]), percent(kept["mAP"]), f"{kept['by']}{beside}")
    return (row["label"], *shown, *(_leak(row["levels"][level]) for level in _LEVELS))


def _leak(level: Mapping[str, Any]) -> str:
    found = level["found"]
    if found is not None:
        metric = "" if found["metric"].startswith("rank") else f" {found['metric']}"
        chance = "" if found["chance"] is None else f", chance {100 * found['chance']:.1f}"
        others = " †" if level["invalid"] else ""
        least = "≥ " if found.get("at least") else ""
        return f"{least}{percent(found['value'])} ({found['attack']}{metric}{chance}){others}"
    if level["invalid"]:
        return f"INVALID ({', '.join(level['invalid'])})"
    return "not applicable" if level["not made"] else "not attacked"

"""The two tables of all methods as Markdown, from their rows, and the front page's, without brackets.

The latter says which method is for which purpose, what it keeps and what it gives away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from studies.comparison.plan import ENTRIES, FACES, PEOPLE, ComparisonConfig
from studies.shared.tables import markdown, percent
from veilkit.audit.verdicts.verdict import over_chance
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


HEAD = ("purpose", "method", "what it keeps", "what it gives away")
PURPOSES: tuple[tuple[str, str, str], ...] = (  # what for, the method as the page names it, the row
    ("Search pictures that look like noise", "[`pixelfade`](docs/methods/pixelfade.md)", "pixelfade"),
    ("The same, reversible with the key", "[`avih`](docs/methods/avih.md)", "avih"),
    ("Search pixelated pictures, reversible", "[`privacyreid`](docs/methods/privacyreid.md)",
     "privacyreid"),
    ("Search features only", "[`peprnet`](docs/methods/peprnet.md) without noise", "peprnet-features"),
    ("Train on synthetic people", "[`fro`](docs/methods/fro.md)", "fro"),
    ("Annotate or train on faces", "[`disguise`](docs/methods/disguise.md)", "disguise"),
    ("Show scenes without faces", "[`facereplace`](docs/methods/controls.md)", "face-replace"),
    ("Show rough shapes", "[`pixelate`](docs/methods/controls.md)", "pixelate"),
    ("Show soft shapes", "[`blur`](docs/methods/controls.md)", "blur"),
    ("Comparison; `unmix` undoes it", "[`mixup`](docs/methods/controls.md)", "mixup"),
    ("Comparison; `jigsaw` undoes it", "[`patches`](docs/methods/controls.md)", "patches"),
    ("Comparison; `averaging` undoes it", "[`noise`](docs/methods/controls.md)", "noise"),
)  # fmt: skip
NEARLY = 0.9  # of the way from chance that the best attack gets: the weakest attacker who gets so far is named
_ATTACKERS = {
    Level.L0: "strangers",
    Level.L1: "who runs it",
    Level.L2: "who trains on it",
    Level.L3: "who holds its model",
}


def purposes_table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """A line for each purpose whose method was measured; leaks are those of the level that gives away most."""
    lines = [
        (purpose, method, _kept(row, name), _given_away(row))
        for purpose, method, name in PURPOSES
        if "levels" in (row := rows.get(name, {}))
    ]
    return markdown(HEAD, lines)


def _kept(row: Mapping[str, Any], name: str) -> str:
    kept = row["kept"]
    if "why" in kept:
        return "not measured"
    if ENTRIES[name].table == FACES:
        found = f"{_percent(kept['found'])} of faces found"
        return f"{found}, landmarks off by {_percent(kept['moved'])}" if kept["moved"] else found
    searched = f"Rank-1 {_percent(kept['rank-1'])}"
    originals = kept.get("originals")
    return f"{searched}, originals {_percent(originals['rank-1'])}" if originals else searched


def _given_away(row: Mapping[str, Any]) -> str:
    """What the weakest attacker finds who gets nearly as far as the best, and † if attacks failed their gates."""
    found = [(Level(level), each["found"]) for level, each in row["levels"].items() if each["found"] is not None]
    most = max((beyond_chance(each) for _, each in found), default=None)
    if most is None:
        said = "unknown"
    elif most <= 0:
        said = "nothing beyond chance"
    else:
        level, worst = next(pair for pair in found if beyond_chance(pair[1]) >= NEARLY * most)
        least = "at least " if worst.get("at least") else ""
        metric = "AUC " if worst["metric"] == "AUC" else ""
        said = f"{least}{metric}{_percent(worst['value'])}: {_ATTACKERS[level]}"
    return f"{said} †" if any(each["invalid"] for each in row["levels"].values()) else said


def beyond_chance(found: Mapping[str, Any]) -> float:
    """How far an attack got from chance to certainty."""
    return over_chance(found["value"][0], found["chance"] or 0.0)


def _percent(value: Sequence[float | None] | None) -> str:
    if value is None or value[0] is None:
        return "not measured"
    share = 100 * value[0]
    if share < 1 or 99 < share < 100:
        return f"{share:.1f} %"
    return f"{math.floor(share + 0.5)} %"

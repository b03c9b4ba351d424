"""The front page's table: which method for which purpose, what it keeps and what it gives away, without brackets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from studies.comparison.plan import ENTRIES, FACES
from studies.shared.tables import markdown
from veilkit.audit.verdicts.verdict import over_chance
from veilkit.types import Level

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
_NEARLY = 0.9  # of the way from chance that the best attack gets: the weakest attacker who gets so far is named
_WHO = {
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
    most = max((_beyond_chance(each) for _, each in found), default=None)
    if most is None:
        said = "unknown"
    elif most <= 0:
        said = "nothing beyond chance"
    else:
        level, worst = next(pair for pair in found if _beyond_chance(pair[1]) >= _NEARLY * most)
        least = "at least " if worst.get("at least") else ""
        metric = "AUC " if worst["metric"] == "AUC" else ""
        said = f"{least}{metric}{_percent(worst['value'])}: {_WHO[level]}"
    return f"{said} †" if any(each["invalid"] for each in row["levels"].values()) else said


def _beyond_chance(found: Mapping[str, Any]) -> float:
    return over_chance(found["value"][0], found["chance"] or 0.0)


def _percent(value: Sequence[float | None] | None) -> str:
    if value is None or value[0] is None:
        return "not measured"
    share = 100 * value[0]
    if share < 1 or 99 < share < 100:
        return f"{share:.1f} %"
    return f"{math.floor(share + 0.5)} %"

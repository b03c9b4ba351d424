"""The front page's table: which method for which purpose, what it keeps and what it gives away, without brackets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from studies.comparison.plan import ENTRIES, FACES
from studies.shared.tables import markdown
from veilkit.audit.verdicts.thresholds import over_chance
from veilkit.types import Level

HEAD = ("purpose", "method", "what it keeps", "what it gives away")
PURPOSES: tuple[tuple[str, str, str], ...] = (  # what for, the method as the page names it, the row
    ("Search pictures that look like noise", "[`pixelfade`](docs/methods/pixelfade.md)", "pixelfade"),
    ("The same, with a likeness that the key brings back", "[`avih`](docs/methods/avih.md)", "avih"),
    ("Search pictures that look pixelated, and reverse them", "[`privacyreid`](docs/methods/privacyreid.md)",
     "privacyreid"),
    ("Search features in place of pictures", "[`peprnet`](docs/methods/peprnet.md) without noise", "peprnet-features"),
    ("Train a recogniser on synthetic pictures", "[`fro`](docs/methods/fro.md)", "fro"),
    ("Annotate faces, or train on them", "[`disguise`](docs/methods/disguise.md)", "disguise"),
    ("Show a scene without its faces", "[`facereplace`](docs/methods/controls.md)", "face-replace"),
    ("Show where people are, in rough colours", "[`pixelate`](docs/methods/controls.md)", "pixelate"),
    ("The same, blurred", "[`blur`](docs/methods/controls.md)", "blur"),
    ("Comparison only: `unmix` undoes it", "[`mixup`](docs/methods/controls.md)", "mixup"),
    ("Comparison only: `jigsaw` undoes it", "[`patches`](docs/methods/controls.md)", "patches"),
    ("Comparison only: `averaging` undoes it", "[`noise`](docs/methods/controls.md)", "noise"),
)  # fmt: skip
_NEARLY = 0.9  # of the way from chance that the best attack gets: the weakest attacker who gets so far is named
_WHO = {
    Level.L0: "a stranger",
    Level.L1: "somebody who can run the method",
    Level.L2: "somebody who trains on the release",
    Level.L3: "somebody who holds the model",
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
        found = f"{_percent(kept['found'])} of faces found again"
        return f"{found}; landmarks move by {_percent(kept['moved'])}" if kept["moved"] else found
    searched = f"Rank-1 {_percent(kept['rank-1'])}"
    originals = kept.get("originals")
    return f"{searched}; on originals {_percent(originals['rank-1'])}" if originals else searched


def _given_away(row: Mapping[str, Any]) -> str:
    """What the weakest attacker finds who gets nearly as far as the best, and which attacks proved nothing."""
    found = [(Level(level), each["found"]) for level, each in row["levels"].items() if each["found"] is not None]
    invalid = [attack.replace("_", " ") for each in row["levels"].values() for attack in each["invalid"]]
    most = max((_beyond_chance(each) for _, each in found), default=None)
    if most is None:
        said = "unknown"
    elif most <= 0:
        said = "nothing found beyond chance"
    else:
        level, worst = next(pair for pair in found if _beyond_chance(pair[1]) >= _NEARLY * most)
        least = "at least " if worst.get("at least") else ""
        metric = "AUC " if worst["metric"] == "AUC" else ""
        said = f"{least}{metric}{_percent(worst['value'])} to {_WHO[level]}"
        if worst["chance"] is not None:
            said += f"; chance {_percent([worst['chance']])}"
    return said + (f"; proved nothing: {', '.join(invalid)}" if invalid else "")


def _beyond_chance(found: Mapping[str, Any]) -> float:
    return over_chance(found["value"][0], found["chance"] or 0.0)


def _percent(value: Sequence[float | None] | None) -> str:
    if value is None or value[0] is None:
        return "not measured"
    share = 100 * value[0]
    if share < 1 or 99 < share < 100:
        return f"{share:.1f} %"
    return f"{math.floor(share + 0.5)} %"

"""The figures that the page of `veilkit serve` shows for each method: from results.json, as a file in the package.

`python -m studies.comparison.page_figures` writes it again; a test holds the two together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from studies.comparison.tables import NEARLY, beyond_chance
from veilkit.types import Level

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("results.json")
TARGET = ROOT / "src" / "veilkit" / "web" / "static" / "figures.json"
_CELLS = {  # the method as the page names it, and its row
    "faceblur": "faces/face-blur", "facereplace": "faces/face-replace", "disguise": "faces/disguise",
    "pixelate": "people/pixelate", "blur": "people/blur", "noise": "people/noise", "mixup": "people/mixup",
    "patches": "people/patches", "pixelfade": "people/pixelfade", "avih": "people/avih", "fro": "people/fro",
    "privacyreid": "people/privacyreid", "peprnet": "people/peprnet-features",
}  # fmt: skip


def page_figures(results: Mapping[str, Any]) -> dict[str, Any]:
    """For each method what is kept, and what the weakest attacker finds who gets nearly as far as the best."""
    cells = results["cells"]
    methods = {name: _row(cells[cell], cell) for name, cell in _CELLS.items() if "levels" in cells.get(cell, {})}
    return {
        "source": f"studies/comparison/{SOURCE.name}",
        "date": results["date"],
        "scale": results["scale"],
        "seed": results["seed"],
        "methods": methods,
    }


def _row(row: Mapping[str, Any], cell: str) -> dict[str, Any]:
    kept = row["kept"]
    shown = {name: kept[name][0] for name in ("found", "moved", "rank-1") if kept.get(name) is not None}
    if kept.get("originals"):
        shown["originals"] = kept["originals"]["rank-1"][0]
    found = [(str(Level(level)), each["found"]) for level, each in row["levels"].items() if each["found"] is not None]
    most = max((beyond_chance(each) for _, each in found), default=None)
    leak: dict[str, Any] | None = None
    if most is not None and most > 0:
        level, worst = next(pair for pair in found if beyond_chance(pair[1]) >= NEARLY * most)
        leak = {
            "level": level, "attack": worst["attack"], "metric": worst["metric"], "value": worst["value"][0],
            "chance": worst["chance"], "at least": bool(worst.get("at least")),
        }  # fmt: skip
    doubted = any(each["invalid"] for each in row["levels"].values())
    return {"cell": cell, "kept": shown, "leak": leak, "measured": most is not None, "some failed": doubted}


def main() -> None:
    """Write the file."""
    TARGET.write_text(rendered(), encoding="utf-8")


def rendered() -> str:
    """The file's text."""
    return json.dumps(page_figures(json.loads(SOURCE.read_text(encoding="utf-8"))), indent=1) + "\n"


if __name__ == "__main__":
    main()

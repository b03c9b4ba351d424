"""`veilkit benchmark` as researchers give it: CUHK03-NP with an ONNX recogniser of others, and a folder of photos.

    VEILKIT_DATA=... VEILKIT_WEIGHTS=... python benchmarks/own_data.py [--only people|photos]

People: blur, PixelFade and PrivacyReID on some of CUHK03-NP's test people, useful to OSNet (x0.25, MSMT17). Photos:
faces of some of LFW's test people blurred and replaced. Kept in runs/own-data; a stopped run goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from claims import ROOT, record
from first_audit import copied
from process import run
from veilkit.datasets.lfw import TEST_FOLDS, load_lfw
from veilkit.experts.names import DATA, VARIABLE

COMMAND = "VEILKIT_DATA=... VEILKIT_WEIGHTS=... python benchmarks/own_data.py"
WORK = ROOT / "runs" / "own-data"
PEOPLE, FACES, SEED = 16, 16, 0
EXPERT = "osnet_x0_25_msmt17.onnx"
WRITTEN = ("benchmark.html", "table.md", "table.csv", "table.tex", "figure.svg", "results.json", "benchmark.toml")


def photographs(data: Path) -> Path:
    """Two photographs each of some test people of LFW, in folders under numbers."""
    lfw = load_lfw(data / "lfw")
    pairs = [pair for pair in lfw.pairs if pair.same and pair.fold in TEST_FOLDS]
    shown = {Path(pair.first).parent.name: (pair.first, pair.second) for pair in pairs}
    target = WORK / "photos"
    if not target.is_dir():
        copied([(who, data / "lfw" / path) for who in sorted(shown)[:FACES] for path in shown[who]], target)
    return target


def measured(name: str, data: Path, methods: str, *more: str) -> None:
    """Run the command, and record how many of its cells hold a verdict."""
    out = WORK / name
    done = run("benchmark", data, "--methods", methods, "--seed", str(SEED), "--budget", "none", "--out", out, *more,
               watch_memory=True, OMP_NUM_THREADS="1", VEILKIT_HOME=str(WORK / "home"))  # fmt: skip
    print(done.output)
    if done.code:
        sys.exit(f"veilkit benchmark ended with {done.code}")
    values = json.loads((out / "results.json").read_text())
    cells = {f"{row['asked for']} {each['level']}": each["grade"] for row in values["rows"] for each in row["levels"]}
    answered = [cell for cell, grade in cells.items() if grade not in ("no verdict", "not attacked")]
    missing = [file for file in WRITTEN if not (out / file).is_file()]
    kept = ", ".join(f"{row['asked for']} keeps {row['kept']['value']:.1%}" for row in values["rows"] if row["kept"])
    data_name = {"people": "CUHK03-NP", "photos": "LFW, folds 8 to 10"}[name]
    size = f"{values['data']['pictures']} pictures of {values['data']['people']} people"
    record(
        id=f"benchmark-{name}", claim=f"`veilkit benchmark` on {data_name}: cells of its table with a verdict",
        figure=round(len(answered) / len(cells), 3), bar=">= 1", unit="share", data=data_name,
        scale=f"{size}; {methods}; attackers in closed form only", seed=SEED, command=COMMAND,
        note=f"expert {values['expert']['name']}, judge {values['judge']['name']}; {kept}; "
        + ", ".join(f"{cell} {grade}" for cell, grade in cells.items())
        + f"; files missing: {', '.join(missing) or 'none'}; {'; '.join(values['notes'])}; "
        f"{done.processors / 60:.1f} minutes of processor time in this run",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("people", "photos"))
    only = parser.parse_args().only
    if DATA not in os.environ or VARIABLE not in os.environ:
        sys.exit("This needs research data and weights: set VEILKIT_DATA and VEILKIT_WEIGHTS to their folders.")
    data = Path(os.environ[DATA])
    WORK.mkdir(parents=True, exist_ok=True)
    if only != "photos":
        measured("people", data / "cuhk03-np", "blur,pixelfade,privacyreid", "--people", str(PEOPLE), "--expert",
                 str(Path(os.environ[VARIABLE]) / EXPERT))  # fmt: skip
    if only != "people":
        measured("photos", photographs(data), "faceblur,facereplace", "--labels", "folder")


if __name__ == "__main__":
    main()

"""CUHK03-NP as each method protects it, and as deface does, audited by one command within its budget.

    VEILKIT_DATA=... python benchmarks/audit_matrix.py [--comparison DIR] [--deface FILE]

takes about three minutes for each release. The releases are those that `python -m studies comparison` has made,
in runs/comparison (--only releases is enough); deface is a tool of others (`pip install deface`, in an environment of
its own), and is given the same pictures. `veilkit audit --spec` audits all of them; then every report is opened in
Chromium without a network.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

from claims import ROOT, record
from deface_folder import defaced
from process import run
from report_browser import NoBrowserError, chromium, visit

sys.path.insert(0, str(ROOT))  # the studies lie beside the package
from studies.comparison.models import Models
from studies.comparison.plan import ENTRIES, FACES
from studies.comparison.study import STUDY, named_judge
from veilkit.audit.inputs.spec import AuditSpec, DatasetSpec, ExpertSpec, ReleaseSpec
from veilkit.audit.inputs.spec_text import spec_text
from veilkit.audit.options import seconds_of
from veilkit.methods import METHODS, Learns

CONFIG = STUDY.published
EXPERT = ROOT / "models" / "cuhk03_mobilenetv2.safetensors"
START = ROOT / "models" / "cuhk03_efficientnet.safetensors"
COMMAND = "VEILKIT_DATA=... python benchmarks/audit_matrix.py"
BUDGET = "3m"
ATTACKS = ("stock_recogniser", "linkage", "own_original", "mean_image", "recovery", "class_linkage", "memorisation")
WINDOW = {"width": 1100, "height": 1400}
MEGABYTES = 15


def releases(comparison: Path, models: Models) -> tuple[list[ReleaseSpec], list[str]]:
    """What the comparison has made of CUHK03-NP, and the rows of which there is nothing."""
    found, absent = [], []
    for name, entry in ENTRIES.items():
        if entry.data == FACES or entry.features:
            continue
        folder = comparison / "matrix" / "releases" / f"{entry.data}.{name}.seed{CONFIG.seed}"
        if not folder.is_dir():
            absent.append(name)
            continue
        learns = issubclass(METHODS[entry.method], Learns)
        own = models.beside(entry.method, "expert") if entry.own else None
        found.append(
            ReleaseSpec(
                name=name, protected=folder, dataset=entry.data, seed=CONFIG.seed,
                decoder=models.beside(entry.method, "decoder") if learns else None,
                student=models.beside(entry.method, "student") if learns else None,
                expert=None if own is None else str(own),
            )
        )  # fmt: skip
    return found, absent


def by_deface(command: str, originals: Path, target: Path) -> Path:
    """The same pictures through deface, which works on one folder at a time."""
    shutil.rmtree(target, ignore_errors=True)
    copies = target.with_name("copies")
    shutil.rmtree(copies, ignore_errors=True)
    shutil.copytree(originals, copies)
    target.mkdir()
    for folder in sorted(each for each in copies.iterdir() if each.is_dir() and any(each.iterdir())):
        defaced(command, folder, target / folder.name)
    shutil.rmtree(copies)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparison", type=Path, default=ROOT / "runs" / "comparison", help="the study's folder")
    parser.add_argument("--deface", default=shutil.which("deface"), help="its command, where it is not on the path")
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "audit-matrix")
    arguments = parser.parse_args()
    if "VEILKIT_DATA" not in os.environ:
        sys.exit("This needs research data: set VEILKIT_DATA to the folder that holds cuhk03-np.")
    comparison, work = arguments.comparison.resolve(), arguments.work.resolve()
    made, absent = releases(comparison, Models.of(ROOT / "models", []))
    if not made:
        sys.exit(f"{comparison} holds no releases: run `python -m studies comparison --only releases` first")
    if arguments.deface is None or shutil.which(arguments.deface) is None:
        sys.exit("deface is not installed: pip install deface, in an environment of its own, and name it by --deface")
    shutil.rmtree(work, ignore_errors=True)  # what was audited before would cost nothing
    work.mkdir(parents=True)
    judge = named_judge(work, Path(os.environ["VEILKIT_DATA"]))
    people = comparison / "originals" / "people"
    made.append(ReleaseSpec(name="deface", protected=by_deface(arguments.deface, people, work / "deface"),
                            dataset="people"))  # fmt: skip
    spec = AuditSpec(
        datasets=tuple(
            DatasetSpec(name=name, originals=comparison / "originals" / name, labels="market")
            for name in dict.fromkeys(str(each.dataset) for each in made)
        ),
        releases=tuple(made), experts=(ExpertSpec(expert=str(EXPERT), judge=judge),), attacks=ATTACKS, budget=BUDGET,
        start=START, seeds=(CONFIG.seed,),
    )  # fmt: skip
    (work / "audit.toml").write_text(spec_text(spec, work))
    done = run("audit", "--spec", work / "audit.toml", "--out", work / "audits", OMP_NUM_THREADS="1")
    print(done.output)
    if done.code:
        sys.exit(f"the audits ended with {done.code}")
    rows = json.loads((work / "audits" / "matrix.json").read_text())["audits"]
    _record(rows, [each.name for each in made], absent, done.seconds, work)


def _made(reports: dict[str, Path]) -> str:
    """What the budget left of people and attacks, as the audits themselves say it."""
    found = [json.loads(file.with_name("audit.json").read_text()) for file in reports.values()]
    people = [each["config"]["budget"]["people"] or CONFIG.people for each in found]
    attacks = [sum(attack["applicable"] for attack in each["attacks"]) for each in found]
    learned = sum(each["config"]["budget"]["updates"] > 0 for each in found)
    return (
        f"{min(people)} to {max(people)} people at most and {min(attacks)} to {max(attacks)} attacks each; attackers "
        f"learned in {learned} of {len(found)}: the others' budget was too small for that"
    )


def _record(rows: list[dict[str, object]], names: list[str], absent: list[str], seconds: float, work: Path) -> None:
    reports = {str(row["release"]): work / "audits" / str(row["report"]) for row in rows if "report" in row}
    missing = "".join(f"; no release of {name}" for name in absent)
    about = {
        "data": "CUHK03-NP, 128x64", "seed": CONFIG.seed, "command": COMMAND,
        "scale": f"{len(names)} releases: {', '.join(names)}; {_made(reports)}; one thread",
    }  # fmt: skip
    record(
        id="matrix-budget", claim="One command audits CUHK03-NP protected by each method, and by deface: time taken "
        "against the budget of all audits", figure=round(seconds / (seconds_of(BUDGET) * len(names)), 2),
        bar="<= 1.2", unit="x", note=f"{seconds:.0f} s for {len(names)} audits of {BUDGET} each{missing}", **about,
    )  # fmt: skip
    record(
        id="matrix-audited", claim="Releases that the one command leaves without a report",
        figure=len(names) - len(reports), bar="== 0", unit="releases",
        note="; ".join(f"{row['release']}: {row['why']}" for row in rows if "why" in row) + missing, **about,
    )  # fmt: skip
    sizes = {name: file.stat().st_size / 1e6 for name, file in reports.items()}
    largest = max(sizes, key=lambda name: sizes[name])
    record(
        id="matrix-size", claim="The largest of these reports", figure=round(sizes[largest], 2),
        bar=f"< {MEGABYTES}", unit="MB", note=largest, **about,
    )  # fmt: skip
    heard = []
    try:
        with chromium() as browser:
            for name, file in reports.items():
                seen = visit(browser, file, viewport=WINDOW)
                seen.page.screenshot(path=work / f"{name}.png", full_page=True)
                heard += [f"{name}: {line}" for line in (*seen.said, *seen.asked)]
    except NoBrowserError as error:
        print(f"no row for the browser: {error}")
        return
    record(
        id="matrix-browser", claim="The same reports opened in Chromium without a network: console messages and "
        "requests", figure=len(heard), bar="== 0", unit="messages", note="; ".join(heard[:5]), **about,
    )  # fmt: skip


if __name__ == "__main__":
    main()

"""`kill -9` at random moments of an audit, and the same command again: its scores must be those of an unbroken one.

Every other kill takes the parent alone, so that its workers end by themselves.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audit_mutants import SEED, blurred, changed, people, some
from claims import record
from process import completed, differing, run_and_kill

KILLS, LEARN = 10, 30
ATTACKS = ("stock_recogniser", "linkage", "own_original", "mean_image", "unmix", "recovery", "silhouette")
Scores = dict[tuple[str, ...], Any]


@dataclass(frozen=True, slots=True)
class Report:
    """kills: (seconds after the start, cells that were there then) of each. cells: of the whole audit.

    differing: scores of the two audits.
    """

    kills: tuple[tuple[float, int], ...]
    cells: int
    scores: int
    differing: tuple[tuple[str, ...], ...]


def scores_of(file: Path) -> Scores:
    """Every number of an audit.json, by what it is of."""
    found: Scores = {}
    result = json.loads(file.read_text())
    for each in result["measurements"]:
        found[each["by"], each["setting"], each["score"]["metric"]] = each["score"]
    for each in result["attacks"]:
        found[each["attack"], "applicable"] = each["applicable"]
        found[each["attack"], "invalid"] = each["invalid"]
        for score in each["scores"]:
            found[each["attack"], score["metric"]] = score
    return found


def measure(
    originals: Path, release: Path, work: Path, *, kills: int, learn: int = LEARN, workers: int = 1,
    attacks: tuple[str, ...] = ATTACKS, seed: int = SEED,
) -> Report:  # fmt: skip
    """Kill audits `kills` times, resume them each time, and compare with an unbroken one."""
    rng = random.Random(seed)
    options = ["--expert", "histogram", "--judge", "histogram", "--learn", str(learn), "--workers", str(workers)]
    options += [word for name in attacks for word in ("--attack", name)]
    whole = completed("audit", originals, release, "--out", work / "unbroken", *options)
    total, rounds = len(_cells(work / "unbroken")), [work / "broken0"]
    happened = []
    for number in range(kills):
        # Every other kill waits for a new cell and a moment more; the others come early, at any moment.
        broken = rounds[-1]
        if len(_cells(broken)) == total:  # nothing is left to be killed: another audit is begun
            broken = work / f"broken{len(rounds)}"
            rounds.append(broken)
        here = len(_cells(broken))
        waits = number % 2 == 1
        seconds = run_and_kill(
            "audit", originals, release, "--out", broken, *options,
            until=_later(
                lambda broken=broken, here=here: len(_cells(broken)) > here, rng.uniform(0, 0.03) * whole.seconds
            ) if waits else lambda: False,
            latest=whole.seconds if waits else rng.uniform(0.02, 0.25) * whole.seconds,
            alone=number % 4 < 2, rng=rng,
        )  # fmt: skip
        happened.append((seconds, len(_cells(broken))))
    first, wrong = scores_of(work / "unbroken" / "audit.json"), []
    for broken in rounds:
        completed("audit", originals, release, "--out", broken, *options)
        second = scores_of(broken / "audit.json")
        wrong += differing(first, second)
    return Report(tuple(happened), total, len(first), tuple(wrong))


def _later(condition: Callable[[], bool], delay: float) -> Callable[[], bool]:
    """True so many seconds after the condition has become true."""
    since: list[float] = []

    def over() -> bool:
        if not since and condition():
            since.append(time.perf_counter())
        return bool(since) and time.perf_counter() - since[0] >= delay

    return over


def _cells(out: Path) -> list[str]:
    """Names of cells that are there; each must be whole."""
    files = list((out / "cells").glob("*.json"))
    for file in files:
        json.loads(file.read_text())
    return [file.name for file in files]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        originals = some(people(work, SEED, identities=12), work / "some", SEED)
        release = changed(originals, work / "release", blurred)
        report = measure(originals, release, work, kills=KILLS)
    for number, (seconds, cells) in enumerate(report.kills, 1):
        print(f"kill {number:>2}: after {seconds:5.1f} s, {cells} cells there")
    record(
        id="audit-resume",
        claim=f"`kill -9` at {KILLS} random moments of an audit, then resume: scores unlike an unbroken audit's",
        figure=len(report.differing),
        bar="== 0",
        unit="scores",
        data="generated people, blurred",
        scale=f"10 people, {len(ATTACKS)} attacks, two trained for {LEARN} updates; {report.scores} scores",
        seed=SEED,
        command="python benchmarks/audit_resume.py",
        note=f"{sum(cells < report.cells for _, cells in report.kills)} kills before the last of {report.cells} "
        f"cells, {sum(0 < cells < report.cells for _, cells in report.kills)} of them after the first; half of the "
        "kills take the parent alone; an audit that was completed is begun anew",
    )


if __name__ == "__main__":
    main()

"""`kill -9` at random moments of a run, and the same command again: the end must be the same, and nothing half done
may ever be seen under a final name.

Every other kill takes the parent alone, so that orphaned workers still write while the next run begins.
"""

from __future__ import annotations

import math
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

from claims import record
from pictures import write_folder
from process import completed, contents, differing, run_and_kill

SEED, KILLS, COUNT = 0, 30, 500
METHOD, HEIGHT, WIDTH = "noise", 256, 128


@dataclass(frozen=True, slots=True)
class Report:
    """kills: (seconds after the start, files visible then) of each. differing: names not as in the unbroken run."""

    kills: tuple[tuple[float, int], ...]
    partial: tuple[str, ...]
    differing: tuple[str, ...]


def measure(work: Path, *, kills: int, count: int, workers: int = 2, seed: int = SEED) -> Report:
    """Kill a run `kills` times, resume it each time, and compare with an unbroken run under the same key."""
    rng = random.Random(seed)
    source, unbroken, broken = work / "source", work / "unbroken", work / "broken"
    write_folder(source, count, height=HEIGHT, width=WIDTH)
    options = ["--method", METHOD, "--workers", str(workers), "--key", str(work / "private" / "key")]
    whole = completed("protect", source, unbroken, *options)
    expected = contents(unbroken)
    happened: list[tuple[float, int]] = []
    partial: set[str] = set()
    for number in range(kills):
        # A quarter of the kills come at any moment of start-up; the others wait for a share of what is left.
        left = count - len(_pictures(broken))
        wanted = count - left + rng.uniform(0, 2 * left / (kills - number)) if number % 4 < 3 else math.inf
        seconds = run_and_kill(
            "protect", source, broken, *options, until=lambda wanted=wanted: len(_pictures(broken)) > wanted,
            latest=rng.uniform(0, 0.5 * whole.seconds) if number % 4 == 3 else 20 * whole.seconds,
            alone=number % 2 == 0, rng=rng,
        )  # fmt: skip
        seen = contents(broken) if broken.exists() else {}
        happened.append((seconds, len(seen)))
        partial |= {name for name, data in seen.items() if expected.get(name) != data}
    completed("protect", source, broken, *options)
    scratch = [str(file.relative_to(broken)) for file in broken.rglob("*") if ".veilkit" in file.parts]
    return Report(tuple(happened), tuple(sorted(partial)), (*differing(expected, contents(broken)), *scratch))


def _pictures(release: Path) -> list[str]:
    return [file.name for file in release.glob("*.png")] if release.exists() else []


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = measure(Path(folder), kills=KILLS, count=COUNT)
    for number, (seconds, visible) in enumerate(report.kills, 1):
        print(f"kill {number:>2}: after {seconds:5.1f} s, {visible} files visible")
    progress = sorted(visible for _, visible in report.kills)
    inside = sum(0 < visible < COUNT for visible in progress)
    about = {
        "data": f"generated pictures, {HEIGHT}x{WIDTH}, method {METHOD}",
        "scale": f"{COUNT} pictures, {KILLS} kills, 2 workers",
        "seed": SEED,
        "command": "python benchmarks/kill_resume.py",
        "note": f"{inside} of {KILLS} kills between the first and the last file (median {progress[KILLS // 2]} of "
        f"{COUNT} files done); half of the kills take the parent alone",
    }
    record(
        id="kill-resume-differences",
        claim=f"`kill -9` at {KILLS} random moments of a {COUNT}-image run, then resume: files that differ from an "
        "unbroken run",
        figure=len(report.differing),
        bar="== 0",
        unit="files",
        **about,
    )
    record(
        id="kill-resume-partial",
        claim=f"`kill -9` at {KILLS} random moments: partial files ever visible under a final name",
        figure=len(report.partial),
        bar="== 0",
        unit="files",
        **about,
    )


if __name__ == "__main__":
    main()

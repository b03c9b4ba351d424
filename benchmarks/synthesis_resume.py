"""`kill -9` at random moments of FRO's synthesis, and the same command again: pictures, soft labels and manifest must
be those of an unbroken run, as must those of a run with another number of workers.

The pool is tiny and hardly trained, as the promise does not depend on what it knows. Each start after a kill takes
another number of workers, and every other kill takes the parent alone, so that orphaned workers still write.
"""

from __future__ import annotations

import random
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from claims import record
from process import completed, contents, differing, run_and_kill
from veilkit.datasets.labelled import load_training_part
from veilkit.methods.fro.method import Fro, FroConfig
from veilkit.synthetic.people import generate_people
from veilkit.training.reid_config import PLAIN

SEED, KILLS = 0, 5
PEOPLE = {"identities": 16, "images": 8, "cameras": 2, "seed": 5}  # the first half, 8 people, is for training
POOL = replace(PLAIN, backbone="osnet-x0.25", size=(48, 24), epochs=1, identities=4, images=4)
SCALE, GROUP, STEPS, WORKERS = 1, 8, 6, (0, 1, 2)
COUNT = SCALE * PEOPLE["identities"] // 2 * PEOPLE["images"]


@dataclass(frozen=True, slots=True)
class Report:
    """kills: (seconds after the start, pictures visible then) of each. files: of the unbroken run.

    The rest are names of files that differ from it: partial, seen while broken; resumed, at the end; workers, of an
    unbroken run with other workers.
    """

    kills: tuple[tuple[float, int], ...]
    files: int
    partial: tuple[str, ...]
    resumed: tuple[str, ...]
    workers: tuple[str, ...]

    @property
    def differing(self) -> int:
        return len({*self.partial, *self.resumed, *self.workers})


def measure(work: Path, *, kills: int, steps: int = STEPS, seed: int = SEED) -> Report:
    """Synthesise unbroken, with two workers, and with kills; compare all under one key."""
    rng = random.Random(seed)
    _fit(work)
    begun = time.perf_counter()
    _finish(work, "unbroken", steps, workers=0)
    whole = time.perf_counter() - begun
    expected = contents(work / "unbroken")
    if not {"soft_labels.npz", "manifest.json"} <= expected.keys() or len(_pictures(work / "unbroken")) != COUNT:
        raise SystemExit(f"expected {COUNT} pictures, soft labels and a manifest, but got {sorted(expected)[:5]} ...")
    _finish(work, "workers", steps, workers=2)
    happened, partial = [], set[str]()
    for number in range(kills):
        happened.append(_start_and_kill(work, steps, number, kills, rng, whole))
        seen = contents(work / "broken") if (work / "broken").exists() else {}
        partial |= {name for name, data in seen.items() if expected.get(name) != data}
    _finish(work, "broken", steps, workers=WORKERS[kills % len(WORKERS)])
    ends = [tuple(differing(expected, contents(work / name))) for name in ("broken", "workers")]
    return Report(tuple(happened), len(expected), tuple(sorted(partial)), *ends)


def _fit(work: Path) -> None:
    torch.set_num_threads(1)
    generate_people(work / "people", workers=1, **PEOPLE)
    method = Fro(FroConfig(pool=POOL)).fit(load_training_part(work / "people"), work_dir=work / "pool")
    method.save(work / "pool.safetensors")


def _command(work: Path, name: str, steps: int, workers: int) -> list[str | Path]:
    settings = {"scale": SCALE, "group": GROUP, "assembly.steps": steps}
    changes = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return [
        "protect", work / "people", work / name, "--method", "fro", "--model", work / "pool.safetensors",
        "--key", work / "private" / "key", "--workers", str(workers), *changes,
    ]  # fmt: skip


def _finish(work: Path, name: str, steps: int, workers: int) -> None:
    completed(*_command(work, name, steps, workers))


def _start_and_kill(
    work: Path, steps: int, number: int, kills: int, rng: random.Random, whole: float
) -> tuple[float, int]:
    """Start the synthesis or go on with it, and kill it; returns when, and how many pictures were visible."""
    broken = work / "broken"
    before = len(_pictures(broken))
    # All wait for a share of what is left; every fourth for some moment of start-up, if that comes first.
    wanted = before + rng.uniform(0, 2 * (COUNT - before) / (kills - number + 1))
    seconds = run_and_kill(
        *_command(work, "broken", steps, WORKERS[number % len(WORKERS)]),
        until=lambda: len(_pictures(broken)) > wanted,
        latest=rng.uniform(0, whole / 2) if number % 4 == 2 else 20 * whole,
        alone=number % 2 == 0,
        rng=rng,
    )
    return seconds, len(_pictures(broken))


def _pictures(release: Path) -> list[Path]:
    return list(release.glob("*/*.png")) if release.exists() else []


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = measure(Path(folder), kills=KILLS)
    for number, (seconds, visible) in enumerate(report.kills, 1):
        print(f"kill {number}: after {seconds:4.1f} s, {visible} of {COUNT} pictures visible")
    print(f"differing: {report.partial} while broken, {report.resumed} at the end, {report.workers} with two workers")
    inside = sum(0 < visible < COUNT for _, visible in report.kills)
    record(
        id="fro-resume",
        claim=f"`kill -9` at {KILLS} random moments of FRO's synthesis, then resume, and another number of workers: "
        "files that differ from an unbroken run",
        figure=report.differing,
        bar="== 0",
        unit="files",
        data=f"generated people, {POOL.backbone} at {POOL.size[0]}x{POOL.size[1]}",
        scale=f"{report.files} files, {COUNT} of them pictures in groups of {GROUP}, {STEPS} steps",
        seed=SEED,
        command="python benchmarks/synthesis_resume.py",
        note=f"{inside} of {KILLS} kills between the first picture and the last; every other one takes the parent "
        "alone; soft labels and manifest are compared too",
    )


if __name__ == "__main__":
    main()

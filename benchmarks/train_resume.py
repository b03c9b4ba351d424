"""`kill -9` at random moments of a training, and the same command again: the weights must be the same bits."""

from __future__ import annotations

import hashlib
import json
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from claims import record
from process import completed, run_and_kill
from veilkit.checkpoint import load_checkpoint
from veilkit.synthetic.people import generate_people

SEED, RUNS, KILLS, EPOCHS = 0, 2, 3, 12
PEOPLE = {"identities": 16, "images": 4, "cameras": 2, "seed": 3}  # the first half, 8 people, is for training
SETTINGS = {
    "size": "48,24", "stored": "48,24", "small_size": "none", "small_share": "0", "identities": "4", "images": "2",
}  # fmt: skip
BACKBONE = "osnet-x0.25"


@dataclass(frozen=True, slots=True)
class Killed:
    """One kill: seconds after the start, and epochs that were saved by then."""

    seconds: float
    epochs: int


@dataclass(frozen=True, slots=True)
class Report:
    """The kills of each broken run, and whether it ended with other weights or ever showed any."""

    kills: tuple[tuple[Killed, ...], ...]
    differing: tuple[bool, ...]


def measure(work: Path, *, runs: int, kills: int, epochs: int = EPOCHS, seed: int = SEED) -> Report:
    """Train unbroken, then `runs` times with `kills` kills each, and compare the weights files."""
    rng = random.Random(seed)
    generate_people(work / "people", workers=1, **PEOPLE)
    whole = completed(*_command(work, "unbroken", epochs))
    expected = digest(work / "unbroken.safetensors")
    happened, differing = [], []
    for number in range(runs):
        name = f"broken{number}"
        found = [_start_and_kill(work, name, epochs, kills - k, rng, whole.seconds) for k in range(kills)]
        wrong = any(weights not in ("", expected) for _, weights in found)
        completed(*_command(work, name, epochs))
        happened.append(tuple(killed for killed, _ in found))
        differing.append(wrong or digest(work / f"{name}.safetensors") != expected)
    return Report(tuple(happened), tuple(differing))


def digest(file: Path) -> str:
    """The SHA-256 of a file; nothing where there is none."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else ""


def _command(work: Path, name: str, epochs: int) -> list[str | Path]:
    changes = [word for pair in {**SETTINGS, "epochs": str(epochs)}.items() for word in ("--set", "=".join(pair))]
    out = work / f"{name}.safetensors"
    return [
        "train", "reid", work / "people", "--out", out, "--work-dir", work / name, "--backbone", BACKBONE, *changes
    ]  # fmt: skip


def _start_and_kill(
    work: Path, name: str, epochs: int, kills_left: int, rng: random.Random, whole: float
) -> tuple[Killed, str]:
    """Start the training or go on with it, kill it, and hash the weights file that is seen then, if any."""
    before = _saved(work / name)
    # Every third kill comes at any moment of start-up. The others wait for a share of the epochs that are left, and
    # then for the middle of whatever the training does next.
    early = kills_left % 3 == 2
    wanted = before + rng.randint(1, max(1, 2 * (epochs - before) // (kills_left + 1) - 1))
    latest = rng.uniform(0, 0.5 * whole) if early else 20 * whole

    def due() -> bool:
        if early or _saved(work / name) < wanted:
            return False
        time.sleep(rng.uniform(0, 0.3))
        return True

    seconds = run_and_kill(*_command(work, name, epochs), until=due, latest=latest, alone=True, rng=rng)
    killed = Killed(seconds, _saved(work / name))
    if killed.epochs:
        load_checkpoint(work / name / "state.safetensors", "reid-training")  # raises where it is damaged
    return killed, digest(work / f"{name}.safetensors")


def _saved(folder: Path) -> int:
    """Epochs that the state on disk holds: from its header alone, as the training may be replacing the file."""
    state = folder / "state.safetensors"
    if not state.exists():
        return 0
    with state.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return int(json.loads(header["__metadata__"]["config"])["epoch"])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = measure(Path(folder), runs=RUNS, kills=KILLS)
    for number, (kills, differs) in enumerate(zip(report.kills, report.differing, strict=True), 1):
        for place, kill in enumerate(kills, 1):
            print(f"run {number}, kill {place}: after {kill.seconds:4.1f} s, {kill.epochs} of {EPOCHS} epochs saved")
        print(f"run {number}: {'OTHER weights than' if differs else 'the same weights as'} the unbroken run")
    every = [kill for kills in report.kills for kill in kills]
    inside = sum(0 < kill.epochs < EPOCHS for kill in every)
    record(
        id="train-resume-differences",
        claim=f"`kill -9` at {RUNS * KILLS} random moments of Re-ID trainings, then resume: trainings whose weights "
        "file differs (SHA-256) from the unbroken one",
        figure=sum(report.differing),
        bar="<= 0",
        unit="trainings",
        data=f"generated people, {BACKBONE} at 48x24",
        scale=f"{RUNS} trainings of {EPOCHS} epochs, {KILLS} kills each",
        seed=SEED,
        command="python benchmarks/train_resume.py",
        note=f"{inside} of {len(every)} kills between the first saved epoch and the last",
    )


if __name__ == "__main__":
    main()

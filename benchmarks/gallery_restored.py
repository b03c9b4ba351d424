"""An older private copy of a gallery is restored: what `add`, `export` and `budget` then do.

    python benchmarks/gallery_restored.py

By the commands: half of the records are added, the private folder is copied, the others are added, and of the copy
the ledger, the list of records, or both are put back. Counted are vectors that differ from those that were out, and
answers of `budget` that tell less than was spent.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np

from claims import record
from process import Finished, run

RECORDS, DIMENSION, EPSILON, SEED = 40, 32, 16.0, 0
PARTS = {"ledger": ("ledger",), "list": ("catalogue",), "both": ("ledger", "catalogue")}
DISAGREE = 3


def features(file: Path, rows: list[int]) -> Path:
    values = np.random.default_rng(SEED).standard_normal((RECORDS, DIMENSION)).astype(np.float32)
    np.savez(
        file,
        features=values[rows],
        records=np.array([f"{row}.jpg" for row in rows]),
        persons=np.array([f"person {row // 2}" for row in rows]),
    )
    return file


def exported(gallery: Path, out: Path) -> dict[str, bytes] | None:
    """The vectors by pseudonym, or None where the command refuses."""
    done = run("gallery", "export", gallery, out)
    if done.code:
        return None
    with np.load(out / "features.npz") as parts:
        return {str(n): v.tobytes() for n, v in zip(parts["pseudonyms"], parts["features"], strict=True)}


def spent(gallery: Path) -> tuple[int, float]:
    """The exit code of `budget`, and the most that it says a person has spent."""
    done = run("gallery", "budget", gallery, "--json")
    return done.code, float(json.loads(done.output[done.output.index("{") :])["epsilon_spent"])


def restore(folder: Path, parts: tuple[str, ...]) -> tuple[int, int]:
    """(vectors that differ or were drawn again, budgets told as less) after a restore of these parts."""
    gallery, private, copy = folder / "gallery", folder / "gallery.private", folder / "copy"
    first, everything = list(range(0, RECORDS, 2)), list(range(RECORDS))
    asked = ("--mechanism", "privunit", "--epsilon", str(EPSILON), "--per", "person", "--dimension", str(DIMENSION))
    succeed(run("gallery", "create", gallery, *asked, "--budget-epsilon", str(2 * EPSILON)))
    succeed(run("gallery", "add", gallery, features(folder / "first.npz", first)))
    shutil.copytree(private, copy)
    every = features(folder / "all.npz", everything)
    succeed(run("gallery", "add", gallery, every))
    before = exported(gallery, folder / "before")
    assert before is not None
    for part in parts:
        (file,) = copy.glob(f"*.{part}")
        shutil.copy(file, private / file.name)
    run("gallery", "add", gallery, every)  # refused, or adopted: the vectors tell
    code, told = spent(gallery)
    understated = int(told < 2 * EPSILON or code != DISAGREE)
    again = exported(gallery, folder / "again")
    differing = different(before, again)
    succeed(run("gallery", "reconcile", gallery, every))
    succeed(run("gallery", "add", gallery, every))
    code, told = spent(gallery)
    return differing + different(before, exported(gallery, folder / "after")), understated + int(
        told != 2 * EPSILON or code != 0
    )


def different(before: dict[str, bytes], after: dict[str, bytes] | None) -> int:
    """Vectors that are not those of before; none where nothing was given out."""
    return 0 if after is None else sum(before.get(name) != vector for name, vector in after.items())


def succeed(done: Finished) -> None:
    if done.code:
        raise RuntimeError(done.output)


def main() -> None:
    differing = understated = 0
    for name, parts in PARTS.items():
        with tempfile.TemporaryDirectory() as folder:
            found = restore(Path(folder), parts)
        print(f"{name}: {found[0]} vectors differ, {found[1]} budgets told as less")
        differing, understated = differing + found[0], understated + found[1]
    facts = {
        "data": f"{RECORDS} random features of {DIMENSION} numbers, two a person",
        "scale": "ledger, list of records, or both restored",
        "seed": SEED,
        "command": "python benchmarks/gallery_restored.py",
    }
    record(
        id="gallery-restored-vectors", claim="Records that get a second vector after an older copy is restored",
        figure=differing, bar="== 0", unit="vectors", **facts,
    )  # fmt: skip
    record(
        id="gallery-restored-budget", claim="Budgets told as less than was spent, or as in order when they are not",
        figure=understated, bar="== 0", unit="answers", **facts,
    )  # fmt: skip


if __name__ == "__main__":
    main()

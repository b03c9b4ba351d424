"""What `veilkit audit ORIGINALS PROTECTED` answers without any option: verdicts, time, lines on the terminal.

    VEILKIT_DATA=... VEILKIT_WEIGHTS=... python benchmarks/first_audit.py [--only NAME ...]

Each release is audited once with the command as a newcomer gives it, in its default three minutes. Crops of people:
generated ones, and CUHK03-NP's test people. Photographs of faces: LFW's test people (folds 8 to 10), and generated
group photographs that deface has blurred. What is not at hand is left out, and the rows say what was audited.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claims import record
from deface_folder import defaced, photographs
from process import command
from veilkit.datasets.lfw import TEST_FOLDS, load_lfw
from veilkit.experts.names import DATA
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness
from veilkit.synthetic.people import generate_people

COMMAND = "VEILKIT_DATA=... VEILKIT_WEIGHTS=... python benchmarks/first_audit.py"
PEOPLE, SHOTS, SEED = 60, 4, 0
FEW = 30  # photographed people, whose pictures take longer
GENERATED = {"identities": 2 * PEOPLE, "images": 4, "cameras": 2, "seed": SEED, "height": 128}
CROPS = {"generated": ("pixelate",), "cuhk": ("blur", "noise")}
FACES = ("faceblur", "facereplace", "disguise")
MINUTES, LINES = 3.0, 12


@dataclass(frozen=True)
class First:
    """A first audit. answered: levels with a verdict, of those to which an attack at hand applies at all."""

    name: str
    answered: int
    levels: int
    minutes: float
    lines: int
    finds: float | None
    told: str


def copied(files: Iterable[tuple[str, Path]], target: Path) -> Path:
    """Pictures in a folder for each person, under numbers instead of names."""
    numbers: dict[str, int] = {}
    counts: dict[str, int] = defaultdict(int)
    for who, file in files:
        number = numbers.setdefault(who, len(numbers))
        folder = target / f"p{number:03}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / f"{counts[who]}{file.suffix}")
        counts[who] += 1
    return target


def some(files: dict[str, list[Path]], people: int) -> list[tuple[str, Path]]:
    """Some people, drawn at random, of whom there are two pictures or more; at most SHOTS of each."""
    known = sorted(who for who, each in files.items() if len(each) > 1)
    order = Randomness.from_seed(SEED).child("first audit").permutation(len(known))[:people]
    return [(known[place], file) for place in order for file in sorted(files[known[place]])[:SHOTS]]


def of_cuhk(data: Path, target: Path) -> Path:
    """Some test people of CUHK03-NP, as queries and gallery, so that cameras are known."""
    parts = ("query", "bounding_box_test")
    files = {part: sorted((data / "cuhk03-np" / part).iterdir()) for part in parts}
    known = sorted({file.name.partition("_")[0] for file in files["query"]})
    order = Randomness.from_seed(SEED).child("first audit").permutation(len(known))[:PEOPLE]
    chosen = {known[place] for place in order}
    for part in (*parts, "bounding_box_train"):
        (target / part).mkdir(parents=True)
        for file in files.get(part, []):
            if file.name.partition("_")[0] in chosen:
                shutil.copyfile(file, target / part / file.name)
    return target


def of_lfw(data: Path, target: Path) -> Path:
    """People of LFW from whom nothing was learned."""
    lfw = load_lfw(data / "lfw")
    shown = {path for pair in lfw.pairs if pair.fold in TEST_FOLDS for path in (pair.first, pair.second)}
    tested = {record.identity for record in lfw.images.records if record.path in shown}
    files: dict[str, list[Path]] = defaultdict(list)
    for each in lfw.images.records:
        if each.identity is not None and each.identity in tested:
            files[each.identity].append(data / "lfw" / each.path)
    return copied(some(files, FEW), target)


def of_generated(target: Path) -> Path:
    """Generated people; the half who are tested the packaged expert has not seen."""
    generate_people(target, workers=1, **GENERATED)
    return target


def printed(*words: str | Path) -> str:
    """What a command prints on standard output."""
    done = subprocess.run(command(*words), capture_output=True, text=True, check=False,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
    if done.returncode not in (0, 3):
        raise SystemExit(f"{words[0]} failed: {done.stderr[-800:]}")
    return done.stdout


def first(name: str, originals: Path, protected: Path) -> First:
    """Run the command, and read what it tells a program."""
    begun = time.perf_counter()
    done = printed("audit", originals, protected)
    seconds = time.perf_counter() - begun
    print(f"--- {name}, {seconds:.0f} s\n{done.replace(str(protected.parent), '...')}", flush=True)
    told: dict[str, Any] = json.loads(printed("audit", originals, protected, "--json"))  # by cells that it finds
    levels = sorted(told["levels"], key=lambda each: str(each["level"]))
    graded = [each for each in levels if "attack" in each]
    grades = ", ".join(f"{each['level']} {each['grade']}" for each in levels)
    apart = told["surroundings"]
    grades += f", surroundings {apart['grade']}" if apart else ""
    finds = told["judge"]["finds in originals"]
    return First(
        name, len(graded), len(levels), seconds / 60, len(done.splitlines()), finds,
        f"{name}: {grades} ({seconds:.0f} s)",
    )  # fmt: skip


def deface_runs() -> bool:
    """Whether that tool is installed, with all that it needs."""
    command = shutil.which("deface")
    return (
        command is not None
        and subprocess.run([command, "--version"], capture_output=True, check=False).returncode == 0
    )


def releases(work: Path, data: Path | None, wanted: set[str]) -> Iterable[tuple[str, Path, Path]]:
    """Originals and what was made of them, each when it is asked for."""
    sources: list[tuple[str, tuple[str, ...], Callable[[Path], Path]]] = [
        ("generated", CROPS["generated"], of_generated)
    ]
    if data is not None:
        sources += [("cuhk", CROPS["cuhk"], lambda target: of_cuhk(data, target)),
                    ("lfw", FACES, lambda target: of_lfw(data, target))]  # fmt: skip
    for source, methods, make in sources:
        methods = tuple(each for each in methods if not wanted or f"{source}-{each}" in wanted)
        if not methods:
            continue
        originals = make(work / source)
        for method in methods:
            target = work / f"{source}-{method}"
            protect(originals, target, method, labels="folder")
            yield target.name, originals, target
    if deface_runs() and (not wanted or "deface" in wanted):
        photos, _ = photographs(work / "group")
        yield "deface", photos, defaced("deface", photos, work / "group" / "release")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="names such as cuhk-blur, lfw-faceblur, deface")
    wanted = set(parser.parse_args().only)
    data = Path(os.environ[DATA]) if DATA in os.environ else None
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "group").mkdir()
        found = [first(*each) for each in releases(Path(folder), data, wanted)]
    if not found:
        sys.exit("nothing to audit")
    about: dict[str, Any] = {
        "data": ", ".join(each.name for each in found),
        "scale": f"{len(found)} releases of {FEW} to {PEOPLE} people, no options; one thread of a shared machine",
        "seed": SEED, "command": " ".join([COMMAND, *(["--only", *sorted(wanted)] if wanted else [])]),
    }  # fmt: skip
    answered, levels = sum(each.answered for each in found), sum(each.levels for each in found)
    notes = "; ".join(each.told for each in found)
    record(id="first-audit-verdicts",
           claim="Levels with a verdict, “too few to tell” among them, in a first audit without options",
           figure=round(answered / levels, 3), bar=">= 0.95", unit="share", note=notes, **about)  # fmt: skip
    record(id="first-audit-time", claim="Minutes that a first audit takes, the longest",
           figure=round(max(each.minutes for each in found), 1), bar=f"<= {MINUTES:g}", unit="min",
           note="; ".join(f"{each.name} {each.minutes:.1f}" for each in found), **about)  # fmt: skip
    record(id="first-audit-lines", claim="Lines that a first audit prints, the most",
           figure=max(each.lines for each in found), bar=f"<= {LINES}", unit="lines", **about)  # fmt: skip
    faces = [each.finds for each in found if each.name.startswith("lfw") and each.finds is not None]
    if faces:
        record(id="first-audit-faces", claim="Photographs: share of the originals that the judge finds by the face",
               figure=round(min(faces), 3), bar=">= 0.95", unit="share", **about)  # fmt: skip


if __name__ == "__main__":
    main()

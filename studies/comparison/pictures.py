"""The front page's picture: people and faces who do not exist, and what becomes of them.

    python -m studies.comparison.pictures

All rows but the first are files read back. The models are those of models/, trained on real people, so that generated
ones are strange to them; PixelFade is optimised for models/cuhk03_mobilenetv2.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from studies.shared.figures import sheet
from studies.shared.study import ROOT
from veilkit.pipeline.protect import protect
from veilkit.pipeline.recovery import recover
from veilkit.synthetic.faces import generate_faces
from veilkit.synthetic.faces.capture import Ranges
from veilkit.synthetic.people import generate_people

PICTURE = ROOT / "docs" / "images" / "overview.png"
MODELS = ROOT / "models"
PEOPLE, FACES, SEED = 6, 4, 3
BODY, FACE = (72, 144), (144, 144)  # width and height of a picture on the page
FRONTAL = Ranges(yaw=15.0, pitch=8.0, roll=5.0)
_GAP = 24


def draw(picture: Path, work: Path, people: int = PEOPLE, faces: int = FACES) -> None:
    """Write both sheets side by side; `work` gets pictures of nobody."""
    sheet(work / "people.png", _people(work, people), BODY)
    sheet(work / "faces.png", _faces(work, faces), FACE)
    left, right = Image.open(work / "people.png"), Image.open(work / "faces.png")
    both = Image.new("RGB", (left.width + _GAP + right.width, max(left.height, right.height)), "white")
    both.paste(left, (0, 0))
    both.paste(right, (left.width + _GAP, 0))
    both.save(picture, optimize=True)


def _people(work: Path, people: int) -> dict[str, Tensor]:
    drawn, source = work / "drawn", work / "people"
    generate_people(drawn, identities=people, images=2, cameras=2, seed=SEED, height=128)
    source.mkdir()
    for file in sorted(drawn.rglob("*_c1s1_000001_00.*"))[:people]:
        (source / file.name).write_bytes(file.read_bytes())
    anonymiser = MODELS / "cuhk03_privacyreid.safetensors"
    expert = {"expert": str(MODELS / "cuhk03_mobilenetv2.safetensors")}
    protect(source, work / "pixelate", "pixelate", seed=SEED, names="kept")
    protect(source, work / "pixelfade", "pixelfade", settings=expert, seed=SEED, names="kept")
    protect(source, work / "privacyreid", "privacyreid", model=anonymiser, seed=SEED, names="kept")
    recover(
        work / "privacyreid", work / "decoded", model=anonymiser.with_name(f"{anonymiser.stem}.decoder.safetensors")
    )
    rows = {"original": source, "pixelate": work / "pixelate", "pixelfade": work / "pixelfade",
            "privacyreid": work / "privacyreid", "its decoder": work / "decoded"}  # fmt: skip
    return {name: _read(folder) for name, folder in rows.items()}


def _faces(work: Path, faces: int) -> dict[str, Tensor]:
    drawn, source = work / "portraits", work / "faces"
    generate_faces(drawn, people=faces, images=1, size=224, seed=SEED, ranges=FRONTAL)
    source.mkdir()
    for file in sorted(drawn.rglob("*.png")):
        (source / file.name).write_bytes(file.read_bytes())
    rows = {"original": source}
    for number, (name, method) in enumerate(
        (
            ("faceblur", "faceblur"),
            ("facereplace", "facereplace"),
            ("disguise", "disguise"),
            ("another key", "disguise"),
        )
    ):
        model = MODELS / "lfw_disguise.safetensors" if method == "disguise" else None
        rows[name] = work / f"{number} {method}"
        protect(source, rows[name], method, model=model, seed=SEED + number, names="kept")
    return {name: _read(folder) for name, folder in rows.items()}


def _read(folder: Path) -> Tensor:
    files = sorted(file for file in folder.iterdir() if file.suffix in {".png", ".jpg"})
    pictures = [torch.from_numpy(np.array(Image.open(file).convert("RGB"))) for file in files]
    return torch.stack(pictures).permute(0, 3, 1, 2)


def main() -> None:
    """Draw it."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as work:
        draw(PICTURE, Path(work))


if __name__ == "__main__":
    main()

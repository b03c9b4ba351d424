"""The picture of PrivacyReID's page, of generated people alone: original, pixelated, anonymised and recovered.

By the model of models/, which was trained on other, real people; all rows but the first are files read back.
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
from veilkit.synthetic.people import generate_people

PICTURE = ROOT / "docs" / "images" / "privacyreid.png"
MODEL = ROOT / "models" / "cuhk03_privacyreid.safetensors"
PEOPLE, SEED, HEIGHT = 8, 3, 128


def draw(picture: Path, work: Path, people: int = PEOPLE) -> None:
    """Write the sheet; `work` gets pictures of nobody."""
    source = work / "people"
    generate_people(source, identities=people, images=2, cameras=2, seed=SEED, height=HEIGHT)
    releases = {"pixelated": ("pixelate", None), "anonymised": ("privacyreid", MODEL)}
    for name, (method, model) in releases.items():
        protect(source, work / name, method, model=model, seed=SEED, names="kept", labels="market")
    recover(work / "anonymised", work / "recovered", model=MODEL.with_name(f"{MODEL.stem}.decoder.safetensors"))
    chosen = sorted(path.relative_to(source) for path in source.rglob("*_c1s1_000001_00.jpg"))[:people]
    rows = {"original": source, **{name: work / name for name in (*releases, "recovered")}}
    sheet(picture, {name: _read(folder, chosen) for name, folder in rows.items()}, (96, 192))


def _read(folder: Path, names: list[Path]) -> Tensor:
    found = [next(folder.joinpath(name.parent).glob(f"{name.stem}.*")) for name in names]
    return torch.stack([torch.from_numpy(np.array(Image.open(file).convert("RGB"))) for file in found]).permute(
        0, 3, 1, 2
    )


def main() -> None:
    """Draw it."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as work:
        draw(PICTURE, Path(work))


if __name__ == "__main__":
    main()

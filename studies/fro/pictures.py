"""The picture of FRO's page, of generated people alone: what each way of hiding makes of the same persons.

Without arguments it draws people, lets a small pool learn them (some minutes on one core) and keeps both in
runs/fro-pictures; `--data` and `--pool` take a folder of generated people and a pool that has learned them. `--quick`
is a trial in small that writes beside the work, not into the docs.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

from studies.shared.study import ROOT
from veilkit.datasets.labelled import load_training_part
from veilkit.media.writing import to_pixels
from veilkit.methods.base import bind
from veilkit.methods.fro.method import POOL, Fro, FroConfig
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness
from veilkit.synthetic.people import generate_people
from veilkit.types import Split

PICTURE = ROOT / "docs" / "images" / "fro.jpg"
SEED, GROUP, LARGEST = 0, 64, 150_000
CELL, GAP, MARGIN = (168, 84), 6, 118  # height and width of a picture, and the room of the rows' names, in pixels
ROWS = {
    "original": "original", "patches": "patches (PRO)", "mixup": "mix-up", "paper": "FRO, paper",
    "noise": "from noise", "looks": "from looks", "leaves": "from leaves", "figures": "from figures",
}  # fmt: skip


def main() -> None:
    """Draw it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="generated people, as `veilkit generate people` writes them")
    parser.add_argument("--pool", type=Path, help="what `veilkit fit fro` learned from them")
    parser.add_argument("--init", type=Path, help="ImageNet weights that a mobilenetv2 pool starts from")
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "fro-pictures")
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if (arguments.data is None) != (arguments.pool is None):
        sys.exit("give both --data and --pool, or neither")
    torch.set_num_threads(1)
    work, columns, epochs, steps = arguments.work, arguments.columns, arguments.epochs, arguments.steps
    if arguments.quick:
        work, columns, epochs, steps = work / "quick", 3, 1, 2
    data = arguments.data or generated(work / "people", 16 if arguments.quick else 96)
    if not (data / "generated.json").is_file():
        sys.exit(f"{data} holds no generated people: the docs show nobody else")
    people = load_training_part(data)
    pool = arguments.pool or fitted(people, work, arguments.init, epochs, quick=arguments.quick)
    sheet = drawn(people, Fro.load(pool), work, columns, steps, GROUP if not arguments.quick else 4)
    target = work / PICTURE.name if arguments.quick else PICTURE
    data_written = small_jpeg(sheet)
    target.write_bytes(data_written)
    print(f"{target}: {len(data_written) / 1000:.0f} kB")


def generated(folder: Path, identities: int) -> Path:
    """Half of the people are in the training part."""
    if not (folder / "generated.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        generate_people(folder, identities=identities, images=8, cameras=4, seed=SEED)
    return folder


def fitted(people: Split, work: Path, init: Path | None, epochs: int, *, quick: bool) -> Path:
    """A pool of the people; a small backbone where it starts from nothing."""
    file = work / f"pool-{'imagenet' if init else 'scratch'}-{epochs}.safetensors"
    if not file.exists():
        recipe = replace(POOL, epochs=epochs, backbone=POOL.backbone if init else "osnet-x0.25")
        if quick:
            recipe = replace(recipe, size=(32, 16), identities=2)
        Fro(FroConfig(pool=recipe)).fit(people, work_dir=work / file.stem, init=init).save(file)
    return file


def drawn(people: Split, fro: Fro, work: Path, columns: int, steps: int, group: int) -> Image.Image:
    """One column for each of the first people: an original, what became of it, and a picture of that class."""
    chosen = [next(r for r in people.records if r.identity == name) for name in people.identities[:columns]]
    rows: dict[str, list[Image.Image]] = {
        "original": [Image.open(people.root / r.path).convert("RGB") for r in chosen]
    }
    for method in ("patches", "mixup"):
        release = work / method
        protect(people.root, release, method, seed=SEED, names="kept", labels="market")
        rows[method] = [Image.open((release / r.path).with_suffix(".png")).convert("RGB") for r in chosen]
    wanted = [people.identities[place % len(people.identities)] for place in range(max(group, len(chosen)))]
    items = [f"picture {place}" for place in range(len(wanted))]
    for row in ("paper", "noise", "looks", "leaves", "figures"):
        synthesis = fro.reconfigured("paper", {"assembly.steps": steps})
        if row != "paper":
            synthesis = fro.reconfigured("varied", {"kinds": row})
        made = synthesis.synthesise(items, wanted, rng=bind(Randomness.from_seed(SEED), synthesis)).images
        assert made is not None
        rows[row] = [Image.fromarray(to_pixels(image)) for image in made[:columns]]
    return sheet_of({ROWS[name]: rows[name] for name in ROWS})


def sheet_of(rows: dict[str, list[Image.Image]]) -> Image.Image:
    """Rows of pictures, each with its name on the left, on white."""
    height, width = CELL
    columns = max(map(len, rows.values()))
    sheet = Image.new("RGB", (MARGIN + columns * (width + GAP), len(rows) * (height + GAP) - GAP), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(15)
    for row, (name, pictures) in enumerate(rows.items()):
        top = row * (height + GAP)
        draw.text((4, top + height // 2), name, fill="black", font=font, anchor="lm")
        for column, picture in enumerate(pictures):
            sheet.paste(
                picture.resize((width, height), Image.Resampling.BICUBIC), (MARGIN + column * (width + GAP), top)
            )
    return sheet


def small_jpeg(sheet: Image.Image) -> bytes:
    """The best quality that stays below the largest size."""
    for quality in range(92, 20, -4):
        buffer = io.BytesIO()
        sheet.save(buffer, "JPEG", quality=quality, optimize=True)
        if buffer.tell() < LARGEST:
            return buffer.getvalue()
    raise SystemExit(f"the sheet of {np.prod(sheet.size)} pixels does not fit into {LARGEST} bytes: fewer columns")


if __name__ == "__main__":
    main()

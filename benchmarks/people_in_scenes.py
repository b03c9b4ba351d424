"""People in composed photographs: how many YOLOX finds, and how many it leaves, neither found nor doubted.

VEILKIT_DATA=... VEILKIT_WEIGHTS=... python benchmarks/people_in_scenes.py [--scenes N] [--choose]

People of CUHK03 (crops with soft edges) and generated ones (cut out) stand on generated places. With --choose,
training people are looked at, by whom the least scores were chosen; without, people of the test part. A person is
found, or doubted, of whose box at least 80 % lies in boxes of at least that score.
"""

from __future__ import annotations

import argparse
import math
import os
from collections import defaultdict
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from claims import record
from veilkit.errors import DataError
from veilkit.experts.bodies import FILE, BodyDetector
from veilkit.experts.names import weights_folder
from veilkit.media.reading import Limits, decode, read_bytes
from veilkit.methods.faces.method import as_boxes
from veilkit.methods.whole_pictures import CERTAIN, DOUBTFUL, TILES, wider
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.synthetic import scenes
from veilkit.synthetic.people.render import passer_by

Floats = NDArray[np.float32]
Pixels = NDArray[np.uint8]
SIZES = ((1280, 960), (1920, 1080), (800, 600))  # of scenes, in turn
HEIGHTS = (32, 48, 64, 96, 192, 420)  # pixels: the bounds of the classes
PEOPLE, SEED, COVERED = 8, 0, 0.8
COMMAND = "python benchmarks/people_in_scenes.py"


def people(folder: Path, rng: np.random.Generator, height: int, number: int) -> tuple[Floats, Floats]:
    """Somebody of that height: colours (H, W, 3) in 0 to 255, and how far they cover what is behind, (H, W)."""
    if number % 2:
        colour, cover = passer_by(SEED + int(rng.integers(2**20)), number, 0)
        rows, columns = (np.flatnonzero(cover.max(axis) > 0.5) for axis in (1, 0))
        part = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
        colour, cover = np.sqrt(colour[part].clip(0, 1)) * 255, cover[part]
    else:
        files = sorted(folder.glob("*.*"))
        colour = decode(read_bytes(files[int(rng.integers(len(files)))], Limits()), Limits()).astype(np.float32)
        cover = np.zeros(colour.shape[:2], np.float32)
        edge = max(1, colour.shape[1] // 16)
        cover[edge:-edge, edge:-edge] = 1
        cover = cv2.blur(cover, (2 * edge + 1, 2 * edge + 1))
    size = max(4, round(height * cover.shape[1] / cover.shape[0])), height
    return (cv2.resize(each, size, interpolation=cv2.INTER_AREA).astype(np.float32) for each in (colour, cover))  # type: ignore[return-value]


def scene(folder: Path, number: int, seed: int) -> tuple[Pixels, NDArray[np.int64]]:
    """A picture (H, W, 3), and the boxes of its people, who do not stand over each other."""
    rng = Randomness.from_seed(seed).child("people in scenes", number).numpy()
    width, height = SIZES[number % len(SIZES)]
    wide = np.sqrt(scenes.scene(seed, number).clip(0, 1)) * 255
    left = int(rng.integers(0, scenes.WIDTH - scenes.HEIGHT * width // height + 1))
    part = wide[:, left : left + scenes.HEIGHT * width // height]
    canvas, boxes = cv2.resize(part, (width, height), interpolation=cv2.INTER_CUBIC), []
    for tall in sorted(np.exp(rng.uniform(math.log(HEIGHTS[0]), math.log(HEIGHTS[-1]), PEOPLE)), reverse=True):
        colour, cover = people(folder, rng, round(tall), number * PEOPLE + len(boxes))
        for _ in range(50):
            rows, columns = cover.shape
            left, top = int(rng.integers(4, width - columns - 4)), int(rng.integers(4, height - rows - 4))
            box = left, top, left + columns, top + rows
            if all(box[0] >= b[2] or box[2] <= b[0] or box[1] >= b[3] or box[3] <= b[1] for b in boxes):
                part = canvas[top : top + rows, left : left + columns]
                part += cover[..., None] * (colour - part)
                boxes.append(box)
                break
    return canvas.clip(0, 255).round().astype(np.uint8), np.array(boxes)


def covered(boxes: NDArray[np.int64], found: NDArray[np.float64], shape: tuple[int, ...]) -> tuple[Floats, float]:
    """The share of each box that lies in found ones, and the share of the rest that does."""
    under, person = np.zeros(shape[:2], bool), np.zeros(shape[:2], bool)
    for left, top, right, bottom in found[:, :4].round().astype(int).clip(0):
        under[top:bottom, left:right] = True
    shares = []
    for left, top, right, bottom in boxes:
        shares.append(under[top:bottom, left:right].mean())
        person[top:bottom, left:right] = True
    return np.array(shares, np.float32), float(under[~person].mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenes", type=int, default=60)
    parser.add_argument("--choose", action="store_true")
    options = parser.parse_args()
    folder, weights = Path(os.environ["VEILKIT_DATA"]) / "cuhk03-np", weights_folder()
    if weights is None or not (weights / FILE).is_file():
        raise DataError(f"expected {FILE} in the folder that VEILKIT_WEIGHTS names")
    folder /= "bounding_box_train" if options.choose else "query"
    seed = SEED + options.choose
    yolox = BodyDetector.load(weights / FILE, threshold=0.02, tiles=TILES)
    levels = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5) if options.choose else (DOUBTFUL, CERTAIN)
    shares: dict[str, list[Floats]] = defaultdict(list)
    wrong: dict[str, list[float]] = defaultdict(list)
    tall: list[NDArray[np.int64]] = []
    with Progress(options.scenes, "looking") as progress:
        for number in range(options.scenes):
            pixels, boxes = scene(folder, number, seed)
            tall.append(boxes[:, 3] - boxes[:, 1])
            found = yolox.find(pixels)
            rows = np.column_stack([[wider(box) for box in as_boxes(found)], found.scores.numpy()]).astype(float)
            seen = {f"yolox {level}": rows[rows[:, 4] >= level] for level in levels}
            for name, each in seen.items():
                share, rest = covered(boxes, each, pixels.shape)
                shares[name].append(share)
                wrong[name].append(rest)
            progress.advance()
    heights = np.concatenate(tall)
    classes = np.digitize(heights, HEIGHTS[1:-1])
    print(f"{len(heights)} people; share covered, by height from {HEIGHTS} pixels; share of the background covered")
    for name, each in shares.items():
        inside = np.concatenate(each) >= COVERED
        by = [inside[classes == place].mean() for place in range(len(HEIGHTS) - 1)]
        print(f"{name:<11}", *(f"{share:6.3f}" for share in by), f"all {inside.mean():.3f}",
              f"background {np.mean(wrong[name]):.4f}")  # fmt: skip
    if options.choose:
        return
    large = heights >= HEIGHTS[2]
    left = 1 - (np.concatenate(shares[f"yolox {DOUBTFUL}"])[large] >= COVERED).mean()
    record(
        id="people.left", claim=f"people of {HEIGHTS[2]} pixels and more in whole pictures that YOLOX-nano neither "
        "finds nor doubts", figure=round(float(left), 4), bar="<= 0.01", unit="share",
        data=f"{int(large.sum())} people of CUHK03 (test part) and generated, in {options.scenes} composed scenes",
        scale="small", seed=seed, command=COMMAND,
        note=f"{np.mean(wrong[f'yolox {DOUBTFUL}']):.4f} of the background is covered; smaller people are left more "
        "often",
    )  # fmt: skip


if __name__ == "__main__":
    main()

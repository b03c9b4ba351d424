"""Fit src/veilkit/experts/weights/outfits.safetensors: which measurements of a picture tell generated people apart.

    python models/fit_outfits.py --work runs/outfits [--out FILE]

Draws 1,000 generated people of eight pictures by twenty cameras, measures the pictures, their mirror images, and
these in other light, and keeps the discriminant directions. 200 other people by two other cameras, on whom
settings were chosen, are found again at the end. About nine minutes of one core, eight of them for drawing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.datasets.labelled import load_training_part
from veilkit.experts.outfits import load_outfits, measured, save_outfits
from veilkit.metrics import retrieval
from veilkit.synthetic.people import generate_people
from veilkit.training.pixels import read_labels, read_pixels
from veilkit.training.reid_run import discriminant
from veilkit.types import Split

TAUGHT = {"identities": 1000, "images": 8, "cameras": 20, "seed": 5000}
WATCHED = {"identities": 200, "images": 4, "cameras": 2, "seed": 6000}
DIRECTIONS, SHRINKAGE = 96, 0.01  # chosen on the watched people; 64 to 128 and 0.002 to 0.02 give as much
SIZE, CHUNK = (128, 64), 50
MOVED, GRAIN = 4, 0.012  # pixels, and of values in [0, 1]
LABELS = r"pattern:(?P<identity>\d+)_c(?P<camera>\d+)"
ROOT = Path(__file__).parent.parent
OUT = ROOT / "src" / "veilkit" / "experts" / "weights" / "outfits.safetensors"


def drawn(folder: Path, people: dict[str, int]) -> Split:
    """All pictures of these generated people."""
    if not folder.exists():
        generate_people(folder, workers=1, **people)
    return load_training_part(folder, LABELS)


def varied(images: Tensor, generator: torch.Generator) -> Tensor:
    """Pictures (N, 3, H, W) in [0, 1] as other cameras in other light might have taken them, a little moved."""

    def chance(low: float, high: float, channels: int = 1) -> Tensor:
        return low + (high - low) * torch.rand(len(images), channels, 1, 1, generator=generator)

    across, down = torch.linspace(-0.5, 0.5, images.shape[3]), torch.linspace(-0.5, 0.5, images.shape[2])[:, None]
    light = (
        chance(0.8, 1.25) * chance(0.87, 1.15, 3) * (1 + chance(-0.7, 0.7) * across) * (1 + chance(-0.3, 0.3) * down)
    )
    seen = (images.square() * light).sqrt()
    grey = seen.mean(dim=1, keepdim=True)
    seen = grey + chance(0.75, 1.25) * (seen - grey)
    seen = (0.45 + chance(0.85, 1.15) * (seen - 0.45)).clamp(0, 1) ** chance(0.86, 1.16)
    left, top = (int(torch.randint(0, 2 * MOVED + 1, (1,), generator=generator)) for _ in range(2))
    wider = F.pad(seen, (MOVED,) * 4, mode="replicate")
    moved = wider[:, :, top : top + images.shape[2], left : left + images.shape[3]]
    return (moved + GRAIN * torch.randn(moved.shape, generator=generator)).clamp(0, 1)


def described(pixels: Tensor) -> Tensor:
    """Measurements (N, 1016) of pictures uint8 (N, 3, H, W)."""
    return torch.cat([measured(part.float() / 255) for part in torch.split(pixels, CHUNK)])


def found(file: Path, split: Split) -> float:
    """Rank-1 of every picture among those of the other camera."""
    expert = load_outfits(file)
    pixels, people = read_pixels(split, SIZE), read_labels(split).numpy()
    features = torch.cat([expert.embed(part.float() / 255) for part in torch.split(pixels, CHUNK)]).numpy()
    cameras = np.array([record.camera for record in split.records])
    hits = [retrieval(features[cameras == one], features[cameras != one], people[cameras == one],
                      people[cameras != one]).hits(1) for one in np.unique(cameras)]  # fmt: skip
    return float(np.concatenate(hits).mean())


def main() -> None:
    """Draw, measure, fit, and find again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="where generated people are kept")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    people = drawn(arguments.work / "people", TAUGHT)
    pixels, labels = read_pixels(people, SIZE), read_labels(people)
    generator = torch.Generator().manual_seed(0)
    parts = torch.split(pixels.flip(3), CHUNK)
    lit = torch.cat([measured(varied(part.float() / 255, generator)) for part in parts])
    all_of_them = torch.cat([described(pixels), described(pixels.flip(3)), lit])
    weight, bias = discriminant(all_of_them, labels.repeat(3), DIRECTIONS, SHRINKAGE)
    taught = f"{len(people.identities)} generated people"
    digest = save_outfits(arguments.out, weight, bias, taught)
    sys.stdout.write(
        f"{arguments.out.name}: {taught}, {arguments.out.stat().st_size / 1e6:.2f} MB, SHA-256 {digest}\n"
    )
    watched = found(arguments.out, drawn(arguments.work / "watched", WATCHED))
    sys.stdout.write(
        f"of {WATCHED['identities']} other people, {100 * watched:.1f} % are found by the other camera\n"
    )


if __name__ == "__main__":
    main()

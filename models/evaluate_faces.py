"""Measure identity experts of faces by the official pairs of LFW's test folds.

    python models/evaluate_faces.py $VEILKIT_DATA/lfw models/lfw_faces.safetensors@arcface dlib@dlib

An expert is a name or a file, and after @ the part of a crop that it is used to. Faces are found by dlib; pairs with
a face that is not found count as wrong. The threshold of a fold is the one that does best on the other test folds.
Features are taken about their mean.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from veilkit.datasets.lfw import TEST_FOLDS, load_lfw
from veilkit.experts.alignment import WIDE, view
from veilkit.experts.faces import load_identity
from veilkit.experts.finders import load_finder
from veilkit.metrics import accuracy_by_fold
from veilkit.progress import Progress
from veilkit.training.pixels import read_picture
from veilkit.types import Split

_SIDE, _CHUNK = 160, 32


def main() -> None:
    """Print the accuracy of each expert, with that of each fold."""
    parser = argparse.ArgumentParser(description="Measure identity experts of faces on LFW's test folds.")
    parser.add_argument("lfw", type=Path, help="a folder per person, and pairs.txt")
    parser.add_argument("experts", nargs="+", metavar="EXPERT@VIEW", help="as dlib@dlib or FILE@arcface")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lfw = load_lfw(arguments.lfw)
    pairs = [pair for pair in lfw.pairs if pair.fold in TEST_FOLDS]
    paths = sorted({path for pair in pairs for path in (pair.first, pair.second)})
    kept = set(paths)
    split = Split("test", lfw.images.root, tuple(record for record in lfw.images.records if record.path in kept))
    crops, found = _aligned(split)
    place = {record.path: number for number, record in enumerate(split.records)}
    first, second = (
        [place[path] for path in side] for side in zip(*((p.first, p.second) for p in pairs), strict=True)
    )
    same, fold = np.array([int(pair.same) for pair in pairs]), np.array([pair.fold for pair in pairs])
    seen = found[first] & found[second]
    for name in arguments.experts:
        expert, _, shown = name.rpartition("@")
        network = load_identity(expert)
        with torch.no_grad():
            parts = [network.embed(view(part.float().div(255), shown)) for part in torch.split(crops, _CHUNK)]
        features = torch.cat(parts).double()
        features = F.normalize(features - features[torch.from_numpy(found)].mean(0)).numpy()
        scores = (features[first] * features[second]).sum(1)
        # Where a face is missing nothing is known, and whatever is said of the pair is wrong.
        scores = np.where(seen, scores, np.where(same == 1, -2.0, 2.0))
        by_fold = accuracy_by_fold(scores, same, fold).accuracies
        each = ", ".join(f"{100 * value:.1f}" for value in by_fold)
        sys.stdout.write(f"{name}: {100 * np.mean(by_fold):.1f} % of {len(pairs)} pairs (folds {each})\n")


def _aligned(split: Split) -> tuple[torch.Tensor, np.ndarray]:
    """uint8 crops (N, 3, S, S), and whether a face was found."""
    finder = load_finder("dlib")
    crops, found = torch.zeros(len(split), 3, _SIDE, _SIDE, dtype=torch.uint8), np.zeros(len(split), bool)
    with Progress(len(split), "looking for faces") as progress:
        for number in range(len(split)):
            image = read_picture(split, number).float().div(255)[None]
            (faces,) = finder.detect(image)
            if (largest := faces.largest()) is not None:
                points = faces.points[largest][None]
                crops[number] = WIDE[faces.order].align(image, points, _SIDE)[0].mul(255).round().byte()
                found[number] = True
            progress.advance(1)
    return crops, found


if __name__ == "__main__":
    main()

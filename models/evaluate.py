"""Measure a Re-ID model file on the test part of a dataset in the Market-1501 layout.

    python models/evaluate.py models/cuhk03_mobilenetv2.safetensors $VEILKIT_DATA/cuhk03-np

Query against gallery by cosine of the features, averaged over each image and its mirror image; gallery entries of the
query's own person and camera are removed. The model is read from its file, as everybody else will read it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from veilkit.datasets.market1501 import load_market1501
from veilkit.networks.reid import load_reid
from veilkit.training.pixels import read_pixels
from veilkit.training.retrieval import evaluate_reid


def main() -> None:
    """Print Rank-1, Rank-5, Rank-10, mAP and mINP in percent."""
    parser = argparse.ArgumentParser(description="Measure a Re-ID model file on a test set.")
    parser.add_argument("model", type=Path, help="a .safetensors file of kind reid")
    parser.add_argument("data", type=Path, help="a dataset in the Market-1501 layout")
    parser.add_argument("--stored", type=int, nargs=2, metavar=("H", "W"), help="size at which images are kept")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    network = load_reid(arguments.model)
    data = load_market1501(arguments.data)
    size = tuple(arguments.stored) if arguments.stored else (128, 64)
    query, gallery = (read_pixels(split, size) for split in (data.query, data.gallery))
    found = evaluate_reid(network, data.query, data.gallery, query, gallery)
    ranks = ", ".join(f"Rank-{k} {found.rank(k):.1%}" for k in (1, 5, 10))
    sys.stdout.write(
        f"{len(query)} queries in {len(gallery)}: {ranks}, mAP {found.mean_ap:.1%}, mINP {found.minp:.1%}\n"
    )


if __name__ == "__main__":
    main()

"""Add your own recogniser, an ONNX file, and see how well it still matches protected pictures.

python examples/own_recogniser.py model.onnx
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

import veilkit
from veilkit.experts.preprocessing import NORMALISATIONS
from veilkit.synthetic.people import generate_people


def main(work: Path, onnx: Path, people: int = 8) -> dict[str, float]:
    """Match generated people with the recogniser of a file; Rank-1 before and after each of three methods."""
    if "mine" not in veilkit.experts():
        # The file does not say how pictures must be normalised, and a wrong normalisation makes a bad judge.
        veilkit.add_expert(onnx, veilkit.Addition("mine", licence="my own", normalisation=NORMALISATIONS["none"]))
    print(veilkit.experts())
    recogniser = veilkit.load_expert("mine")

    generate_people(work / "photos", identities=people, images=4, cameras=2, seed=0, height=96)
    files = sorted((work / "photos").rglob("*.jpg"))
    pictures = np.stack([np.asarray(Image.open(file)) for file in files])
    who = np.array([file.name.split("_")[0] for file in files])

    def rank1(images: np.ndarray) -> float:
        tensor = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
        with torch.no_grad():
            features = F.normalize(recogniser.embed(tensor))
        nearest = (features @ features.T).fill_diagonal_(-1).argmax(1).numpy()
        return float((who[nearest] == who).mean())

    found = {"originals": rank1(pictures)}
    for name in ("pixelate", "blur", "noise"):
        found[name] = rank1(veilkit.load_method(name)(pictures, seed=0))
    for name, rate in found.items():
        print(f"{name:<10} {rate:.0%} of people found first")
    return found


if __name__ == "__main__":
    main(Path("runs/examples/own_recogniser"), Path(sys.argv[1]))

"""Protect pictures in memory, as a step of a PyTorch data loader.

    python examples/data_loader.py

Under one key a picture gets the same protection in every epoch. With a fresh key for each, whoever sees several
epochs could average the noise away.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

import veilkit
from veilkit.synthetic.people import generate_people


class ProtectedPictures(Dataset[torch.Tensor]):
    """Pictures of a folder, each protected when it is read."""

    def __init__(self, folder: Path, method: veilkit.LoadedMethod, key: veilkit.Key) -> None:
        self.files = sorted(folder.rglob("*.jpg"))
        self.method, self.key = method, key

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> torch.Tensor:
        pixels = np.asarray(Image.open(self.files[index]).convert("RGB"))
        protected = self.method(pixels, key=self.key)
        return torch.from_numpy(protected).permute(2, 0, 1).float() / 255


def main(work: Path, people: int = 8) -> list[torch.Tensor]:
    """Two epochs over generated people in `work`, which must be new; a mean picture of each epoch."""
    generate_people(work / "photos", identities=people, images=4, cameras=2, seed=0, height=96)
    method = veilkit.load_method("noise", sigma=0.3)
    print(method)
    key = veilkit.Key.from_seed(0)  # for real pictures, a secret one: veilkit.key.read_key(file)
    data = ProtectedPictures(work / "photos", method, key)
    means = []
    for epoch in range(2):
        batches = list(DataLoader(data, batch_size=8))
        means.append(torch.cat(batches).mean(0))
        print(f"epoch {epoch}: {len(data)} pictures in {len(batches)} batches of {tuple(batches[0].shape[1:])}")
    return means


if __name__ == "__main__":
    main(Path("runs/examples/data_loader"))

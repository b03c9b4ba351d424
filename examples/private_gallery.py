"""A private gallery: features with noise that is proved, paid for from a budget, searched at no cost.

python examples/private_gallery.py        needs the extra `gallery`
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

import veilkit
from veilkit.gallery import Gallery
from veilkit.privacy import Budget, PrivUnit
from veilkit.synthetic.people import generate_people


def main(work: Path, people: int = 8, epsilon: float = 64.0) -> float:
    """Keep generated people in a gallery in `work`, which must be new; the share of searches that find the person."""
    generate_people(work / "photos", identities=people, images=4, cameras=2, seed=0, height=96)
    files = sorted((work / "photos").rglob("*.jpg"))
    who = [file.name.split("_")[0] for file in files]
    expert = veilkit.load_expert("people")
    images = torch.from_numpy(np.stack([np.asarray(Image.open(file)) for file in files])).permute(0, 3, 1, 2) / 255
    with torch.no_grad():
        features = expert.embed(images)

    created = Gallery.create(
        work / "gallery",
        mechanism=PrivUnit(dimension=expert.dim, epsilon=epsilon),
        budget=Budget(epsilon=epsilon, delta=0.0),
        per="record",
    )
    with created as gallery:
        gallery.add(features, records=[str(file) for file in files])
        found = []
        for query, person in zip(features, who, strict=True):
            (hits,) = gallery.search(query[None], limit=2)  # the nearest is likely the picture itself
            names = gallery.names([hit.pseudonym for hit in hits])  # for the owner alone, who has the key
            found.append(any(f"/{person}_" in name for name in names.values()))
        told = gallery.budget()
        print(f"epsilon {told.spent} spent of {told.budget.epsilon}; ledger and store agree: {told.agree}")
        try:
            gallery.add(-features[:1], records=[str(files[0])])
        except veilkit.VeilkitError as error:
            print("refused:", error)  # another feature under a known name
    rate = sum(found) / len(found)
    print(f"{rate:.0%} of searches find the person")
    return rate


if __name__ == "__main__":
    main(Path("runs/examples/private_gallery"))

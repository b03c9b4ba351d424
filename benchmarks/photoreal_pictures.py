"""Pictures for the docs: people who do not exist, before and after Disguise with photoreal faces.

    python benchmarks/photoreal_pictures.py

The originals are faces of the generator too, of other random numbers than those that Disguise draws from. Writes
docs/images/disguise-photoreal.jpg, whose upper row holds the originals.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from veilkit.methods.disguise.photoreal import PhotorealDisguise
from veilkit.rng import Randomness
from veilkit.synthetic.photoreal import PhotorealFaces
from veilkit.types import ImageBatch

SEED, NUMBER, SIDE, SHOWN = 2_024, 4, 1024, 768
OUT = Path("docs/images/disguise-photoreal.jpg")


def main() -> None:
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    faces = PhotorealFaces()
    styles = faces.random_styles(NUMBER, Randomness.from_seed(SEED).child("originals"))
    originals = torch.cat([faces.draw(style[None], SIDE) for style in styles])
    method = PhotorealDisguise.configured(None, {"second": "none"})
    batch = ImageBatch(originals, tuple(f"person {number}" for number in range(NUMBER)), (None,) * NUMBER)
    made = method.protect(batch, rng=Randomness.from_seed(SEED).child("release")).images
    assert made is not None
    rows = torch.cat([torch.cat(list(part), 2) for part in (originals, made)], 1)
    pixels = rows.permute(1, 2, 0).mul(255).round().clamp(0, 255).byte().numpy()
    OUT.parent.mkdir(exist_ok=True)
    image = Image.fromarray(np.ascontiguousarray(pixels)).resize(
        (NUMBER * SHOWN, 2 * SHOWN), Image.Resampling.LANCZOS
    )
    image.save(OUT, quality=80)
    print(f"{OUT}: {OUT.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()

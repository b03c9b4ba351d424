"""How fast generated people are made, and the picture of forty of them in the docs."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from claims import ROOT, record
from sheets import forty_people
from veilkit.synthetic.people import generate_people

IDENTITIES, IMAGES, CAMERAS, SEED = 400, 4, 2, 7
PICTURE = ROOT / "docs" / "images" / "people.png"
COMMAND = "python benchmarks/people.py"


def made_per_minute(folder: Path, workers: int = 2) -> float:
    start = time.monotonic()
    generate_people(folder, identities=IDENTITIES, images=IMAGES, cameras=CAMERAS, seed=SEED, workers=workers)
    return IDENTITIES * IMAGES / (time.monotonic() - start) * 60


def difference(picture: Path) -> float:
    """The mean difference, in grey levels of 255, between the picture in the docs and forty people drawn anew."""
    with Image.open(picture) as stored:
        shown = np.asarray(stored.convert("RGB"), dtype=np.float64)
    return float(np.abs(shown - forty_people()).mean())


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rate = made_per_minute(Path(folder, "people"))
    record(
        id="people-rate", claim="Generated people per minute", figure=round(rate), bar=">= 1000", unit="/min",
        data="generated people", scale=f"{IDENTITIES * IMAGES} pictures at 256x128, 2 workers", seed=SEED,
        command=COMMAND,
    )  # fmt: skip
    record(
        id="people-picture",
        claim="docs/images/people.png shows forty generated people: its difference from drawing them anew",
        figure=round(difference(PICTURE), 2), bar="== 0", unit="levels of 255", data="generated people",
        scale="40 people, 4 cameras", seed=1, command=COMMAND,
    )  # fmt: skip


if __name__ == "__main__":
    main()

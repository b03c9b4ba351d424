"""Protect a folder: generated people, one command's worth of Python, and what to keep secret.

python examples/protect_folder.py
"""

from __future__ import annotations

from pathlib import Path

import veilkit
from veilkit.synthetic.people import generate_people


def main(work: Path, people: int = 8) -> veilkit.Outcome:
    """Protect generated people in `work`, which must be new."""
    generate_people(work / "photos", identities=people, images=4, cameras=2, seed=0, height=96)

    outcome = veilkit.protect(work / "photos", work / "release", "pixelate", settings={"cell": 32})

    print(outcome)
    print("share:  ", outcome.destination)
    print("keep:   ", outcome.ledger.parent, "(the key, and which picture is which)")
    print("refused:", dict(outcome.refused) or "none")
    return outcome


if __name__ == "__main__":
    main(Path("runs/examples/protect_folder"))

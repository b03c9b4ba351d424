"""`veilkit demo`: the main job on generated people."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

Destination = Annotated[Path, typer.Argument(metavar="DST", help="A new or empty folder.")]
METHODS = ("pixelate", "patches", "pixelfade")
LEARN = ("pixelfade",)  # attacked by a network that learns to undo them, over `UPDATES` batches
UPDATES = 100
LEARNER = "recovery"
PEOPLE, HEIGHT = 32, 128


def demo(destination: Destination = Path("runs/demo")) -> None:
    """Generate people, protect them in three ways, draw them side by side, and audit the results.

    A network tries to recover the originals from the release of PixelFade; its attempts are in the report.
    """
    from veilkit.attacks import ATTACKS, Need
    from veilkit.audit.options import AuditOptions
    from veilkit.cli.audit import measure
    from veilkit.cli.generate import people
    from veilkit.pipeline.protect import protect
    from veilkit.pipeline.sheet import write_sheet

    originals = destination / "originals"
    people(originals, identities=PEOPLE, images=4, cameras=2, seed=0, height=HEIGHT)
    releases = {}
    for method in METHODS:
        release, key = destination / method, destination / f"{method}.private" / "key"
        outcome = protect(originals, release, method, key=key, workers=len(os.sched_getaffinity(0)))
        typer.echo(f"{outcome.protected} pictures protected with {method} in {release}; the key is {key}")
        releases[method] = (release, key)
    sheet = destination / "sheet.png"
    write_sheet(sheet, originals, releases)
    typer.echo(f"Originals and what became of them: {sheet}")
    quick = [name for name, attack in ATTACKS.items() if Need.BUDGET not in attack.needs]
    for method, (release, key) in releases.items():
        typer.echo(f"\nAttacking {method}:")
        learns = method in LEARN
        options = AuditOptions(
            originals,
            release,
            key=key,
            judge="histogram" if learns else "people",
            out=destination / f"{method}.audit",
            show_originals=True,
            learn=UPDATES if learns else None,
            attacks=[*quick, LEARNER] if learns else None,
        )
        measure(options)

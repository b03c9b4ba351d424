"""`veilkit demo`: the main job on generated people."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

Destination = Annotated[Path, typer.Argument(metavar="DST", help="A new or empty folder.")]
CONTROLS = ("pixelate", "patches")


def demo(destination: Destination = Path("runs/demo")) -> None:
    """Generate people, protect them with two controls, draw both side by side, and audit the results."""
    from veilkit.cli.audit import audit
    from veilkit.cli.generate import people
    from veilkit.pipeline.protect import protect
    from veilkit.pipeline.sheet import write_sheet

    originals = destination / "originals"
    people(originals, identities=48, images=4, cameras=2, seed=0)
    releases = {}
    for method in CONTROLS:
        release, key = destination / method, destination / f"{method}.private" / "key"
        outcome = protect(originals, release, method, key=key, workers=len(os.sched_getaffinity(0)))
        typer.echo(f"{outcome.protected} pictures protected with {method} in {release}; the key is {key}")
        releases[method] = (release, key)
    sheet = destination / "sheet.png"
    write_sheet(sheet, originals, releases)
    typer.echo(f"Originals and what became of them: {sheet}")
    for method, (release, key) in releases.items():
        typer.echo(f"\nAttacking {method}:")
        audit(originals, release, key=key, judge="people", out=destination / f"{method}.audit", show_originals=True)

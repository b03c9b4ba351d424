"""`veilkit demo`: the main job on people and faces who do not exist, ending in one page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

Destination = Annotated[Path, typer.Argument(metavar="DST", help="A new or empty folder.")]
PAGE = "demo.html"
METHODS = {"people": ("blur", "pixelate", "pixelfade"), "faces": ("faceblur", "pixelate")}
PEOPLE, SHOTS, HEIGHT = 32, 4, 128  # of generated pedestrians; as many others, for training, are not protected
FACES, SIDE = 14, 128


def demo(destination: Destination = Path("runs/demo")) -> None:
    """Generate people and faces, protect them in several ways, attack the results, and show all of it on one page."""
    from veilkit.audit.benchmark.options import BenchmarkOptions
    from veilkit.audit.benchmark.page import page_html
    from veilkit.audit.benchmark.run import run_benchmark
    from veilkit.cli import generate
    from veilkit.cli.benchmark import lines

    workers = len(os.sched_getaffinity(0))
    people, faces = destination / "originals" / "people", destination / "originals" / "faces"
    if not people.exists():
        generate.people(people, identities=2 * PEOPLE, images=SHOTS, cameras=2, seed=0, height=HEIGHT)
    generate.faces(faces, people=FACES, images=SHOTS, size=SIDE, seed=0)
    parts = []
    for title, kind, data in (("People, as cameras see them", "people", people), ("Faces", "faces", faces)):
        typer.echo(f"\n{title}:")
        done = run_benchmark(
            BenchmarkOptions(
                data, METHODS[kind], kind=kind, budget="none", out=destination / kind, show_originals=True,
                workers=workers,
            ),
            on_audit=lambda name: typer.echo(f"protected and attacked: {name}"),
        )  # fmt: skip
        for line in lines(done):
            typer.echo(line)
        parts.append((title, done))
    page = destination / PAGE
    page.write_text(page_html(parts, destination.resolve()), encoding="utf-8")
    typer.echo(f"\nThe page to look at: {page}")

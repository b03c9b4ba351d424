"""`veilkit generate`: people who do not exist."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Generate pictures of people who do not exist.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Generate pictures of people who do not exist."""


@app.command()
def people(
    destination: Annotated[Path, typer.Argument(metavar="DST", help="A new or empty folder.")],
    identities: Annotated[int, typer.Option(min=2, help="How many people; the first half is for training.")] = 40,
    images: Annotated[int, typer.Option(min=2, help="Pictures of each person, over all cameras.")] = 8,
    cameras: Annotated[int, typer.Option(min=1, help="How many cameras.")] = 2,
    seed: Annotated[int, typer.Option(help="The same seed gives the same people, byte for byte.")] = 0,
    height: Annotated[int, typer.Option(min=64, help="Of a picture; its width is half of that.")] = 256,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes.", show_default="one per core")] = None,
) -> None:
    """Generate pedestrians in the layout of Market-1501."""
    from veilkit.datasets.generated import generate_people
    from veilkit.progress import Progress

    with Progress(identities * images, "generating") as progress:
        reported = 0

        def advance(done: int, total: int) -> None:
            nonlocal reported
            progress.advance(done - reported)
            reported = done

        generate_people(
            destination,
            identities=identities,
            images=images,
            cameras=cameras,
            seed=seed,
            height=height,
            workers=workers or len(os.sched_getaffinity(0)),
            on_progress=advance,
        )
    typer.echo(f"{identities * images} pictures of {identities} people in {destination}")

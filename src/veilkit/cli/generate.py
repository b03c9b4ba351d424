"""`veilkit generate`: people and faces who do not exist."""

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
    identities: Annotated[
        int, typer.Option("--people", "--identities", min=2, help="How many people; the first half is for training.")
    ] = 40,
    images: Annotated[int, typer.Option(min=2, help="Pictures of each person, over all cameras.")] = 8,
    cameras: Annotated[int, typer.Option(min=1, help="How many cameras.")] = 2,
    seed: Annotated[int, typer.Option(help="The same seed gives the same people, byte for byte.")] = 0,
    height: Annotated[int, typer.Option(min=64, help="Of a picture; its width is half of that.")] = 256,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes.", show_default="one per core")] = None,
) -> None:
    """Generate pedestrians in the layout of Market-1501."""
    from veilkit.progress import Progress
    from veilkit.synthetic.people import generate_people

    with Progress(identities * images, "generating") as progress:
        generate_people(
            destination,
            identities=identities,
            images=images,
            cameras=cameras,
            seed=seed,
            height=height,
            workers=workers or len(os.sched_getaffinity(0)),
            on_progress=progress.reach,
        )
    typer.echo(f"{identities * images} pictures of {identities} people in {destination}")


@app.command()
def faces(
    destination: Annotated[
        Path, typer.Argument(metavar="DST", help="A new folder, or an unfinished one to go on with.")
    ],
    people: Annotated[int, typer.Option(min=1, help="How many people.")] = 40,
    images: Annotated[int, typer.Option(min=1, help="Pictures in which each person is.")] = 8,
    size: Annotated[int, typer.Option(min=64, help="Pixels of a portrait's side.")] = 128,
    seed: Annotated[int, typer.Option(help="The same seed gives the same faces, byte for byte.")] = 0,
    faces_per_picture: Annotated[int, typer.Option(min=1, help="More than one: group photographs.")] = 1,
    yaw: Annotated[float, typer.Option(help="Most degrees that a head turns aside.")] = 40,
    pitch: Annotated[float, typer.Option(help="Most degrees that a head looks up or down.")] = 20,
    roll: Annotated[float, typer.Option(help="Most degrees that a head leans.")] = 15,
    gaze_yaw: Annotated[float, typer.Option(help="Most degrees that eyes turn aside in the head.")] = 25,
    gaze_pitch: Annotated[float, typer.Option(help="Most degrees that eyes look up or down in the head.")] = 15,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes.", show_default="one per core")] = None,
) -> None:
    """Generate faces with their landmarks, gaze, expression and pose; a stopped run goes on."""
    from veilkit.progress import Progress
    from veilkit.synthetic.faces import Ranges, generate_faces

    pictures = images * -(-people // faces_per_picture)
    with Progress(pictures, "generating") as progress:
        generate_faces(
            destination,
            people=people,
            images=images,
            seed=seed,
            size=size,
            faces_per_picture=faces_per_picture,
            ranges=Ranges(yaw, pitch, roll, gaze_yaw, gaze_pitch),
            workers=workers or len(os.sched_getaffinity(0)),
            on_progress=progress.reach,
        )
    typer.echo(f"{pictures} pictures of {people} people in {destination}")

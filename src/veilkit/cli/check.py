"""`veilkit check`: what a folder holds, before anything is protected."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from veilkit.pipeline.check import Checked

REFUSED = 3  # the exit code where something cannot be read

Photos = Annotated[
    str, typer.Argument(metavar="PHOTOS", help="A folder, one file, a quoted pattern, or - for a list.")
]
Labels = Annotated[str, typer.Option(help="Who is in a picture: as for `veilkit protect`.")]
Faces = Annotated[int, typer.Option("--faces", min=0, help="Look for faces in this many pictures, spread evenly.")]
Workers = Annotated[int | None, typer.Option(min=0, help="Worker processes.", show_default="one per core")]
Names = Annotated[bool, typer.Option("--names", help="Also name what cannot be read.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def check(
    photos: Photos,
    labels: Labels = "auto",
    faces: Faces = 50,
    workers: Workers = None,
    names: Names = False,
    as_json: AsJson = False,
) -> None:
    """Look at pictures and write nothing: how many can be read, who is in them, and which methods fit.

    Exit codes: 0 all can be read, 3 some cannot (with the reasons), 2 an error.
    """
    import os

    from veilkit.pipeline.options import source_of
    from veilkit.pipeline.sources import Source

    source = source_of(photos)
    Source.of(source)  # a wrong path is told before anything heavy is imported
    from veilkit.pipeline.check import check_source

    count = len(os.sched_getaffinity(0)) if workers is None else workers
    found = check_source(source, labels=labels, look_at=faces, workers=count)
    if as_json:
        typer.echo(json.dumps(found.as_json(names=names), indent=2))
    else:
        typer.echo(summary(found))
        tell_refused(found, names=names)
        typer.echo("Methods that fit:")
        for each in found.methods:
            typer.echo(f"  {each.name:<12} {each.summary}" + (f"; needs {each.needs}" if each.needs else ""))
    if found.refused:
        raise typer.Exit(REFUSED)


def summary(found: Checked) -> str:
    """The answer in a few lines."""
    lines = [
        f"{found.readable} of {found.pictures} pictures can be protected" + f" ({found.kind})" * bool(found.kind)
    ]
    if found.looked:
        of = "" if found.looked == found.readable else f" of {found.readable}"
        lines.append(
            f"Faces in {found.looked}{of} pictures: {found.faces['found']} found, {found.faces['doubtful']} doubtful "
            f"regions, {found.without} pictures without any"
        )
    elif found.no_faces:
        lines.append(f"Faces were not looked for: {found.no_faces}")
    if found.people:
        lines.append(f"People by labels: {found.people}")
    if found.others:
        lines.append(f"{found.others} other files, which are passed over")
    return "\n".join(lines)


def tell_refused(found: Checked, *, names: bool) -> None:
    """What cannot be read, and why."""
    if not found.refused:
        return
    typer.echo(f"{sum(found.refused.values())} cannot be read:", err=True)
    reasons = found.listed if names else ((reason, count) for reason, count in found.refused.items())
    full = {reason.partition(":")[0]: reason for _, reason in found.listed}
    for each in reasons:
        typer.echo(f"  {each[0]}: {each[1]}" if names else f"  {each[1]:>6}  {full[str(each[0])]}", err=True)

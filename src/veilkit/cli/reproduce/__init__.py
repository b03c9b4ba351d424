"""`veilkit reproduce`: a paper's tables in small."""

from __future__ import annotations

import typer

from veilkit.cli.reproduce.every import every
from veilkit.cli.reproduce.faces import disguise, fro_faces
from veilkit.cli.reproduce.people import fro, pepr, pixelfade, privacyreid

app = typer.Typer(help="Reproduce a paper's tables in small.", no_args_is_help=True)
app.command("all")(every)
for study in (fro, pixelfade, privacyreid, pepr, disguise, fro_faces):
    app.command()(study)

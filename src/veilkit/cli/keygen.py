"""`veilkit keygen`: a key pair for sealed originals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path, typer.Argument(metavar="OUT", help="The identity file to write; never over another.")]


def keygen(out: Out) -> None:
    """Make an age key: the secret identity goes to OUT, the public recipient to standard output.

    The recipient is for `veilkit protect --seal-to`; the identity, for `veilkit recover --identity`.
    """
    from veilkit.pipeline.sealing.age import write_identity

    typer.echo(write_identity(out))
    typer.echo(f"The secret key is {out}. Keep a copy in another place: without it what is sealed is lost.", err=True)

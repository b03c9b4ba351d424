"""`veilkit recover` and `veilkit keygen`: originals for those who may have them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from veilkit.cli.bound import bound
from veilkit.pipeline.options import RecoverOptions


@bound(RecoverOptions)
def recover(given: dict[str, Any]) -> None:
    """Restore originals: sealed ones byte for byte (--identity), or nearly, by a learned decoder (--model).

    All are checked before the first is written: where one is missing, altered or not of its picture, none is. The
    same command goes on after a stop.
    """
    from veilkit.pipeline.recovery import restore

    options = RecoverOptions(**given)
    done = restore(options)
    there = f", {done.already_there} were already there" if done.already_there else ""
    typer.echo(f"{done.restored} originals restored in {done.destination}{there}")
    if options.model is not None:
        typer.echo("They are what the decoder makes of the release, and not the originals byte for byte.")
    typer.echo(f"Noted in {done.log}")


Out = Annotated[Path, typer.Argument(metavar="OUT", help="The identity file to write; never over another.")]


def keygen(out: Out) -> None:
    """Make an age key: the secret identity goes to OUT, the public recipient to standard output.

    The recipient is for `veilkit protect --seal-to`; the identity, for `veilkit recover --identity`.
    """
    from veilkit.pipeline.sealing.age import write_identity

    typer.echo(write_identity(out))
    typer.echo(f"The secret key is {out}. Keep a copy in another place: without it what is sealed is lost.", err=True)

"""`veilkit recover`: the originals of a release, for those who may have them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Protected = Annotated[Path, typer.Argument(metavar="PROTECTED", help="The release, as `veilkit protect` wrote it.")]
Destination = Annotated[Path, typer.Argument(metavar="DST", help="Folder for the originals; nothing is overwritten.")]
IdentityFile = Annotated[
    Path | None,
    typer.Option("--identity", metavar="KEYFILE", help="Secret key of a recipient: see `veilkit keygen`."),
]
Model = Annotated[
    Path | None,
    typer.Option(metavar="DECODER", help="In place of a key: the decoder that `veilkit fit` wrote beside the model."),
]
Sealed = Annotated[Path | None, typer.Option(help="Folder of the sealed originals.", show_default="PROTECTED.sealed")]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Restore these only: a name in the release or, where its private folder is at hand, an original's path "
        "or a pattern such as 'patient 003/*'; may be repeated.",
    ),
]
Log = Annotated[
    Path | None, typer.Option(help="Where every access is noted, as JSON lines.", show_default="DST.access.jsonl")
]
KeyFile = Annotated[
    Path | None, typer.Option(help="The release's key: refuse sealed files that were not made under it.")
]


def recover(
    protected: Protected,
    destination: Destination,
    identity: IdentityFile = None,
    model: Model = None,
    sealed: Sealed = None,
    only: Only = None,
    log: Log = None,
    key: KeyFile = None,
) -> None:
    """Restore originals: sealed ones byte for byte (--identity), or nearly, by a learned decoder (--model).

    All are checked before the first is written: where one is missing, altered or not of its picture, none is. The
    same command goes on after a stop.
    """
    from veilkit.pipeline.recovering import recover as run

    done = run(
        protected, destination, identity=identity, model=model, sealed=sealed, only=only or (), log=log, key=key
    )
    there = f", {done.already_there} were already there" if done.already_there else ""
    typer.echo(f"{done.restored} originals restored in {done.destination}{there}")
    if model is not None:
        typer.echo("They are what the decoder makes of the release, and not the originals byte for byte.")
    typer.echo(f"Noted in {done.log}")

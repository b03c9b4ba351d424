"""`veilkit protect`: a folder of pictures to a protected folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from veilkit.cli.bound import bound
from veilkit.pipeline.options import ProtectOptions

REFUSED = 3  # the exit code of a run that did all it could and refused some pictures


Preview = Annotated[
    int | None,
    typer.Option("--preview", min=1, metavar="N", help="Protect N pictures, show them on a private page, and stop."),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Read everything, say what would be protected or refused, and write nothing."),
]


@bound(ProtectOptions)
def protect(given: dict[str, Any], preview: Preview = None, dry_run: DryRun = False) -> None:
    """Protect every picture of a folder. A run that was stopped goes on when the same command is given again.

    Exit codes: 0 all pictures protected, 3 some were refused (with the reasons), 2 an error, 130 interrupted.
    A link to a folder, or a file that looks like a picture or a video and cannot be read, counts as refused.
    """
    options = ProtectOptions(**given).check()
    if options.processes:
        from veilkit.pipeline.engines.forkserver import start_early

        start_early()
    _warn(options)
    if preview is not None:
        from veilkit.pipeline.check import preview as preview_page

        typer.echo(f"Nothing is released yet. Look at {preview_page(options, preview)}")
        return
    if dry_run:
        from veilkit.cli.check import summary, tell_refused
        from veilkit.pipeline.check import dry_run as read_all

        found = read_all(options)
        typer.echo(f"Nothing was written. {summary(found)}")
        tell_refused(found, names=False)
        if found.refused:
            raise typer.Exit(REFUSED)
        return
    from veilkit.pipeline.protect import make_release

    outcome = make_release(options)
    refused = sum(outcome.refused.values())
    done = "synthetic pictures made" if outcome.synthetic else "pictures protected"
    typer.echo(f"{outcome.protected} {done} in {outcome.destination}")
    if outcome.missed:
        typer.echo(
            f"{outcome.missed} of them missed the limit on their features: they are protected all the same, but "
            "their expert may match them less well"
        )
    if outcome.faces:
        typer.echo(_faces(outcome.faces, outcome.parts))
        typer.echo(f"{outcome.faces_list} counts them for each picture")
    if outcome.review:
        typer.echo(f"Look through them, doubtful ones first: {outcome.review}")
    if outcome.told:
        typer.echo(f"Pictures that you should look at; {outcome.told_list} names them:")
        for text, count in outcome.told.items():
            typer.echo(f"  {count:>6}  {text}")
    if outcome.new_key:
        typer.echo(f"A new key was made: {outcome.key_file}. Keep it secret, and apart from the release.")
    if outcome.sealed:
        typer.echo(
            f"Their originals are sealed in {outcome.sealed}; {_keys(outcome.recipients)} open them (veilkit recover)"
        )
    if outcome.passed_over:
        why = (
            "they show nobody whom the model knows" if outcome.synthetic else "their names are not those of pictures"
        )
        typer.echo(f"{outcome.passed_over} other files passed over: {why}")
    if outcome.gone:
        typer.echo(f"{outcome.gone} pictures of the release are no longer in the source; they were kept")
    if refused:
        typer.echo(f"{refused} pictures refused; {outcome.refusals} names them:", err=True)
        for reason, count in outcome.refused.items():
            typer.echo(f"  {count:>6}  {reason}", err=True)
        raise typer.Exit(REFUSED)


def _warn(options: ProtectOptions) -> None:
    from veilkit.methods import METHODS

    if options.kept_names:
        typer.echo("Warning: the release keeps the pictures' own names; names often tell who somebody is.", err=True)
    if options.seed is not None:
        typer.echo("Warning: with a seed instead of a key, anyone can reproduce noise, masks and names.", err=True)
    if isinstance(options.method, str) and options.model is None and (terms := METHODS[options.method].terms):
        typer.echo(f"Note: {terms}", err=True)
    if isinstance(options.method, str) and (attack := METHODS[options.method].undone_by):
        typer.echo(
            f"Warning: {options.method} is for comparison only; the attack {attack} undoes it without the key.",
            err=True,
        )


def _faces(counts: Mapping[str, int], parts: str) -> str:
    """What became of faces or people, and what nobody can know of them."""
    missed = "Somebody whom" if parts == "people" else "A face that"
    spared = f", {counts['spared']} left as they are, as asked" if counts.get("spared") else ""
    return (
        f"{parts.capitalize()}: {counts['found']} found, {counts['changed']} of them changed and "
        f"{counts['hidden']} hidden{spared}; {counts['doubtful']} doubtful regions hidden as well. "
        f"{missed} no detector saw is unchanged: look through the release before you give it away."
    )


def _keys(count: int) -> str:
    return "one key can" if count == 1 else f"any one of {count} keys can"

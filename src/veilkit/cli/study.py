"""`veilkit study`: whether people recognise anybody, asked by one offline page."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Ask people whom they recognise: make an offline page, score the answers.", no_args_is_help=True
)


class Kinds(StrEnum):
    """Which questions a study asks."""

    pair = "pair"
    choice = "choice"
    both = "both"


Originals = Annotated[Path, typer.Argument(metavar="ORIGINALS", help="Folder of the original pictures.")]
Protected = Annotated[
    list[Path],
    typer.Argument(metavar="PROTECTED", help="Folders of protected pictures, one or several to compare."),
]
Destination = Annotated[
    Path, typer.Argument(metavar="DST", help="Folder for study.html; the key goes to DST.private.")
]
KeyFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--key",
        help="Key of the releases, where names are pseudonyms; repeat it for one key each.",
        show_default="PROTECTED.private/key",
    ),
]
Labels = Annotated[
    str, typer.Option(help="Who is in an original: auto, none, folder, market, pattern:REGEX or csv:FILE.")
]
Asked = Annotated[
    Kinds,
    typer.Option(
        "--kind", help="pair: same person or not; choice: which of these is the person; both: half of each."
    ),
]
Questions = Annotated[int, typer.Option(min=2, help="Questions for each protected folder, and for the control.")]
Choices = Annotated[int, typer.Option(min=2, max=9, help="Originals of a choice, one of them right.")]
Checks = Annotated[int, typer.Option(min=0, help="Attention checks: an original beside itself, or somebody else.")]
Control = Annotated[
    bool, typer.Option("--control/--no-control", help="Ask about unprotected pictures too: what is possible at best.")
]
Participants = Annotated[
    int | None,
    typer.Option(min=1, help="Draw so many participant codes; nobody else is scored.", show_default="anybody"),
]
Seed = Annotated[
    int | None,
    typer.Option(help="Draw the same study again. Who knows it can tell the answers.", show_default="secret"),
]
Answers = Annotated[list[Path], typer.Argument(metavar="ANSWERS", help="Files that participants saved.")]
StudyKeyFile = Annotated[Path, typer.Option("--key", help="The study's key: DST.private/key.json.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")]
DrawSeed = Annotated[int, typer.Option(help="Seed of the bootstrap's draws.")]


@app.command()
def make(
    originals: Originals,
    protected: Protected,
    destination: Destination,
    key: KeyFiles = None,
    labels: Labels = "auto",
    kind: Asked = Kinds.both,
    questions: Questions = 20,
    choices: Choices = 4,
    checks: Checks = 6,
    control: Control = True,
    participants: Participants = None,
    seed: Seed = None,
) -> None:
    """Write a blinded test as one offline page, and the key to its answers apart from it.

    Which pictures belong together is found as `veilkit audit` finds it. The page holds no names, paths, methods or
    answers; it does hold originals.
    """
    from veilkit.perception.make import LARGE, make_study
    from veilkit.perception.plan import Design

    kinds = ("pair", "choice") if kind is Kinds.both else (kind.value,)
    made = make_study(
        originals,
        protected,
        destination,
        design=Design(kinds=kinds, questions=questions, choices=choices, checks=checks),  # type: ignore[arg-type]
        keys=key or (),
        labels=labels,
        control=control,
        participants=participants,
        seed=seed,
    )
    for note in made.notes:
        typer.echo(f"Note: {note}")
    typer.echo(f"{made.page}: {made.questions} questions, {made.checks} attention checks, {made.size / 1e6:.1f} MB")
    if made.size > LARGE:
        typer.echo(
            f"Warning: more than {LARGE / 1e6:.0f} MB is much to mail and opens slowly: ask fewer --questions",
            err=True,
        )
    typer.echo("The page shows originals: it is as private as they are. Give it to participants only.")
    typer.echo(
        f"Keep {made.key}: it holds the answers, and `veilkit study score` needs it. Show it to no participant."
    )
    if made.codes is not None:
        typer.echo(f"Participant codes, one for each: {made.codes}")
    if seed is not None:
        typer.echo("The study was drawn from a seed: who knows it and has the pictures can tell the answers.")


@app.command()
def score(answers: Answers, key: StudyKeyFile, json: Json = False, draw_seed: DrawSeed = 0) -> None:
    """Accuracy with intervals, sensitivity and agreement, from the files that participants saved.

    Answers to another study, twice by one participant, incomplete ones, and files that the page could not have saved
    are refused.
    Exit code: 0 scored, 2 an error.
    """
    from veilkit.perception.score import score_study
    from veilkit.perception.scores import study_table

    scores = score_study(answers, key, draw_seed=draw_seed)
    typer.echo(scores.to_json() if json else study_table(scores), nl=False)

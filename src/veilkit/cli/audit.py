"""`veilkit audit`: what protected pictures give away, and what they are still good for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Originals = Annotated[Path, typer.Argument(metavar="ORIGINALS", help="Folder of the original pictures.")]
Protected = Annotated[
    Path, typer.Argument(metavar="PROTECTED", help="Folder of protected pictures, made by any tool.")
]
KeyFile = Annotated[
    Path | None,
    typer.Option(help="Key of the release, where its names are pseudonyms.", show_default="PROTECTED.private/key"),
]
Seed = Annotated[int | None, typer.Option(help="The public seed that the release was made with, instead of a key.")]
ExpertName = Annotated[
    str | None,
    typer.Option(help="The authorised recogniser: a name or a .safetensors file.", show_default="people"),
]
JudgeName = Annotated[
    str | None,
    typer.Option(
        help="An independent recogniser to attack with.", show_default="the built-in one that is not the expert"
    ),
]
Labels = Annotated[
    str, typer.Option(help="Who is in an original: auto, none, folder, market, pattern:REGEX or csv:FILE.")
]
Unseen = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Synthetic release: other pictures of the training people, not trained on, labelled alike.",
    ),
]
HeldOut = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Synthetic release: pictures of other people.",
        show_default="people of ORIGINALS without a class",
    ),
]
Student = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Synthetic release: a student trained on it (.safetensors).")
]
Decoder = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The release's secret decoder, as an attacker has it who stole it."),
]
Out = Annotated[
    Path | None, typer.Option(help="Folder for audit.json, report.html and audit.md.", show_default="PROTECTED.audit")
]
ShowOriginals = Annotated[
    bool, typer.Option("--show-originals", help="Show originals beside protected pictures in the report.")
]
Learn = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="UPDATES",
        help="Let attackers learn too: recovery networks, feature inversion, a retrained recogniser, silhouettes. So "
        "many updates each, thrice with their gates; 2000 take about an hour each on a CPU core.",
    ),
]
Attacks = Annotated[
    list[str] | None,
    typer.Option("--attack", metavar="NAME", help="Only this attack (`veilkit attacks list`); may be repeated."),
]
DrawSeed = Annotated[int, typer.Option(help="Seed of the bootstrap's draws and the gates' noise.")]
ThresholdsFile = Annotated[
    Path | None,
    typer.Option(
        "--thresholds",
        metavar="TOML",
        help="From which share of the way from chance to certainty a leak counts as how bad.",
        show_default="serious 0.1, broken 0.5, ruled_out 0.05",
    ),
]


def audit(
    originals: Originals,
    protected: Protected,
    key: KeyFile = None,
    seed: Seed = None,
    expert: ExpertName = None,
    judge: JudgeName = None,
    labels: Labels = "auto",
    unseen: Unseen = None,
    held_out: HeldOut = None,
    student: Student = None,
    decoder: Decoder = None,
    out: Out = None,
    show_originals: ShowOriginals = False,
    learn: Learn = None,
    attacks: Attacks = None,
    draw_seed: DrawSeed = 0,
    thresholds: ThresholdsFile = None,
) -> None:
    """Attack protected pictures and measure what is left, against their originals.

    Pairs are found through the key, or by paths or file names. A release of synthetic pictures, which belong to no
    original (fro), is asked who and which pictures were trained on, and whom its classes stand for.
    A stopped audit goes on with the same command. `veilkit audit compare` puts several audits side by side.
    Exit code: 0 measured (the report says what could not be), 2 nothing can be measured or an error, 130 interrupted.
    """
    from veilkit.audit.run import REPORT, destination, run_audit
    from veilkit.audit.telling import told

    result = run_audit(
        originals,
        protected,
        key=key,
        seed=seed,
        expert=expert,
        judge=judge,
        labels=labels,
        unseen=unseen,
        held_out=held_out,
        student=student,
        decoder=decoder,
        out=out,
        show_originals=show_originals,
        learn=learn,
        attacks=attacks,
        draw_seed=draw_seed,
        thresholds=thresholds,
    )
    for line in told(result):
        typer.echo(line)
    typer.echo(f"Report: {destination(originals, protected, out) / REPORT}")

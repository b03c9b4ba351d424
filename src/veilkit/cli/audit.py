"""`veilkit audit`: what protected pictures give away, and what they are still good for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from click import format_filename as shown

NOT_OF_THESE = 3  # the exit code of an audit whose originals are not those of the release, or which found no pairs

Originals = Annotated[
    Path | None, typer.Argument(metavar="ORIGINALS", help="Folder of the original pictures.", show_default=False)
]
Protected = Annotated[
    Path | None,
    typer.Argument(metavar="PROTECTED", help="Folder of protected pictures, made by any tool.", show_default=False),
]
Spec = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A matrix of audits (TOML, see docs/audit.md) in place of the two folders and most options.",
    ),
]
Boxes = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="CSV path,x,y,w,h,identity: people in whole pictures, each audited as a picture."
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="TIME",
        help="About so long (90s, 10m, 2h) in place of --learn; chooses people and updates.",
    ),
]
Workers = Annotated[int, typer.Option(min=1, help="Processes that compute attacks; the result is the same.")]
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
Model = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="The model that the release was made with, for attackers who run the protection."
    ),
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
Start = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Weights that the attacker who trains a recogniser starts from: a backbone or a Re-ID network "
        "(.safetensors).",
        show_default="scratch",
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
    originals: Originals = None,
    protected: Protected = None,
    spec: Spec = None,
    key: KeyFile = None,
    seed: Seed = None,
    expert: ExpertName = None,
    judge: JudgeName = None,
    labels: Labels = "auto",
    unseen: Unseen = None,
    held_out: HeldOut = None,
    student: Student = None,
    decoder: Decoder = None,
    model: Model = None,
    out: Out = None,
    show_originals: ShowOriginals = False,
    learn: Learn = None,
    budget: Time = None,
    start: Start = None,
    attacks: Attacks = None,
    boxes: Boxes = None,
    workers: Workers = 1,
    draw_seed: DrawSeed = 0,
    thresholds: ThresholdsFile = None,
) -> None:
    """Attack protected pictures and measure what is left, against their originals.

    Pairs are found through the key, or by paths or file names. A release of synthetic pictures, which belong to no
    original (fro), is asked who and which pictures were trained on, and whom its classes stand for.
    A stopped audit goes on with the same command: each attack is a cell of its own, kept below OUT/cells.
    `veilkit audit compare` puts several audits side by side.
    Exit code: 0 measured (the report says what could not be), 3 measured, but the originals are not those of the
    release or none could be paired, 2 nothing can be measured or an error, 130 interrupted.
    """
    from veilkit.audit.alarms.pairs import not_of_these
    from veilkit.audit.report.terminal import lines
    from veilkit.audit.run import REPORT, destination, run_audit
    from veilkit.errors import UsageError

    if spec is not None:
        given = {
            "ORIGINALS": originals, "--key": key, "--seed": seed, "--expert": expert, "--judge": judge,
            "--unseen": unseen, "--held-out": held_out, "--student": student, "--decoder": decoder, "--model": model,
            "--learn": learn, "--budget": budget, "--start": start, "--attack": attacks, "--boxes": boxes,
            "--labels": None if labels == "auto" else labels, "--draw-seed": draw_seed or None,
        }  # fmt: skip
        if extra := [name for name, value in given.items() if value is not None]:
            raise UsageError(f"a spec says all that: leave out {', '.join(extra)}, or write it into the spec")
        alone = {"--show-originals": show_originals or None, "--thresholds": thresholds}
        if extra := [name for name, value in alone.items() if value is not None]:
            raise UsageError(
                f"audits of a spec are made without {' and '.join(extra)}: leave that out. `veilkit audit compare` "
                "grades finished audits by other thresholds"
            )
        _matrix(spec, out, workers)
        return
    if originals is None or protected is None:
        raise UsageError("expected two folders, ORIGINALS and PROTECTED, or a spec (--spec FILE)")
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
        model=model,
        out=out,
        show_originals=show_originals,
        learn=learn,
        budget=budget,
        start=start,
        attacks=attacks,
        boxes=boxes,
        workers=workers,
        draw_seed=draw_seed,
        thresholds=thresholds,
    )
    for line in lines(result):
        typer.echo(line)
    target = destination(originals, protected, out)
    typer.echo(f"Report: {shown(target / REPORT)}")
    typer.echo("Keep that folder private: its folder cache, which can be deleted, holds features of the originals.")
    if not_of_these(result):
        raise typer.Exit(NOT_OF_THESE)


def _matrix(file: Path, out: Path | None, workers: int) -> None:
    """Run a spec and tell each audit in a few lines."""
    from veilkit.audit.alarms.pairs import not_of_these
    from veilkit.audit.inputs.spec import read_spec
    from veilkit.audit.matrix import MATRIX, run_matrix
    from veilkit.audit.verdicts.wording import at_least, unproven
    from veilkit.errors import DataError

    target = out or file.with_suffix(".audit")
    done = run_matrix(read_spec(file), target, workers=workers)
    for each in done:
        if each.result is None:
            typer.echo(f"{each.combination.name}: {each.why}")
            continue
        typer.echo(f"{each.combination.name}:")
        for alarm in each.result.alarms:
            typer.echo(f"  ALARM ({alarm.name}): {alarm.text}")
        for evidence in each.result.attacks:
            if evidence.applicable:
                first, invalid = evidence.scores[0], " INVALID" if unproven(evidence) else ""
                least = "at least " if at_least(evidence) else ""
                typer.echo(
                    f"  {evidence.attack} ({evidence.level}): {first.metric} {least}{first.value:.4g}{invalid}"
                )
    typer.echo(f"Matrix: {shown(target / MATRIX)}")
    if any(each.result is not None and not_of_these(each.result) for each in done):
        raise typer.Exit(NOT_OF_THESE)
    if all(each.result is None for each in done):
        raise DataError("nothing could be measured in any of the audits")

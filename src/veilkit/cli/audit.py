"""`veilkit audit`: what protected pictures give away, and what they are still good for; and audits side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from click import format_filename as shown

from veilkit.audit.options import AuditOptions
from veilkit.cli.bound import bound, flags

NOT_OF_THESE = 3  # the exit code of an audit whose originals are not those of the release, or which found no pairs
FAILED = 4  # the exit code of an audit that found as much as --fail-on allows not
BUDGET = "3m"  # for a first answer, where nothing else was asked for
_BESIDE_A_SPEC = ("out", "workers")
_OWN_BUDGET = ("budget", "learn", "attacks")

Spec = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A matrix of audits (TOML, see docs/audit.md) in place of the two folders and most options.",
    ),
]


Told = Literal["table", "verbose", "quiet", "json"]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print everything in words, instead of the table.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print alarms only.")]
Json = Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON, and nothing else.")]
FailOn = Annotated[
    Literal["slight", "serious", "broken"] | None,
    typer.Option(
        help="Exit with code 4 if a leak is this bad or worse, on any alarm, and if there is no verdict at all."
    ),
]


@bound(AuditOptions, optional=True)
def audit(
    given: dict[str, Any],
    spec: Spec = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    json: Json = False,
    fail_on: FailOn = None,
) -> None:
    """Attack protected pictures and measure what is left, against their originals.

    Pairs are found through the key, or by paths or file names. A release of synthetic pictures, which belong to no
    original (fro), is attacked for whom it was trained on, and for whom its classes stand for.
    A stopped audit goes on with the same command: each attack is a cell of its own, kept below OUT/cells.
    `veilkit audit compare` puts several audits side by side.
    Exit code: 0 measured (the report says what could not be), 3 measured, but the originals are not those of the
    release or none could be paired, 4 measured, but --fail-on does not let it pass, 2 nothing can be measured or an
    error, 130 interrupted.
    """
    from veilkit.errors import UsageError

    if verbose + quiet + json > 1:
        raise UsageError("--verbose, --quiet and --json exclude each other: give one of them")
    if spec is not None:
        if verbose or quiet or json or fail_on is not None:
            raise UsageError("a spec's audits are told in short: leave out --verbose, --quiet, --json and --fail-on")
        _only(spec, given)
        return
    if not {"originals", "protected"} <= given.keys():
        raise UsageError("expected two folders, ORIGINALS and PROTECTED, or a spec (--spec FILE)")
    if not given.keys() & set(_OWN_BUDGET):
        given = {**given, "budget": BUDGET}
    told: Told = "verbose" if verbose else "quiet" if quiet else "json" if json else "table"
    measure(AuditOptions(**given), told=told, fail_on=fail_on)


def measure(options: AuditOptions, *, told: Told = "table", fail_on: FailOn = None) -> None:
    """Make one audit and print its findings."""
    options.check()  # before anything heavy is imported
    from veilkit.audit.alarms.pairs import not_of_these
    from veilkit.audit.report import terminal
    from veilkit.audit.run import REPORT, make_audit

    result = make_audit(options)
    code = NOT_OF_THESE if not_of_these(result) else FAILED if fail_on and terminal.fails(result, fail_on) else 0
    report = shown(options.destination / REPORT)
    if told == "json":
        typer.echo(terminal.as_json_text({**terminal.as_json(result), "exit code": code, "report": report}))
    elif told == "quiet":
        for alarm in result.alarms:
            typer.echo(f"ALARM ({alarm.name}): {alarm.text}")
    else:
        for line in terminal.lines(result) if told == "verbose" else terminal.short(result):
            typer.echo(line)
        typer.echo(f"Report: {report} (keep that folder private: its cache holds features of the originals)")
    if code:
        raise typer.Exit(code)


def _only(spec: Path, given: dict[str, Any]) -> None:
    """Run the audits of a spec, which says itself what an audit's options say."""
    from veilkit.errors import UsageError

    alone = {name: value for name, value in given.items() if name in ("show_originals", "thresholds")}
    more = {name: value for name, value in given.items() if name not in (*alone, *_BESIDE_A_SPEC)}
    if extra := flags(AuditOptions, more):
        raise UsageError(
            f"a spec holds these settings itself: leave out {', '.join(extra)}, or write it into the spec"
        )
    if extra := flags(AuditOptions, alone):
        raise UsageError(
            f"audits of a spec are made without {' and '.join(extra)}: leave that out. `veilkit audit compare` "
            "grades finished audits by other thresholds"
        )
    _matrix(spec, given.get("out"), given.get("workers", 1))


def _matrix(file: Path, out: Path | None, workers: int) -> None:
    """Run a spec and print each audit in a few lines."""
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


Audits = Annotated[
    list[Path], typer.Argument(metavar="AUDIT", help="Folders that `veilkit audit` wrote, or their audit.json.")
]
Out = Annotated[Path, typer.Option(help="Folder for compare.html, compare.json and compare.md.")]
ThresholdsFile = Annotated[
    Path | None,
    typer.Option(
        "--thresholds",
        metavar="TOML",
        help="Grade all audits anew: from which share of the way from chance to certainty a leak counts as how bad.",
        show_default="those of the first audit",
    ),
]


def compare(audits: Audits, out: Out = Path("compare"), thresholds: ThresholdsFile = None) -> None:
    """Compare audits: what each release keeps and leaks at each level, and which no other beats.

    The first audit is what the others are compared with, search by search where they have the same originals. Audits
    of other originals, of other searches, or by another judge are listed, and not compared; experts may differ.
    """
    from veilkit.audit.report.compare_report import PAGE, change, write_comparison

    found = write_comparison(audits, out, thresholds=thresholds)
    for each in found.audits:
        kept = "utility not measured" if each.utility is None else f"utility {100 * each.utility.score.value:.1f} %"
        if "utility" in each.differences:
            kept += f", {change(each.differences['utility'])} points"
        levels = ", ".join(f"{verdict.level} {verdict.grade}" for verdict in each.verdicts)
        typer.echo(f"{each.label}. {each.name} ({each.method}): {kept}; {levels}")
    names = {each.label: each.name for each in found.audits}
    for level in found.levels:
        if level.front:
            typer.echo(f"Not beaten at {level.level}: {', '.join(names[label] for label in level.front)}")
    for note in found.notes:
        typer.echo(f"Note: {note}")
    typer.echo(f"Report: {out / PAGE}")

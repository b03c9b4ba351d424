"""`veilkit gallery`: a protected feature gallery, made, filled, searched, accounted for and exported."""

from __future__ import annotations

import json
import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from veilkit.cli.gallery_pictures import Outcome
    from veilkit.gallery import Gallery, Hit, Statement

app = typer.Typer(
    help="A gallery of protected features: create, add, search, budget, export, reconcile.", no_args_is_help=True
)

REFUSED = 3  # the exit code of an add that did all it could and refused some pictures


class Per(StrEnum):
    """What a budget belongs to."""

    record = "record"
    person = "person"


Folder = Annotated[Path, typer.Argument(metavar="GALLERY", help="Folder of the gallery.")]
KeyFile = Annotated[Path | None, typer.Option(help="The gallery's key file.", show_default="GALLERY.private/key")]
ExpertName = Annotated[
    str | None,
    typer.Option("--expert", metavar="NAME|FILE", help="The recogniser of pictures: see `veilkit experts list`."),
]
Mechanism = Annotated[str, typer.Option(help="How vectors are released: privunit, gaussian or laplace.")]
Epsilon = Annotated[float, typer.Option(help="What each released vector costs.")]
Delta = Annotated[float, typer.Option(help="Of each released vector, for gaussian.")]
BudgetEpsilon = Annotated[
    float | None, typer.Option(help="The most that a record or person may lose.", show_default="that of one release")
]
BudgetDelta = Annotated[float | None, typer.Option(help="The budget's delta.", show_default="that of one release")]
PerChoice = Annotated[Per, typer.Option(help="What the budget belongs to: each record, or all of a person's.")]
Dimension = Annotated[int | None, typer.Option(help="Length of the features, where no expert makes them.")]
Url = Annotated[
    str | None, typer.Option(help="A Milvus server, such as http://localhost:19530.", show_default="a file")
]
Collection = Annotated[str | None, typer.Option(help="Its name on the server.", show_default="a random one")]
Source = Annotated[
    Path | None,
    typer.Argument(metavar="[SOURCE]", help="A features file (.npz) or a folder of pictures; without, resume only."),
]
Added = Annotated[
    Path | None,
    typer.Argument(
        metavar="[SOURCE]",
        help="What was added since that copy, as it was added: a features file (.npz) or a folder of pictures.",
    ),
]
Labels = Annotated[
    str, typer.Option(help="Who is in a picture, which camera: auto, none, folder, market, pattern:REGEX, csv:FILE.")
]
Times = Annotated[str, typer.Option(help="When a picture was taken: none, pattern:REGEX with (?P<time>), csv:FILE.")]
MaxPixels = Annotated[int, typer.Option(min=1, help="Larger pictures are refused.")]
Query = Annotated[
    Path, typer.Argument(metavar="QUERY", help="A picture, a folder of them, or a features file (.npz).")
]
Limit = Annotated[int, typer.Option("--top", min=1, help="How many answers to each query.")]
Cameras = Annotated[list[str] | None, typer.Option("--camera", help="Only of this camera; may be repeated.")]
Since = Annotated[str | None, typer.Option(help="Only from this time on: ISO 8601 or seconds since 1970.")]
Until = Annotated[str | None, typer.Option(help="Only before this time.")]
OwnersKey = Annotated[
    Path | None, typer.Option("--key", help="The gallery's key: for its owner, who sees the records' names.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Out = Annotated[Path, typer.Argument(metavar="DST", help="New folder for features.npz and manifest.json.")]


@app.command()
def create(
    gallery: Folder,
    mechanism: Mechanism,
    epsilon: Epsilon,
    per: PerChoice,
    delta: Delta = 0.0,
    budget_epsilon: BudgetEpsilon = None,
    budget_delta: BudgetDelta = None,
    expert: ExpertName = None,
    dimension: Dimension = None,
    url: Url = None,
    collection: Collection = None,
    key: KeyFile = None,
) -> None:
    """Make an empty gallery. What it promises is fixed from then on."""
    from veilkit.errors import ConfigError
    from veilkit.experts import load_expert
    from veilkit.gallery import Gallery
    from veilkit.privacy import Budget, affordable, make_mechanism

    if (expert is None) == (dimension is None):
        raise ConfigError("give either --expert, for pictures, or --dimension, for features made elsewhere")
    loaded = None if expert is None else load_expert(expert)
    noise = make_mechanism(
        mechanism, dimension=loaded.dim if loaded else dimension or 0, epsilon=epsilon, delta=delta
    )
    budget = Budget(
        epsilon=epsilon if budget_epsilon is None else budget_epsilon,
        delta=delta if budget_delta is None else budget_delta,
    )
    made = Gallery.create(
        gallery,
        mechanism=noise,
        budget=budget,
        per=per.value,
        expert=None if loaded is None else (loaded.name, loaded.info.fingerprint),
        url=url,
        collection=collection,
        key=key,
    )
    count = affordable(noise.cost, budget)
    typer.echo(f"{gallery}: {made.facts.guarantee}, epsilon {epsilon:g}, delta {delta:g}")
    typer.echo(
        f"Budget: epsilon {budget.epsilon:g}, delta {budget.delta:g} per {per.value}: up to {count} vectors each"
    )
    typer.echo(f"Key and ledger are beside {made.key_file}. Keep them secret, apart from the gallery, with a copy.")


@app.command()
def add(
    gallery: Folder,
    source: Source = None,
    expert: ExpertName = None,
    labels: Labels = "auto",
    times: Times = "none",
    max_pixels: MaxPixels = 50_000_000,
    key: KeyFile = None,
) -> None:
    """Release features and store them. A run that was stopped goes on with the same command, at no further cost.

    Exit code: 0 all added, 3 some pictures were refused, 2 an error (past the budget: nothing is changed).
    """
    from veilkit.cli import gallery_pictures as pictures
    from veilkit.gallery import Gallery

    opened = Gallery.open(gallery, key=key)
    with opened:
        if source is None:
            outcome = pictures.Outcome(resumed=opened.resume())
        elif source.suffix == pictures.FEATURES:
            outcome = pictures.add_features(opened, source)
        else:
            who = pictures.the_expert(opened, expert)
            outcome = pictures.add_pictures(opened, source, who, labels=labels, times=times, pixels=max_pixels)
    _report(outcome)


def _report(outcome: Outcome) -> None:
    typer.echo(f"{outcome.added} vectors released and stored")
    if outcome.kept:
        typer.echo(f"{outcome.kept} were there from before, and cost nothing more")
    if outcome.resumed:
        typer.echo(f"{outcome.resumed} that an interrupted run had paid for are stored now")
    if refused := sum(outcome.refused.values()):
        typer.echo(f"{refused} pictures refused:", err=True)
        for reason, count in outcome.refused.most_common():
            typer.echo(f"  {count:>6}  {reason}", err=True)
        raise typer.Exit(REFUSED)


@app.command()
def search(
    gallery: Folder,
    query: Query,
    limit: Limit = 10,
    cameras: Cameras = None,
    since: Since = None,
    until: Until = None,
    expert: ExpertName = None,
    key: OwnersKey = None,
    max_pixels: MaxPixels = 50_000_000,
    as_json: AsJson = False,
) -> None:
    """Find who is most like a picture. It costs nothing: queries are not released, and answers already were."""
    from veilkit.cli.gallery_pictures import read_queries
    from veilkit.gallery import Gallery

    with Gallery.open(gallery, key=key) as opened:
        if opened.facts.url:
            typer.echo(f"Note: the server {opened.facts.url} sees the query's features, without noise.", err=True)
        queries = read_queries(opened, query, expert, max_pixels)
        found = opened.search(queries.features, limit=limit, cameras=cameras or (), since=since, until=until)
        names = opened.names([hit.pseudonym for hits in found for hit in hits]) if key is not None else None
    if as_json:
        answers = [
            {"query": record, "hits": [_hit(hit, names) for hit in hits]}
            for record, hits in zip(queries.records, found, strict=True)
        ]
        typer.echo(json.dumps(answers, indent=2))
        return
    for record, hits in zip(queries.records, found, strict=True):
        _show(record, hits, names)


def _hit(hit: Hit, names: dict[str, str] | None) -> dict[str, object]:
    from veilkit.gallery import time_text

    about: dict[str, object] = {
        "pseudonym": hit.pseudonym, "score": round(hit.score, 6), "camera": hit.camera, "time": time_text(hit.time)
    }  # fmt: skip
    return about if names is None else about | {"record": names.get(hit.pseudonym)}


def _show(query: str, hits: list[Hit], names: dict[str, str] | None) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(f"query {_printable(query)}"), title_justify="left")
    for column in ("pseudonym", "score", "camera", "time", *(() if names is None else ("record",))):
        table.add_column(column, justify="right" if column == "score" else "left", no_wrap=column == "pseudonym")
    for hit in hits:
        about = _hit(hit, names)
        cells = [f"{value:.4f}" if isinstance(value, float) else _printable(value) for value in about.values()]
        table.add_row(*map(Text, cells))
    Console().print(table)


def _printable(value: object) -> str:
    return "" if value is None else "".join(sign if sign.isprintable() else "?" for sign in str(value))


@app.command()
def budget(gallery: Folder, key: KeyFile = None, as_json: AsJson = False) -> None:
    """Show what was spent and what is left, and whether ledger, store and private list agree.

    Exit code: 0 they agree, 3 they do not.
    """
    from veilkit.gallery import Gallery

    with Gallery.open(gallery, key=key) as opened:
        found = opened.budget()
    typer.echo(json.dumps(_as_json(found), indent=2) if as_json else _text(opened, found))
    if found.remedy:
        raise typer.Exit(REFUSED)


def _as_json(found: Statement) -> dict[str, object]:
    return {
        "per": found.per,
        "budget": {"epsilon": _finite(found.budget.epsilon), "delta": found.budget.delta},
        "epsilon_claimed": _finite(found.epsilon_claimed),
        "epsilon_proved": _finite(found.epsilon_proved),
        "epsilon_spent": _finite(found.spent),
        "levels": [
            {"releases": one.releases, "count": one.count, "spent": _finite(one.epsilon), "left": _finite(one.left)}
            for one in found.levels
        ],
        "in_ledger": found.in_ledger,
        "in_store": found.in_store,
        "missing": found.missing,
        "foreign": found.foreign,
        "changed": found.changed,
        "unnamed": found.unnamed,
        "agree": found.agree,
    }


def _text(opened: Gallery, found: Statement) -> str:
    proved = "infinite (no formal guarantee)" if math.isinf(found.epsilon_proved) else f"{found.epsilon_proved:g}"
    lines = [
        f"each vector: {opened.facts.guarantee}",
        f"epsilon claimed {found.epsilon_claimed:g}, proved {proved}, spent by the worst {found.per} {found.spent:g}",
        f"budget: epsilon {found.budget.epsilon:g}, delta {found.budget.delta:g} per {found.per}",
        f"{'releases':>10} {found.per + 's':>10} {'spent':>10} {'left':>10}",
        *(f"{one.releases:>10} {one.count:>10} {one.epsilon:>10.6g} {one.left:>10.6g}" for one in found.levels),
        f"in the ledger {found.in_ledger}, in the store {found.in_store}: "
        + ("they agree" if found.agree else f"they DIFFER, {found.missing} missing, {found.foreign} unknown"),
    ]
    if found.changed:
        lines.append(f"{found.changed} are stored as other vectors than those in the ledger")
    if found.foreign or found.changed:
        lines += [
            f"What the store holds uncharged counts in full against every {found.per} that it may belong to.",
            f"Restore the latest private files, or run `veilkit gallery reconcile {opened.folder} SOURCE`.",
        ]
    if found.unnamed:
        lines.append(
            f"{found.unnamed} are missing in the private list: restore its latest copy, or run `veilkit gallery "
            f"reconcile {opened.folder} SOURCE`"
        )
    if found.remedy == "add":
        lines.append(f"`veilkit gallery add {opened.folder}` stores what is missing, at no further cost")
    return "\n".join(lines)


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "Infinity"


@app.command()
def export(gallery: Folder, destination: Out, key: KeyFile = None) -> None:
    """Write what was released, and what it cost, for others to audit."""
    from veilkit.gallery import Gallery

    with Gallery.open(gallery, key=key) as opened:
        done = opened.export(destination)
    typer.echo(f"{done.vectors} vectors in {done.destination}")


@app.command()
def reconcile(
    gallery: Folder,
    source: Added = None,
    labels: Labels = "auto",
    max_pixels: MaxPixels = 50_000_000,
    key: KeyFile = None,
) -> None:
    """After an older copy of the private files was restored: charge what was released since. Nothing is released.

    Exit code: 0 ledger, store and private list agree again, 3 they do not yet.
    """
    from veilkit.cli import gallery_pictures as pictures
    from veilkit.gallery import Gallery

    refused = 0
    with Gallery.open(gallery, key=key) as opened:
        if source is None:
            done = opened.reconcile()
        elif source.suffix == pictures.FEATURES:
            done = pictures.reconcile_features(opened, source)
        else:
            done, refused = pictures.reconcile_pictures(opened, source, labels=labels, pixels=max_pixels)
    typer.echo(f"{done.charged} vectors charged that were in the store and not in the ledger")
    typer.echo(f"{done.named} records entered in the private list, {done.stored} vectors stored again")
    if refused:
        typer.echo(f"{refused} pictures could not be read and were left out", err=True)
    if done.unknown:
        typer.echo(f"{done.unknown} vectors in the store are still unknown: give their records too", err=True)
    if done.unnamed:
        typer.echo(f"{done.unnamed} records are still missing in the private list: give them too", err=True)
    if not done.done:
        raise typer.Exit(REFUSED)

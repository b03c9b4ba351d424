"""`veilkit ledger`: who is who in a release, for whoever holds its private folder."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from veilkit.pipeline.ledger_queries import Row

app = typer.Typer(
    help="What the private ledger of a release knows: show, lookup, export, boxes.", no_args_is_help=True
)

Release = Annotated[Path, typer.Argument(metavar="RELEASE", help="The release, as `veilkit protect` wrote it.")]
KeyFile = Annotated[Path | None, typer.Option("--key", help="The release's key.", show_default="RELEASE.private/key")]
Out = Annotated[Path, typer.Argument(metavar="OUT", help="The CSV file to write; never over another.")]
Names = Annotated[bool, typer.Option("--names", help="Also the originals' paths and the people in them.")]
Which = Annotated[
    list[str], typer.Argument(metavar="NAME", help="A name in the release, of an original, or a pattern.")
]
Boxes = Annotated[
    Path, typer.Argument(metavar="OUT", help="A .csv file, a .json file for COCO, or else a new folder for YOLO.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def show(release: Release, key: KeyFile = None, as_json: AsJson = False) -> None:
    """Count what a release holds; no name of an original is printed."""
    rows, _ = _rows(release, key)
    faces = sum((Counter(row.report.get("counts", {})) for row in rows), Counter[str]())
    people = {row.person for row in rows} - {None}
    if as_json:
        typer.echo(json.dumps({"pictures": len(rows), "people": len(people), "faces": faces}, indent=2))
        return
    typer.echo(f"{len(rows)} pictures of {len(people)} people, by their labels")
    if faces:
        typer.echo("Faces or people: " + ", ".join(f"{count} {name}" for name, count in sorted(faces.items())))


@app.command()
def export(release: Release, out: Out, key: KeyFile = None, names: Names = False) -> None:
    """Write a table of the release's pictures for a spreadsheet; only its owner can read it."""
    from veilkit.display import safe_cell
    from veilkit.errors import DestinationError

    rows, _ = _rows(release, key)
    try:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise DestinationError(f"{out} cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "w", newline="", encoding="utf-8", errors="surrogateescape") as lines:
        writer = csv.writer(lines)
        writer.writerow(("picture", *(("original", "person", "original_sha256") if names else ())))
        for row in rows:
            private = (row.original, row.person or "", row.original_sha256 or "") if names else ()
            writer.writerow([safe_cell(cell) for cell in (row.picture, *private)])
    typer.echo(f"{len(rows)} pictures in {out}" + "; it names originals: keep it as private as the key" * names)


@app.command()
def lookup(release: Release, which: Which, key: KeyFile = None, as_json: AsJson = False) -> None:
    """Tell which original a picture was made of, and the reverse."""
    from veilkit.pipeline.ledger_queries import selected

    rows, private = _rows(release, key)
    pictures = {row.picture: "" for row in rows}
    originals = {row.picture: row.original for row in rows}
    found = selected(which, pictures, private, originals)
    if as_json:
        typer.echo(json.dumps({name: originals[name] for name in found}, indent=2))
        return
    for name in found:
        typer.echo(f"{name}  {originals[name]}")


@app.command()
def boxes(release: Release, out: Boxes, key: KeyFile = None) -> None:
    """Write the boxes that a method on faces or people found or was given, as `protect --boxes` takes them.

    They go by the originals' paths: keep the file as private as the key.
    """
    from veilkit.errors import DestinationError, UsageError
    from veilkit.media.boxes import write_coco, write_csv, write_yolo

    rows, _ = _rows(release, key)
    found = {row.original: row.boxes for row in rows if row.boxes and "size" in row.report}
    sizes = {row.original: tuple(row.report["size"]) for row in rows if row.original in found}
    if not found:
        raise UsageError("this release has no boxes: its method did not look for faces or people")
    if out.exists():
        raise DestinationError(f"{out} is already there: choose another name")
    old = os.umask(0o077)
    try:
        if out.suffix.lower() == ".csv":
            write_csv(out, found)
        elif out.suffix.lower() == ".json":
            write_coco(out, found, sizes.__getitem__)
        else:
            write_yolo(out, found, sizes.__getitem__)
    except OSError as error:
        raise DestinationError(f"{out} cannot be written: {error.strerror}") from None
    finally:
        os.umask(old)
    typer.echo(f"{sum(map(len, found.values()))} boxes of {len(found)} pictures in {out}; it names originals")


def _rows(release: Path, key: Path | None) -> tuple[list[Row], Path]:
    from veilkit.errors import DataError
    from veilkit.pipeline.ledger_queries import ledger_rows
    from veilkit.pipeline.manifest import listed_pictures
    from veilkit.pipeline.places import private_beside
    from veilkit.pipeline.recovery.target import finished_manifest

    if not release.is_dir():
        raise DataError(f"expected a release, but {release} is not a folder")
    private = private_beside(release.resolve()) if key is None else key.resolve().parent
    rows = ledger_rows(private, listed_pictures(release, finished_manifest(release)))
    if rows is None:
        raise DataError(
            f"there is no ledger of just this release in {private}: name the key that it lies beside (--key), or "
            "fetch release or ledger again if somebody has altered its list"
        )
    return rows, private

"""`veilkit withdraw`: a person's pictures leave a release, because consent was withdrawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Release = Annotated[Path, typer.Argument(metavar="RELEASE", help="The release, where it was made.")]
Only = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A name in the release, an original's path, folder or pattern; repeatable."),
]
KeyFile = Annotated[Path | None, typer.Option("--key", help="The release's key.", show_default="RELEASE.private/key")]
Sealed = Annotated[Path | None, typer.Option(help="Folder of the sealed originals.", show_default="RELEASE.sealed")]
GalleryFolder = Annotated[
    Path | None, typer.Option("--gallery", help="Also from this gallery, whose records are the originals' paths.")
]
GalleryKey = Annotated[
    Path | None, typer.Option("--gallery-key", help="The gallery's key.", show_default="GALLERY.private/key")
]


def withdraw(
    release: Release,
    only: Only = None,
    key: KeyFile = None,
    sealed: Sealed = None,
    gallery: GalleryFolder = None,
    gallery_key: GalleryKey = None,
) -> None:
    """Take pictures out of a release, its sealed originals and a gallery, for good.

    If it is stopped, the same command goes on. Originals in the source, and copies that others have, are not
    touched: those are yours to delete.
    """
    from veilkit.pipeline.withdrawal import withdraw as take_out

    if gallery is None:
        done = take_out(release, only=only or (), key=key, sealed=sealed)
    else:
        from veilkit.gallery import Gallery

        with Gallery.open(gallery, key=gallery_key) as opened:
            done = take_out(release, only=only or (), key=key, sealed=sealed, from_gallery=opened.withdraw)
    also = [f"{done.sealed} sealed originals"] * bool(done.sealed) + [f"{done.gallery} records of the gallery"] * (
        gallery is not None
    )
    typer.echo(f"{done.pictures} pictures withdrawn" + "".join(f", and {each}" for each in also))
    typer.echo(f"{done.left} are left in {release}; noted in {done.log}")
    typer.echo("Originals in the source, and copies that others have, are still there: those are yours to delete.")

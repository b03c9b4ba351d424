"""`veilkit protect`: a folder of pictures to a protected folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Names(StrEnum):
    """How pictures are named in the release."""

    pseudonyms = "pseudonyms"
    keep = "keep"


class ImageFormat(StrEnum):
    """The format of the protected pictures."""

    png = "png"
    jpeg = "jpeg"


REFUSED = 3  # the exit code of a run that did all it could and refused some pictures


Source = Annotated[Path, typer.Argument(metavar="SRC", help="Folder of pictures, nested as it likes; never changed.")]
Destination = Annotated[Path, typer.Argument(metavar="DST", help="Folder for the release: new, empty, or to resume.")]
MethodName = Annotated[str, typer.Option("--method", help="How to protect: see `veilkit methods list`.")]
Model = Annotated[Path | None, typer.Option(help="The file that `veilkit fit` wrote, for methods that learn.")]
Preset = Annotated[str | None, typer.Option(help="A named configuration: see `veilkit methods show`.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting of the method; may be repeated.")
]
KeyFile = Annotated[Path | None, typer.Option(help="Key file, made if absent.", show_default="DST.private/key")]
Seed = Annotated[int | None, typer.Option(help="A public seed instead of a key, for research only.")]
Workers = Annotated[
    int, typer.Option(min=-1, help="Worker processes; 0 works in this one.", show_default="one per core")
]
NameChoice = Annotated[Names, typer.Option(help="Names in the release: keyed pseudonyms, or the pictures' own.")]
Labels = Annotated[
    str, typer.Option(help="Who is in a picture: auto, none, folder, market, pattern:REGEX or csv:FILE.")
]
FormatChoice = Annotated[ImageFormat, typer.Option("--format", help="Format of the release.")]
SealTo = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RECIPIENT",
        help="Also seal originals to an age recipient (age1..., or a file of them), in DST.sealed; may be repeated.",
    ),
]
MaxPixels = Annotated[int, typer.Option(min=1, help="Larger pictures are refused.")]
MaxSide = Annotated[int, typer.Option(min=1, help="Pictures with a longer side are refused.")]
MaxAspect = Annotated[int, typer.Option(min=1, help="Pictures are refused whose one side is more times the other.")]
MaxSeconds = Annotated[
    int, typer.Option(min=1, help="Processor time for a picture in a worker process; then it is refused.")
]
MaxMemory = Annotated[
    int | None,
    typer.Option(min=1_024, help="Megabytes of a worker process.", show_default="80 % of the machine's memory"),
]
Size = Annotated[
    str | None, typer.Option(metavar="WxH", help="One size in pixels for all pictures, with black bars where needed.")
]
Stretch = Annotated[bool, typer.Option("--stretch", help="With --size: no bars; proportions are lost.")]
PadFiles = Annotated[
    bool, typer.Option("--pad-files", help="PNG without compression: a file's size tells its pixels' number alone.")
]


def protect(
    source: Source,
    destination: Destination,
    method: MethodName,
    model: Model = None,
    preset: Preset = None,
    settings: Settings = None,
    key: KeyFile = None,
    seed: Seed = None,
    workers: Workers = -1,
    names: NameChoice = Names.pseudonyms,
    labels: Labels = "auto",
    image_format: FormatChoice = ImageFormat.png,
    max_pixels: MaxPixels = 50_000_000,
    max_side: MaxSide = 32_767,
    max_aspect: MaxAspect = 100,
    max_seconds: MaxSeconds = 1_800,
    max_memory: MaxMemory = None,
    size: Size = None,
    stretch: Stretch = False,
    pad_files: PadFiles = False,
    seal_to: SealTo = None,
) -> None:
    """Protect every picture of a folder. A run that was stopped goes on when the same command is given again.

    Exit code: 0 all pictures protected, 3 some were refused (the reasons are told), 2 an error, 130 interrupted.
    Refused is also what looks like a picture or a video and is not read, and a link to a folder.
    """
    from veilkit.pipeline.engines.forkserver import start_early

    workers = workers if workers >= 0 else len(os.sched_getaffinity(0))
    if workers:
        start_early()
    from veilkit.configs import parse_settings
    from veilkit.media.reading import Limits
    from veilkit.media.shape import Shape
    from veilkit.methods import METHODS
    from veilkit.pipeline.protect import protect as run

    if names is Names.keep:
        typer.echo("Warning: the release keeps the pictures' own names; names often tell who somebody is.", err=True)
    if seed is not None:
        typer.echo("Warning: with a seed instead of a key, anyone can reproduce noise, masks and names.", err=True)
    if method in METHODS and (attack := METHODS[method].undone_by):
        typer.echo(
            f"Warning: {method} is for comparison only; the attack {attack} undoes it without the key.", err=True
        )
    outcome = run(
        source,
        destination,
        method,
        model=model,
        preset=preset,
        settings=parse_settings(settings or []),
        key=key,
        seed=seed,
        names="kept" if names is Names.keep else "pseudonyms",
        labels=labels,
        image_format=image_format.value,
        workers=workers,
        limits=Limits(
            pixels=max_pixels,
            side=max_side,
            aspect=max_aspect,
            seconds=max_seconds,
            memory=None if max_memory is None else max_memory * 2**20,
        ),
        shape=Shape.parse(size, stretch=stretch, even_files=pad_files),
        seal_to=seal_to or (),
    )
    refused = sum(outcome.refused.values())
    done = "synthetic pictures made" if outcome.synthetic else "pictures protected"
    typer.echo(f"{outcome.protected} {done} in {outcome.destination}")
    if outcome.missed:
        typer.echo(
            f"{outcome.missed} of them missed the limit on their features: they are protected all the same, but "
            "their expert may match them less well"
        )
    if outcome.faces:
        typer.echo(_faces(outcome.faces))
        typer.echo(f"{outcome.faces_list} counts them for each picture")
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


def _faces(counts: Mapping[str, int]) -> str:
    """What became of faces, and what nobody can know of them."""
    return (
        f"Faces: {counts['found']} found, {counts['changed']} of them changed and {counts['hidden']} hidden; "
        f"{counts['doubtful']} doubtful regions hidden as well. A face that no detector saw is unchanged: look "
        "through the release before you give it away."
    )


def _keys(count: int) -> str:
    return "one key can" if count == 1 else f"any one of {count} keys can"

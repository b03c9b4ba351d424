"""`veilkit experts`: the models that judge and supervise, and how to bring your own."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from veilkit.experts.base import Expert, ExpertInfo

app = typer.Typer(help="List, show, add and remove experts: models that judge or supervise.", no_args_is_help=True)


class Colours(StrEnum):
    """The order in which a network expects the colours."""

    rgb = "rgb"
    bgr = "bgr"


ModelFile = Annotated[Path, typer.Argument(metavar="FILE", help="An .onnx file, or a .safetensors file of veilkit.")]
NewName = Annotated[str, typer.Option("--name", help="What to call it: lower-case letters, digits, '.', '_', '-'.")]
Licence = Annotated[str, typer.Option(help="The licence of the weights, as told by who made them.")]
Source = Annotated[str, typer.Option(help="Where the weights come from.")]
Sha256 = Annotated[str | None, typer.Option("--sha256", help="Refuse the file unless it has this SHA-256.")]
Size = Annotated[
    str | None, typer.Option(metavar="HxW", help="Input size of an ONNX network, unless it is bound to one.")
]
NormalisationText = Annotated[
    str | None,
    typer.Option(
        "--normalisation",
        metavar="NAME|M,M,M/S,S,S",
        help="Of an ONNX network: imagenet, none ([0, 1]), signed ([-1, 1]), bytes ([0, 255]), "
        "or mean and standard deviation for red, green, blue.",
    ),
]
Order = Annotated[Colours | None, typer.Option(help="Order of an ONNX network's colours.", show_default="rgb")]
Flip = Annotated[
    bool, typer.Option("--flip", help="Average the features of a picture and its mirror image, at twice the cost.")
]
Card = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="A model card (text), kept with the weights.")
]
Known = Annotated[str, typer.Argument(metavar="NAME", help="An expert of `veilkit experts list`.")]


@app.command("list")
def list_experts() -> None:
    """List the experts: name, kind, length of features, input, licence, and whose it is.

    Those of faces (identity, detector, predictor) follow. What is not at hand says how to get it.
    """
    from functools import partial

    from veilkit.errors import CheckpointError, MissingExtraError
    from veilkit.experts.faces import DETECTORS, FACE_EMBEDDERS, PREDICTORS
    from veilkit.experts.names import expert_names
    from veilkit.experts.registry import describe_expert

    rows = [(name, "embedder", partial(describe_expert, name)) for name in expert_names()]
    for kind, table in (("identity", FACE_EMBEDDERS), ("detector", DETECTORS), ("predictor", PREDICTORS)):
        rows += [(name, kind, partial(_described, load)) for name, load in table.items()]
    for name, kind, described in rows:
        try:
            info = described()
        except (CheckpointError, MissingExtraError) as error:
            typer.echo(f"{name:<20} {kind:<9} not usable: {error}")
            continue
        typer.echo(f"{name:<20} {kind:<9} {info.dim or '':>5} {_input(info):>9}  {info.origin:<8}  {info.licence}")


def _described(load: Callable[[], Expert]) -> ExpertInfo:
    return load().info


@app.command()
def show(name: Known) -> None:
    """Show everything that is known of an expert, and its model card."""
    from veilkit.experts.preprocessing import normalisation_text
    from veilkit.experts.registry import describe_expert

    info = describe_expert(name)
    lines = {
        "name": info.name,
        "kind": info.kind,
        "features": str(info.dim),
        "input": _input(info),
        "supervises": "yes, gradients reach the images" if info.differentiable else "no, it only judges",
        "licence": info.licence,
        "source": info.source or "not stated",
        "origin": info.origin,
        "sha256": info.sha256,
    }
    if info.preprocessing is not None:
        lines["normalisation"] = normalisation_text(info.preprocessing.mean, info.preprocessing.std)
        lines["colours"] = info.preprocessing.order
        lines["mirror image"] = "averaged with the picture's own features" if info.flip else "not looked at"
    for field, value in lines.items():
        typer.echo(f"{field:<14} {value}")
    if info.card:
        typer.echo(f"\n{info.card.rstrip()}")


@app.command()
def add(
    file: ModelFile,
    name: NewName,
    licence: Licence,
    source: Source = "",
    sha256: Sha256 = None,
    size: Size = None,
    normalisation: NormalisationText = None,
    order: Order = None,
    flip: Flip = False,
    card: Card = None,
) -> None:
    """Try a network on test images and keep a copy of it under a name."""
    from veilkit.experts.preprocessing import read_normalisation, read_size
    from veilkit.experts.registry import Addition, add_expert

    info = add_expert(
        file,
        Addition(
            name=name,
            licence=licence,
            source=source,
            sha256=sha256,
            size=read_size(size) if size else None,
            normalisation=read_normalisation(normalisation) if normalisation else None,
            order=order.value if order else None,
            flip=flip,
            card=card.read_text(encoding="utf-8", errors="replace") if card else "",
        ),
    )
    typer.echo(f"{info.name} added: {info.dim} features from images of {_input(info)}, SHA-256 {info.sha256}")


@app.command()
def remove(name: Known) -> None:
    """Forget an expert that was added, and delete the copy of its weights."""
    from veilkit.experts.registry import remove_expert

    remove_expert(name)
    typer.echo(f"{name} removed")


def _input(info: ExpertInfo) -> str:
    from veilkit.experts.preprocessing import size_text

    return size_text(info.preprocessing.size) if info.preprocessing else "any size"

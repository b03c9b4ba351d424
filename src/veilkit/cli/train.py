"""`veilkit train`: experts from labelled pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Train an expert.", no_args_is_help=True)

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="Pictures of labelled people: the Market-1501 layout, or any folder.")
]
Out = Annotated[Path, typer.Option(help="The model file to write (safetensors).")]
Recipe = Annotated[str, typer.Option(help="agw (the published recipe), plain (cross-entropy only) or small (ours).")]
Backbone = Annotated[str | None, typer.Option(help="The network, such as mobilenetv2, osnet-x1.0 or resnet50-agw.")]
Init = Annotated[Path | None, typer.Option(help="Weights that the backbone starts from (safetensors).")]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting of the recipe.")]
Validation = Annotated[float, typer.Option(min=0, max=0.9, help="Share of the people set aside to watch progress.")]
Labels = Annotated[str, typer.Option(help="Who is in a picture: auto, folder, market, pattern:REGEX or csv:FILE.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same weights on the same machine.")]
WorkDir = Annotated[
    Path | None, typer.Option(help="Where the state is kept for resuming.", show_default="runs/OUT's name")
]
Threads = Annotated[int, typer.Option(min=1, help="torch threads; weights depend on their number in the last bits.")]


@app.callback()
def group() -> None:
    """Train an expert."""


@app.command()
def reid(
    data: Data,
    out: Out,
    recipe: Recipe = "small",
    backbone: Backbone = None,
    init: Init = None,
    settings: Settings = None,
    validation: Validation = 0.0,
    labels: Labels = "auto",
    seed: Seed = 0,
    work_dir: WorkDir = None,
    threads: Threads = 1,
) -> None:
    """Train a person re-identification embedder. A stopped run goes on when the same command is given again."""
    import torch

    from veilkit.configs import parse_settings, with_settings
    from veilkit.datasets.folder import load_folder
    from veilkit.datasets.labels import is_market_layout
    from veilkit.datasets.market1501 import load_market1501
    from veilkit.training.reid import train_reid
    from veilkit.training.reid_config import RECIPES

    torch.set_num_threads(threads)
    changes = {**parse_settings(settings or []), "seed": seed} | ({"backbone": backbone} if backbone else {})
    config = with_settings(RECIPES[recipe], changes)
    market = labels in ("auto", "market") and is_market_layout(data)
    split = load_market1501(data).train if market else load_folder(data, labels)
    trained = train_reid(
        split, config, out, init=init, validation=validation, work_dir=work_dir or Path("runs") / out.stem
    )
    typer.echo(f"{len(split.identities)} people learned; the expert is {out} (SHA-256 {trained.sha256})")

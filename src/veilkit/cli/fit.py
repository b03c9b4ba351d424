"""`veilkit fit`: let a method learn from labelled pictures what it needs to protect others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MethodName = Annotated[
    str, typer.Argument(metavar="METHOD", help="A method that learns: see `veilkit methods list`.")
]
Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="Pictures of labelled people: the Market-1501 layout, or any folder.")
]
Out = Annotated[Path, typer.Option(help="The model file to write (safetensors). It is as private as the pictures.")]
Preset = Annotated[str | None, typer.Option(help="A named configuration: see `veilkit methods show`.")]
Init = Annotated[Path | None, typer.Option(help="Weights that a backbone starts from (safetensors).")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting; may be repeated.")
]
Labels = Annotated[str, typer.Option(help="Who is in a picture: auto, folder, market, pattern:REGEX or csv:FILE.")]
People = Annotated[int | None, typer.Option(min=2, help="Learn from so many people only, the first by name.")]
Folds = Annotated[str, typer.Option(help="Of LFW (a folder with pairs.txt): folds whose people are for tests alone.")]
WorkDir = Annotated[
    Path | None, typer.Option(help="Where the state is kept for resuming.", show_default="runs/OUT's name")
]
Threads = Annotated[int, typer.Option(min=1, help="torch threads; weights depend on their number in the last bits.")]


def fit(
    method: MethodName,
    data: Data,
    out: Out,
    preset: Preset = None,
    init: Init = None,
    settings: Settings = None,
    labels: Labels = "auto",
    people: People = None,
    folds: Folds = "8,9,10",
    work_dir: WorkDir = None,
    threads: Threads = 1,
) -> None:
    """Let a method learn. A stopped run goes on when the same command is given again.

    Of the Market-1501 layout only the training part is used, of LFW only people outside of the test folds.
    """
    import torch

    from veilkit.configs import parse_settings
    from veilkit.datasets.labelled import load_training_part
    from veilkit.datasets.lfw import parse_folds
    from veilkit.errors import UsageError
    from veilkit.methods import METHODS, Calibrates, Learns

    torch.set_num_threads(threads)
    kind = METHODS[method]
    if not issubclass(kind, Learns | Calibrates):
        raise UsageError(f"{method} learns nothing: use it as it is, with `veilkit protect --method {method}`")
    split = load_training_part(data, labels, people, parse_folds(folds))
    fitted = kind.configured(preset, parse_settings(settings or []))
    notes: tuple[str, ...] = ()
    if isinstance(fitted, Learns):
        fitted.fit(split, work_dir=work_dir or Path("runs") / out.stem, init=init).save(out)
        notes = fitted.after_fit(out)
    elif isinstance(fitted, Calibrates):
        fitted.calibrate(split).save(out)
    typer.echo(f"{method} has learned from {len(split)} pictures of {len(split.identities)} people: {out}")
    for line in notes:
        typer.echo(line)

"""Options that the studies share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="A dataset in the layout of Market-1501; `veilkit generate` makes one.")
]
Faces = Annotated[
    Path, typer.Argument(metavar="LFW", help="Labeled Faces in the Wild: a folder per person, and pairs.txt.")
]
Out = Annotated[
    Path, typer.Option(help="Folder for cells, releases, students and the report; a study goes on there.")
]
Init = Annotated[
    Path | None, typer.Option(help="Weights that the backbones of what is trained start from (safetensors).")
]
Judge = Annotated[
    str, typer.Option(help="Independent recogniser that attacks with: a name (`veilkit experts list`) or a file.")
]
Expert = Annotated[
    str, typer.Option(help="Authorised recogniser: a name (`veilkit experts list`) or a .safetensors file.")
]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting of the study.")]
Workers = Annotated[
    int | None,
    typer.Option(min=0, help="Worker processes that make releases, and may train.", show_default="one per core"),
]
Threads = Annotated[int, typer.Option(min=1, help="torch threads of training.")]


def cores(workers: int | None) -> int:
    """The worker processes asked for, or one for each core that may be used."""
    return len(os.sched_getaffinity(0)) if workers is None else workers

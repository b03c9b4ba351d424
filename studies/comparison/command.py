"""`veilkit reproduce all`: every method on the same people, under the same attackers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from studies.shared.options import Data, Expert, Judge, Out, Settings, Threads
from veilkit.cli.audit import Start

FacesOption = Annotated[
    Path | None,
    typer.Option("--faces", metavar="LFW", help="Labeled Faces in the Wild, for the table of faces (extra faces)."),
]
FaceJudge = Annotated[
    str, typer.Option(help="Recogniser of faces that attacks with, and the view of a crop that it is used to.")
]
FaceStart = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="As --start, for the attacker who trains a recogniser of faces.", show_default="scratch"
    ),
]
ModelsFolder = Annotated[Path, typer.Option(help="Folder in which fitted models are looked for.")]
ModelFiles = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="METHOD=FILE", help="The fitted model of a method that learns; may be repeated."),
]


def every(
    data: Data,
    out: Out,
    faces: FacesOption = None,
    expert: Expert = "people",
    judge: Judge = "histogram",
    face_judge: FaceJudge = "dlib@dlib",
    models: ModelsFolder = Path("models"),
    model: ModelFiles = None,
    start: Start = None,
    face_start: FaceStart = None,
    settings: Settings = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that protect and attack.")] = 1,
    threads: Threads = 1,
) -> None:
    """Every method on the same people under the same attackers: what each keeps, and what leaks at L0 to L3.

    One spec (OUT/spec.toml) of audits, whose cells a stopped run finds again. A method whose model is not there is
    listed as not run. OUT shows people: keep it to yourself.
    """
    import torch

    from studies.comparison.models import Models
    from studies.comparison.plan import AllStudyConfig, Starts
    from studies.comparison.study import AllStudy, Judges
    from studies.comparison.tables import report
    from veilkit.audit.inputs.cache import Cache
    from veilkit.configs import parse_settings, with_settings
    from veilkit.datasets.lfw import load_lfw
    from veilkit.datasets.market1501 import load_market1501
    from veilkit.media.writing import write_atomically

    torch.set_num_threads(threads)
    config = with_settings(AllStudyConfig(), parse_settings(settings or []))
    given = Models.of(models, model or [])
    parts, portraits = load_market1501(data), None if faces is None else load_lfw(faces)
    out.mkdir(parents=True, exist_ok=True)
    with Cache(out / "features.sqlite") as cache:
        study = AllStudy(
            parts, portraits, out, config, Judges(expert, judge, face_judge), given, cache, workers=workers,
            starts=Starts(start, face_start),
        )  # fmt: skip
        text = report(study.run(), config)
    write_atomically(out / "report.md", text.encode(), out)
    typer.echo(f"The tables are in {out / 'report.md'}")

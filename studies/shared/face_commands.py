"""Studies of methods for faces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from studies.shared.options import Faces, Init, Out, Settings, Threads, Workers, cores
from veilkit.cli.audit import Start


def disguise(
    lfw: Faces,
    out: Out,
    model: Annotated[
        list[Path], typer.Option(help="A model of `veilkit fit disguise`; again for one with another transform.")
    ],
    judge: Annotated[
        list[str] | None,
        typer.Option(
            help="Identity expert that took no part in training; again for more.", show_default="mobilefacenet"
        ),
    ] = None,
    elsewhere: Annotated[
        Path | None,
        typer.Option(help="Labelled faces of another set, a folder per person, to learn inversion from too."),
    ] = None,
    start: Start = None,
    settings: Settings = None,
    workers: Workers = None,
    threads: Threads = 1,
) -> None:
    """Disguise: who is recognised in swapped faces, inversion by transform and noise, utility, and attacks.

    Pictures of LFW's test people are protected, judged as files read back, and attacked by networks that learned from
    other people. Transforms that no model brings are fitted to the swapper of the one that there is. Each figure is a
    cell of its own; a stopped study goes on when the same command is given again. The folder shows people: keep it to
    yourself.
    """
    import torch

    from studies.disguise.models import Models, independent_judges, load_models
    from studies.disguise.plan import DisguiseStudyConfig, study_settings
    from studies.disguise.report import run_study
    from studies.disguise.study import DisguiseStudy
    from studies.shared.cells import Cells
    from veilkit.audit.inputs.cache import Cache
    from veilkit.configs import parse_settings, with_settings
    from veilkit.datasets.folder import load_folder
    from veilkit.datasets.lfw import load_lfw
    from veilkit.progress import Progress

    torch.set_num_threads(threads)
    config = with_settings(DisguiseStudyConfig(), parse_settings(settings or []))
    models = Models(load_models(model), config, out / "transforms")
    judges = independent_judges(judge or ["mobilefacenet"], models.given)
    facts = study_settings(config, models.fingerprints(), list(judges.values()), start)
    others = None if elsewhere is None else load_folder(elsewhere, "folder", "elsewhere")
    with (
        Progress(config.cells(len(judges), others is not None), "cells") as progress,
        Cache(out / "features.sqlite") as cache,
    ):
        study = DisguiseStudy(
            load_lfw(lfw), out, config, Cells(out, facts, progress), models=models, judges=judges, cache=cache,
            workers=cores(workers), elsewhere=others, start=start,
        )  # fmt: skip
        report = run_study(study)
    typer.echo(f"The tables are in {report}")


def fro_faces(
    lfw: Faces,
    out: Out,
    init: Init = None,
    settings: Settings = None,
    workers: Workers = None,
    threads: Threads = 1,
) -> None:
    """FRO on faces: pool and students verify people of LFW whom nobody trained on.

    Each figure is a cell of its own; a stopped study goes on when the same command is given again.
    """
    from dataclasses import asdict

    import torch

    from studies.fro.faces import FaceStudyConfig, faces_table, run_faces
    from studies.shared.cells import Cells
    from veilkit.configs import parse_settings, with_settings
    from veilkit.datasets.lfw import load_lfw
    from veilkit.media.writing import write_atomically
    from veilkit.progress import Progress

    torch.set_num_threads(threads)
    config = with_settings(FaceStudyConfig(), parse_settings(settings or []))
    with Progress(config.cells(), "cells") as progress:
        found = run_faces(
            load_lfw(lfw), out, config, Cells(out, asdict(config), progress), init=init,
            workers=cores(workers),
        )  # fmt: skip
    write_atomically(out / "report.md", (faces_table(found) + "\n").encode(), out)
    typer.echo(f"The table is in {out / 'report.md'}")

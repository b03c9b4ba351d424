"""`veilkit reproduce`: a paper's tables in small."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Reproduce a paper's tables in small.", no_args_is_help=True)

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

FacesOption = Annotated[
    Path | None,
    typer.Option("--faces", metavar="LFW", help="Labeled Faces in the Wild, for the table of faces (extra faces)."),
]
FaceJudge = Annotated[
    str, typer.Option(help="Recogniser of faces that attacks with, and the view of a crop that it is used to.")
]
ModelsFolder = Annotated[Path, typer.Option(help="Folder in which fitted models are looked for.")]
ModelFiles = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="METHOD=FILE", help="The fitted model of a method that learns; may be repeated."),
]


@app.callback()
def group() -> None:
    """Reproduce a paper's tables in small."""


@app.command("all")
def every(
    data: Data,
    out: Out,
    faces: FacesOption = None,
    expert: Expert = "people",
    judge: Judge = "histogram",
    face_judge: FaceJudge = "dlib@dlib",
    models: ModelsFolder = Path("models"),
    model: ModelFiles = None,
    settings: Settings = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that protect and attack.")] = 1,
    threads: Threads = 1,
) -> None:
    """Every method on the same people under the same attackers: what each keeps, and what leaks at L0 to L3.

    One spec (OUT/spec.toml) of audits, whose cells a stopped run finds again. A method whose model is not there is
    listed as not run. OUT shows people: keep it to yourself.
    """
    import torch

    from veilkit.audit.cache import Cache
    from veilkit.audit.reproduce.all_models import Models
    from veilkit.audit.reproduce.all_plan import AllStudyConfig
    from veilkit.audit.reproduce.all_study import AllStudy, Judges
    from veilkit.audit.reproduce.all_tables import report
    from veilkit.configs import parse_settings, with_settings
    from veilkit.datasets.lfw import load_lfw
    from veilkit.datasets.market1501 import load_market1501
    from veilkit.pipeline.writing import write_atomically

    torch.set_num_threads(threads)
    config = with_settings(AllStudyConfig(), parse_settings(settings or []))
    given = Models.of(models, model or [])
    parts, portraits = load_market1501(data), None if faces is None else load_lfw(faces)
    out.mkdir(parents=True, exist_ok=True)
    with Cache(out / "features.sqlite") as cache:
        study = AllStudy(
            parts, portraits, out, config, Judges(expert, judge, face_judge), given, cache, workers=workers
        )
        text = report(study.run(), config)
    write_atomically(out / "report.md", text.encode(), out)
    typer.echo(f"The tables are in {out / 'report.md'}")


@app.command()
def fro(
    data: Data,
    out: Out,
    init: Init = None,
    judge: Judge = "people",
    settings: Settings = None,
    workers: Workers = None,
    threads: Threads = 1,
) -> None:
    """FRO: pool, students of FRO, PRO, mix-up and noise, attacks, clusters, temperature and softening, data scale.

    Each figure is a cell of its own; a stopped study goes on when the same command is given again.
    """
    from dataclasses import asdict

    import torch

    from veilkit.audit.reproduce.cells import Cells
    from veilkit.audit.reproduce.fro_report import run_study
    from veilkit.audit.reproduce.fro_study import FroStudy, FroStudyConfig
    from veilkit.configs import parse_settings, with_settings
    from veilkit.datasets.market1501 import load_market1501
    from veilkit.experts import load_expert
    from veilkit.progress import Progress

    torch.set_num_threads(threads)
    config = with_settings(FroStudyConfig(), parse_settings(settings or []))
    with Progress(config.cells(), "cells") as progress:
        cells = Cells(out, asdict(config), progress)
        study = FroStudy(
            load_market1501(data), out, config, cells, judge=load_expert(judge), init=init,
            workers=len(os.sched_getaffinity(0)) if workers is None else workers,
        )  # fmt: skip
        report = run_study(study)
    typer.echo(f"The tables are in {report}")


@app.command()
def pixelfade(
    data: Data,
    out: Out,
    expert: Expert = "people",
    judge: Judge = "histogram",
    settings: Settings = None,
    workers: Workers = None,
    threads: Threads = 1,
) -> None:
    """PixelFade, AVIH and controls: four settings, recovery and stronger attacks, outlines, ablations, backbones.

    Pictures of the test part are protected, judged as files read back, and attacked by networks that learned from
    people of the training part. Each figure is a cell of its own; a stopped study goes on when the same command is
    given again. The sheets in the folder show people: keep it to yourself.
    """
    import torch

    from veilkit.audit.cache import Cache
    from veilkit.audit.reproduce.cells import Cells
    from veilkit.audit.reproduce.pixelfade_plan import PixelFadeStudyConfig, study_settings
    from veilkit.audit.reproduce.pixelfade_report import run_study
    from veilkit.audit.reproduce.pixelfade_study import PixelFadeStudy
    from veilkit.configs import parse_settings, with_settings
    from veilkit.datasets.market1501 import load_market1501
    from veilkit.experts import load_expert
    from veilkit.progress import Progress

    torch.set_num_threads(threads)
    config = with_settings(PixelFadeStudyConfig(), parse_settings(settings or []))
    parts, recogniser = load_market1501(data), load_expert(judge)
    facts = study_settings(config, load_expert(expert), recogniser)
    with Progress(config.cells(), "cells") as progress, Cache(out / "features.sqlite") as cache:
        study = PixelFadeStudy(
            parts, out, config, Cells(out, facts, progress), expert=expert, judge=recogniser, cache=cache,
            workers=len(os.sched_getaffinity(0)) if workers is None else workers,
        )  # fmt: skip
        report = run_study(study)
    typer.echo(f"The tables are in {report}")


@app.command()
def privacyreid(
    data: Data,
    out: Out,
    init: Init = None,
    judge: Judge = "people",
    settings: Settings = None,
    workers: Workers = None,
    threads: Threads = 1,
) -> None:
    """PrivacyReID: base, without and with upgradation trained and compared, recovery, features, and attacks.

    Learns from the training part, and is judged on released files of the test part. With two workers or more, two
    trainings run at a time and share the threads. Each figure is a cell of its own; a stopped study goes on when the
    same command is given again. States, models, sheets and samples in the folder show people, or undo protections:
    keep it to yourself.
    """
    import torch

    from veilkit.audit.cache import Cache
    from veilkit.audit.reproduce.cells import Cells
    from veilkit.audit.reproduce.privacyreid_plan import PrivacyReidStudyConfig, study_settings
    from veilkit.audit.reproduce.privacyreid_report import run_study
    from veilkit.audit.reproduce.privacyreid_study import PrivacyReidStudy
    from veilkit.configs import parse_settings, with_settings
    from veilkit.datasets.market1501 import load_market1501
    from veilkit.experts import load_expert
    from veilkit.progress import Progress

    torch.set_num_threads(threads)
    config = with_settings(PrivacyReidStudyConfig(), parse_settings(settings or []))
    parts, recogniser = load_market1501(data), load_expert(judge)
    facts = study_settings(config, recogniser, init)
    with Progress(config.cells(), "cells") as progress, Cache(out / "features.sqlite") as cache:
        study = PrivacyReidStudy(
            parts, out, config, Cells(out, facts, progress), judge=recogniser, cache=cache, init=init,
            workers=len(os.sched_getaffinity(0)) if workers is None else workers, threads=threads,
        )  # fmt: skip
        report = run_study(study)
    typer.echo(f"The tables are in {report}")


@app.command()
def pepr(
    data: Data,
    out: Out,
    init: Init = None,
    public_init: Annotated[
        Path | None,
        typer.Option(help="Weights for DP-SGD's frozen backbone, which must not know the training people."),
    ] = None,
    judge: Judge = "people",
    settings: Settings = None,
    threads: Threads = 1,
) -> None:
    """PEPR-Net: encoders with and without De-ID and adversaries, noise on their features, and attacks on them.

    Learns from the training part, and is judged on features of the test part. Each figure is a cell of its own; a
    stopped study goes on when the same command is given again. Models, features and sheets in the folder are as
    private as the pictures.
    """
    import torch

    from veilkit.audit.cache import Cache
    from veilkit.audit.reproduce.cells import Cells
    from veilkit.audit.reproduce.pepr_plan import PeprStudyConfig, study_settings
    from veilkit.audit.reproduce.pepr_report import run_study
    from veilkit.audit.reproduce.pepr_study import PeprStudy
    from veilkit.configs import parse_settings, with_settings
    from veilkit.datasets.market1501 import load_market1501
    from veilkit.experts import load_expert
    from veilkit.progress import Progress

    torch.set_num_threads(threads)
    config = with_settings(PeprStudyConfig(), parse_settings(settings or []))
    parts, recogniser = load_market1501(data), load_expert(judge)
    facts = study_settings(config, recogniser, init, public_init)
    with Progress(config.cells(), "cells") as progress, Cache(out / "features.sqlite") as cache:
        study = PeprStudy(
            parts, out, config, Cells(out, facts, progress), judge=recogniser, cache=cache, init=init,
            public_init=public_init,
        )  # fmt: skip
        report = run_study(study)
    typer.echo(f"The tables are in {report}")


@app.command()
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

    from veilkit.audit.cache import Cache
    from veilkit.audit.reproduce.cells import Cells
    from veilkit.audit.reproduce.disguise_models import Models, independent_judges, load_models
    from veilkit.audit.reproduce.disguise_plan import DisguiseStudyConfig, study_settings
    from veilkit.audit.reproduce.disguise_report import run_study
    from veilkit.audit.reproduce.disguise_study import DisguiseStudy
    from veilkit.configs import parse_settings, with_settings
    from veilkit.datasets.folder import load_folder
    from veilkit.datasets.lfw import load_lfw
    from veilkit.progress import Progress

    torch.set_num_threads(threads)
    config = with_settings(DisguiseStudyConfig(), parse_settings(settings or []))
    models = Models(load_models(model), config, out / "transforms")
    judges = independent_judges(judge or ["mobilefacenet"], models.main)
    facts = study_settings(config, models.fingerprints(), list(judges.values()))
    others = None if elsewhere is None else load_folder(elsewhere, "folder", "elsewhere")
    with (
        Progress(config.cells(len(judges), others is not None), "cells") as progress,
        Cache(out / "features.sqlite") as cache,
    ):
        study = DisguiseStudy(
            load_lfw(lfw), out, config, Cells(out, facts, progress), models=models, judges=judges, cache=cache,
            workers=len(os.sched_getaffinity(0)) if workers is None else workers, elsewhere=others,
        )  # fmt: skip
        report = run_study(study)
    typer.echo(f"The tables are in {report}")


@app.command()
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

    from veilkit.audit.reproduce.cells import Cells
    from veilkit.audit.reproduce.fro_faces import FaceStudyConfig, faces_table, run_faces
    from veilkit.configs import parse_settings, with_settings
    from veilkit.datasets.lfw import load_lfw
    from veilkit.pipeline.writing import write_atomically
    from veilkit.progress import Progress

    torch.set_num_threads(threads)
    config = with_settings(FaceStudyConfig(), parse_settings(settings or []))
    with Progress(config.cells(), "cells") as progress:
        found = run_faces(
            load_lfw(lfw), out, config, Cells(out, asdict(config), progress), init=init,
            workers=len(os.sched_getaffinity(0)) if workers is None else workers,
        )  # fmt: skip
    write_atomically(out / "report.md", (faces_table(found) + "\n").encode(), out)
    typer.echo(f"The table is in {out / 'report.md'}")

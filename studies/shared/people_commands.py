"""Studies of methods for pictures of people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from studies.shared.options import Data, Expert, Init, Judge, Out, Settings, Threads, Workers, cores


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

    from studies.fro.report import run_study
    from studies.fro.study import FroStudy, FroStudyConfig
    from studies.shared.cells import Cells
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
            workers=cores(workers),
        )  # fmt: skip
        report = run_study(study)
    typer.echo(f"The tables are in {report}")


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

    from studies.pixelfade.plan import PixelFadeStudyConfig, study_settings
    from studies.pixelfade.report import run_study
    from studies.pixelfade.study import PixelFadeStudy
    from studies.shared.cells import Cells
    from veilkit.audit.inputs.cache import Cache
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
            workers=cores(workers),
        )  # fmt: skip
        report = run_study(study)
    typer.echo(f"The tables are in {report}")


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

    from studies.privacyreid.plan import PrivacyReidStudyConfig, study_settings
    from studies.privacyreid.report import run_study
    from studies.privacyreid.study import PrivacyReidStudy
    from studies.shared.cells import Cells
    from veilkit.audit.inputs.cache import Cache
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
            workers=cores(workers), threads=threads,
        )  # fmt: skip
        report = run_study(study)
    typer.echo(f"The tables are in {report}")


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

    from studies.peprnet.plan import PeprStudyConfig, study_settings
    from studies.peprnet.report import run_study
    from studies.peprnet.study import PeprStudy
    from studies.shared.cells import Cells
    from veilkit.audit.inputs.cache import Cache
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

"""PEPR-Net on CUHK03-NP: the study as the runner sees it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from studies.peprnet.cells import PeprCells
from studies.peprnet.claims import rows, withheld
from studies.peprnet.plan import CURVE, TRADE, PeprStudyConfig, cell_names, scale, study_settings
from studies.peprnet.tables import page_tables
from studies.shared.recognisers import IMAGENET, JUDGE, load_judge
from studies.shared.study import Cells, ClaimRow, Input, Run, Study


class PeprStudy(Study[PeprStudyConfig]):
    """What encoders keep and give away, what noise does to that, and what attackers get."""

    name = "pepr"
    title = "PEPR-Net in small"
    data = "CUHK03-NP, detected, 128x64"
    folder = Path(__file__).parent
    threads = 1  # on which a training's last bits depend
    figures = (CURVE, TRADE)
    inputs = (
        Input("init", "weights that encoders start from; none for scratch", "models/cuhk03_mobilenetv2.safetensors",
              file=True),
        Input("public-init", "weights of the rivals' frozen backbone, which must not know the training people",
              IMAGENET, file=True),
        Input("judge", "independent recogniser that judges pictures, a name or a file", JUDGE),
    )  # fmt: skip
    published = PeprStudyConfig()

    def cells(self, config: PeprStudyConfig, inputs: Mapping[str, Any]) -> tuple[str, ...]:
        """As the plan has them."""
        return cell_names(config)

    def open(self, run: Run[PeprStudyConfig]) -> PeprCells:
        """The judge is loaded; it and both weights to start from count among the settings."""
        judge, init, public = load_judge(run.inputs["judge"], run.data), run.file("init"), run.file("public-init")
        return PeprCells(
            run.people, run.folder, run.config, run.store(study_settings(run.config, judge, init, public)),
            judge=judge, cache=run.cache, init=init, public_init=public,
        )  # fmt: skip

    def tables(self, cells: Cells, config: PeprStudyConfig) -> dict[str, str]:
        """Encoders, noise, attacks and rivals."""
        return {"peprnet": page_tables(cells, config)}

    def claims(self, cells: Cells, config: PeprStudyConfig) -> list[ClaimRow]:
        """Of three forms of stage 1, and of noise."""
        return rows(cells, config)

    def scale(self, cells: Cells, config: PeprStudyConfig) -> str:
        """People, backbone and epochs."""
        return scale(config)

    def withheld(self, cells: Cells, config: PeprStudyConfig) -> list[str]:
        """Identification that failed its gates."""
        return withheld(cells)


STUDY = PeprStudy()

"""FRO on CUHK03-NP: the study as the runner sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from studies.fro.cells import FroCells
from studies.fro.claims import rows
from studies.fro.plan import FroStudyConfig, cell_names, scale
from studies.fro.tables import page_tables
from studies.shared.recognisers import IMAGENET, JUDGE, load_judge
from studies.shared.study import Cells, ClaimRow, Input, Run, Study


class FroStudy(Study[FroStudyConfig]):
    """A pool, releases, and the students of each, measured on people nobody trained on."""

    name = "fro"
    title = "FRO in small"
    data = "CUHK03-NP, detected, 128x64"
    folder = Path(__file__).parent
    inputs = (
        Input("init", "weights that pool and students start from; none for scratch", IMAGENET, file=True),
        Input("judge", "independent recogniser to attack with, a name or a file", JUDGE),
    )
    published = FroStudyConfig()

    def cells(self, config: FroStudyConfig, inputs: Mapping[str, Any]) -> tuple[str, ...]:
        """As the plan has them."""
        return cell_names(config)

    def open(self, run: Run[FroStudyConfig]) -> FroCells:
        """The judge is loaded."""
        judge = load_judge(run.inputs["judge"], run.data)
        return FroCells(
            run.people, run.folder, run.config, run.store(asdict(run.config)), judge=judge, init=run.file("init"),
            workers=run.workers,
        )  # fmt: skip

    def tables(self, cells: Cells, config: FroStudyConfig) -> dict[str, str]:
        """Students, likeness, attacks, clusters and the grid."""
        return {"fro": page_tables(cells, config) if "pool" in cells else "Not measured yet."}

    def claims(self, cells: Cells, config: FroStudyConfig) -> list[ClaimRow]:
        """What the student keeps, and what attacks find."""
        return rows(cells, config)

    def scale(self, cells: Cells, config: FroStudyConfig) -> str:
        """People, backbone and synthesis."""
        return scale(config)


STUDY = FroStudy()

"""PrivacyReID on CUHK03-NP: the study as the runner sees it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from studies.privacyreid.cells import PrivacyReidCells
from studies.privacyreid.claims import rows, withheld
from studies.privacyreid.plan import PrivacyReidStudyConfig, cell_names, scale, study_settings
from studies.privacyreid.tables import informed, page_tables
from studies.shared.recognisers import IMAGENET, JUDGE, load_judge
from studies.shared.study import ROOT, Cells, ClaimRow, Input, Run, Study


class PrivacyReidStudy(Study[PrivacyReidStudyConfig]):
    """Base, without and with upgradation: what they keep, what comes back, and what attackers get."""

    name = "privacyreid"
    title = "PrivacyReID in small"
    data = "CUHK03-NP, detected, 128x64"
    folder = Path(__file__).parent
    figures = ("checks-pixelate-with.svg", "checks-pixelate-without.svg")
    pages = (ROOT / "docs" / "recovery.md",)
    inputs = (
        Input("init", "weights that recognisers start from; none for scratch", IMAGENET, file=True),
        Input("judge", "independent recogniser to attack with, a name or a file", JUDGE),
    )
    published = PrivacyReidStudyConfig()

    def cells(self, config: PrivacyReidStudyConfig, inputs: Mapping[str, Any]) -> tuple[str, ...]:
        """As the plan has them."""
        return cell_names(config)

    def open(self, run: Run[PrivacyReidStudyConfig]) -> PrivacyReidCells:
        """The judge is loaded; with two workers or more, two trainings run at a time and share the threads."""
        judge, init = load_judge(run.inputs["judge"], run.data), run.file("init")
        return PrivacyReidCells(
            run.people, run.folder, run.config, run.store(study_settings(run.config, judge, init)), judge=judge,
            cache=run.cache, init=init, workers=run.workers, threads=run.threads,
        )  # fmt: skip

    def tables(self, cells: Cells, config: PrivacyReidStudyConfig) -> dict[str, str]:
        """Of the first supervision, and what everybody gets by what they hold."""
        return {"privacyreid": page_tables(cells, config), "privacyreid attackers": informed(cells, config)}

    def claims(self, cells: Cells, config: PrivacyReidStudyConfig) -> list[ClaimRow]:
        """Of the first supervision."""
        return rows(cells, config)

    def scale(self, cells: Cells, config: PrivacyReidStudyConfig) -> str:
        """Training, test people and attackers."""
        return scale(config)

    def withheld(self, cells: Cells, config: PrivacyReidStudyConfig) -> list[str]:
        """A stranger who failed the gates."""
        return withheld(cells)


STUDY = PrivacyReidStudy()

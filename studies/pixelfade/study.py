"""PixelFade, AVIH and controls on CUHK03-NP: the study as the runner sees it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from studies.pixelfade.cells import PixelFadeCells
from studies.pixelfade.claims import rows, withheld
from studies.pixelfade.plan import PixelFadeStudyConfig, cell_names, scale, study_settings
from studies.pixelfade.tables import beside_avih, page_tables
from studies.shared.recognisers import JUDGE, load_judge
from studies.shared.study import Cells, ClaimRow, Input, Run, Study
from veilkit.experts import load_expert


class PixelFadeStudy(Study[PixelFadeStudyConfig]):
    """Releases of one set of pictures: what they keep, and what attackers get."""

    name = "pixelfade"
    title = "PixelFade in small"
    data = "CUHK03-NP, detected, 128x64"
    folder = Path(__file__).parent
    inputs = (
        Input("expert", "authorised recogniser, a name or a file", "models/cuhk03_mobilenetv2.safetensors"),
        Input("judge", "independent recogniser to attack with, a name or a file", JUDGE),
    )
    published = PixelFadeStudyConfig(experts=("models/cuhk03_efficientnet.safetensors",))

    def cells(self, config: PixelFadeStudyConfig, inputs: Mapping[str, Any]) -> tuple[str, ...]:
        """As the plan has them."""
        return cell_names(config)

    def open(self, run: Run[PixelFadeStudyConfig]) -> PixelFadeCells:
        """The expert and the judge are loaded; both count among the settings."""
        expert, judge = run.inputs["expert"], load_judge(run.inputs["judge"], run.data)
        store = run.store(study_settings(run.config, load_expert(expert), judge))
        return PixelFadeCells(
            run.people, run.folder, run.config, store, expert=expert, judge=judge, cache=run.cache,
            workers=run.workers,
        )  # fmt: skip

    def tables(self, cells: Cells, config: PixelFadeStudyConfig) -> dict[str, str]:
        """Of all releases, and AVIH beside PixelFade."""
        return {"pixelfade": page_tables(cells, config), "avih": beside_avih(cells, config)}

    def claims(self, cells: Cells, config: PixelFadeStudyConfig) -> list[ClaimRow]:
        """What PixelFade keeps, what is recovered, and where people are seen to stand."""
        return rows(cells, config)

    def scale(self, cells: Cells, config: PixelFadeStudyConfig) -> str:
        """People, pictures and attackers."""
        return scale(config)

    def withheld(self, cells: Cells, config: PixelFadeStudyConfig) -> list[str]:
        """Attacks that failed their gates."""
        return withheld(cells)


STUDY = PixelFadeStudy()

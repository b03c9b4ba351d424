"""Disguise on LFW: the study as the runner sees it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from studies.disguise.cells import DisguiseCells
from studies.disguise.claims import rows, withheld
from studies.disguise.models import Models, independent_judges, judge_name, load_models
from studies.disguise.plan import JUDGE, DisguiseStudyConfig, cell_names, study_settings
from studies.disguise.tables import page_tables, scale
from studies.shared.recognisers import IMAGENET
from studies.shared.study import Cells, ClaimRow, Input, Run, Study
from veilkit.datasets.folder import load_folder


class DisguiseStudy(Study[DisguiseStudyConfig]):
    """Who is recognised in swapped faces, what inverts them, what they keep, and what they teach."""

    name = "disguise"
    title = "Disguise in small"
    data = "LFW, folds 8 to 10, 192x192"
    folder = Path(__file__).parent
    threads = 1
    figures = (f"roc-{JUDGE}.svg", f"distances-{JUDGE}.svg")
    inputs = (
        Input("model", "fitted by `veilkit fit disguise`; again for one with another transform",
              "models/lfw_disguise.safetensors", many=True, file=True),
        Input("judge", "identity expert that took no part in training; again for more", JUDGE, many=True),
        Input("start", "weights of attackers who train a recogniser; none for scratch", IMAGENET, file=True),
        Input("elsewhere", "faces of another set, a folder per person, that teach inversion too"),
    )  # fmt: skip
    # About an hour and a half of one core; all people of the folds would take six.
    published = DisguiseStudyConfig(people=300, public_people=250, noises=(0.5, 8.0), alone=(1.0,))

    def cells(self, config: DisguiseStudyConfig, inputs: Mapping[str, Any]) -> tuple[str, ...]:
        """Those by each judge, and the others."""
        judges = [judge_name(judge) for judge in inputs["judge"]]
        return cell_names(config, judges, inputs["elsewhere"] is not None)

    def open(self, run: Run[DisguiseStudyConfig]) -> DisguiseCells:
        """Models and judges are loaded; a judge that took part in training is refused."""
        config, start, elsewhere = run.config, run.file("start"), run.file("elsewhere")
        models = Models(load_models([Path(file) for file in run.inputs["model"]]), config, run.folder / "transforms")
        judges = independent_judges(run.inputs["judge"], models.given)
        store = run.store(study_settings(config, models.fingerprints(), list(judges.values()), start))
        return DisguiseCells(
            run.faces, run.folder, config, store, models=models, judges=judges, cache=run.cache, workers=run.workers,
            elsewhere=None if elsewhere is None else load_folder(elsewhere, "folder", "elsewhere"), start=start,
        )  # fmt: skip

    def tables(self, cells: Cells, config: DisguiseStudyConfig) -> dict[str, str]:
        """By each judge, and what is kept, taught, attacked and guaranteed."""
        return {"disguise": page_tables(cells, config)}

    def claims(self, cells: Cells, config: DisguiseStudyConfig) -> list[ClaimRow]:
        """Of the main transform."""
        return rows(cells, config)

    def scale(self, cells: Cells, config: DisguiseStudyConfig) -> str:
        """Pictures and people, and which transforms were fitted apart."""
        return scale(cells, config)

    def withheld(self, cells: Cells, config: DisguiseStudyConfig) -> list[str]:
        """Inversions that failed their gates, and a landmark network that learned nothing."""
        return withheld(cells, config)


STUDY = DisguiseStudy()

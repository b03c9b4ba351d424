"""FRO on faces: the study as the runner sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from studies.fro_faces.cells import FaceCells
from studies.fro_faces.plan import MODELS, FaceStudyConfig
from studies.fro_faces.tables import page_table
from studies.shared.claim_rows import claim_row
from studies.shared.recognisers import IMAGENET
from studies.shared.study import Cells, ClaimRow, Input, Run, Study

_CELLS = tuple(f"faces/{name}" for name in (*MODELS, "ssim"))


class FroFacesStudy(Study[FaceStudyConfig]):
    """Pool and students verify people of LFW whom nobody trained on."""

    name = "fro-faces"
    title = "FRO on faces in small"
    data = "LFW, middle of the deep-funneled pictures, official pairs of folds 8 to 10"
    folder = Path(__file__).parent
    inputs = (Input("init", "weights that pool and students start from; none for scratch", IMAGENET, file=True),)
    published = FaceStudyConfig()

    def cells(self, config: FaceStudyConfig, inputs: Mapping[str, Any]) -> tuple[str, ...]:
        """Three models, and likeness."""
        return _CELLS

    def open(self, run: Run[FaceStudyConfig]) -> FaceCells:
        """Nothing but the pictures is loaded."""
        store = run.store(asdict(run.config))
        return FaceCells(run.faces, run.folder, run.config, store, init=run.file("init"), workers=run.workers)

    def tables(self, cells: Cells, config: FaceStudyConfig) -> dict[str, str]:
        """One table, where all of it was measured."""
        found = _by_last_name(cells)
        return {"fro-faces": page_table(found, config) if len(found) == len(_CELLS) else "Not measured yet."}

    def claims(self, cells: Cells, config: FaceStudyConfig) -> list[ClaimRow]:
        """What the student loses."""
        found = _by_last_name(cells)
        if len(found) < len(_CELLS):
            return []
        accuracy = {name: found[name]["accuracy"] for name in MODELS}
        shown = {name: "{:.1f} % [{:.1f}, {:.1f}]".format(*(100 * end for end in accuracy[name])) for name in MODELS}
        lost = 100 * (accuracy["pool"][0] - accuracy["student"][0])
        note = f"pool {shown['pool']}, student {shown['student']}, student of the originals {shown['originals']}"
        claim = "Verification accuracy on LFW that FRO's student loses against the pool"
        return [claim_row("fro-faces", claim, lost, "<= 10", "points", 1, note)]

    def scale(self, cells: Cells, config: FaceStudyConfig) -> str:
        """Training people, pairs and training."""
        pairs = cells.get("faces/pool", {}).get("pairs", "official")
        return (
            f"{config.people} training people, {pairs} pairs, {config.backbone}, {config.epochs} epochs, "
            f"{config.steps} steps"
        )


def _by_last_name(cells: Cells) -> dict[str, Any]:
    return {name.removeprefix("faces/"): cells[name] for name in _CELLS if name in cells}


STUDY = FroFacesStudy()

"""FRO on faces: the study as the runner sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from studies.fro_faces.cells import MODELS, FaceCells, FaceStudyConfig
from studies.shared.face_data import RATES
from studies.shared.recognisers import IMAGENET
from studies.shared.study import Cells, ClaimRow, Input, Run, Study
from studies.shared.tables import claim_row


def page_table(found: Mapping[str, Mapping[str, Any]], config: FaceStudyConfig) -> str:
    """The table, and what it is of."""
    about = (
        f"LFW (middle of the deep-funneled pictures, {config.size[0]}x{config.size[1]}), {config.people} training "
        f"people, {config.backbone}, preset `{config.preset}`, {config.steps} steps, scale {config.scale:g}, seed "
        f"{config.seed}, on a CPU; rates in %."
    )
    return f"{about}\n\n{faces_table(found)}"


def faces_table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Verification by pool and students; shares in %. found: the cells by their last names."""
    names = {
        "pool": "pool (trained on the originals)",
        "originals": "student of the originals",
        "student": "student of FRO",
    }
    rates = [f"TPR at FPR {rate:g}" for rate in RATES]
    lines = [
        "| model | pictures | accuracy | lost | EER | " + " | ".join(rates) + " |",
        "| --- " * (5 + len(rates)) + "|",
    ]
    for key, name in names.items():
        cell = found[key]
        value, low, high = (100 * end for end in cell["accuracy"])
        lost = 100 * (found["pool"]["accuracy"][0] - cell["accuracy"][0])
        others = [f"{100 * cell[metric]:.1f}" for metric in ("eer", *(f"tpr@{rate:g}" for rate in RATES))]
        row = [name, str(cell["pictures"]), f"{value:.1f} [{low:.1f}, {high:.1f}]", f"{lost:.1f}", *others]
        lines.append("| " + " | ".join(row) + " |")
    pool, alike = found["pool"], found["ssim"]
    lines += [
        "",
        f"Accuracy on {pool['pairs']:,} official pairs of {pool['people']:,} people whom nobody trained on, with "
        "95 % intervals over people; the threshold of a fold is chosen on the other test folds. EER and TPR over all "
        f"pairs of {pool['test_pictures']:,} of their pictures: {pool['genuine']:,} of one person, "
        f"{pool['impostor']:,} of two. Mean SSIM of a synthetic picture and an original of the same class: "
        f"{alike['ssim']:.3f} ({alike['pairs']:,} pairs).",
    ]
    return "\n".join(lines)


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

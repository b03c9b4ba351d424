"""The table of FRO's study of faces, from its cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.fro_faces.plan import FaceStudyConfig
from studies.shared.face_verification import RATES


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

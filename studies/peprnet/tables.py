"""The tables of PEPR-Net's study as Markdown, from its cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.peprnet.plan import (
    ALTERNATING,
    BASELINE,
    CURVE,
    DPSGD,
    FROZEN,
    HEADLESS,
    STAGE1,
    STRONG,
    WIDE,
    PeprStudyConfig,
    scale,
)
from studies.shared.tables import Row, markdown, named_cells, percent, remark, with_interval
from veilkit.attacks.identify import ACCURACY, CLASSIFIERS
from veilkit.methods.peprnet.feature_noise import NoiseKind

NAMES = {
    BASELINE: "baseline", "clean": "+ clean decoder", "blur": "+ De-ID, blur", "obfuscate": "+ De-ID, obfuscation",
    "pixelate": "+ De-ID, pixelation", "adversary": "+ Adv-ID", STAGE1: "**stage 1** (De-ID, pixelation + Adv-ID)",
    ALTERNATING: "stage 1, alternating adversary", STRONG: "stage 1, alternating adversary, weight 1",
    "printed": "stage 1, Eq. 2 summed as printed", WIDE: "stage 1, 512 features",
    FROZEN: "ImageNet's features, linear head", DPSGD: "the same head by DP-SGD",
    HEADLESS: "baseline, heads blurred", "stage1-noisy": "stage 1 with noise",
}  # fmt: skip
# mAP / Top-1 / ID of Tables 1 and 4, on CUHK03-NP.
PAPER = {
    BASELINE: "75.7 / 97.3 / 90.1", "clean": "76.4 / 97.2 / 90.0", "blur": "70.4 / 95.2 / 79.9",
    "obfuscate": "62.4 / 82.4 / 60.4", "pixelate": "69.2 / 93.5 / 69.7", "adversary": "58.5 / 83.5 / 60.2",
    STAGE1: "69.4 / 90.4 / 64.1",
}  # fmt: skip
PAPER_NOISE = {1.0: "67.1 / 87.2 / 62.5", 0.5: "62.5 / 79.3 / 41.1", 0.1: "55.2 / 71.8 / 28.8"}
_ID = tuple(f"ID, {name}" for name in CLASSIFIERS)


def encoders_table(models: Mapping[str, Row]) -> str:
    """Table 1: utility against identification, in %; the paper's figures beside it."""
    rows = [
        (NAMES[name], *_kept(cell["utility"]), *_named(cell["identification"]), PAPER.get(name, ""),
         remark(cell["identification"]))
        for name, cell in models.items()
    ]  # fmt: skip
    return markdown(("encoder", "mAP", "Rank-1", *_ID, "paper: mAP / Top-1 / ID", "remark"), rows)


def changes_table(changed: Mapping[str, Row]) -> str:
    """Paired differences from the baseline, in points."""
    metrics = ("mAP", "rank-1", *CLASSIFIERS)
    rows = [(NAMES[name], *(percent(cell.get(metric)) for metric in metrics)) for name, cell in changed.items()]
    return markdown(("encoder minus baseline, points", "mAP", "Rank-1", *_ID), rows)


def noise_table(cells: Mapping[tuple[str, NoiseKind, float], Row]) -> str:
    """Tables 2 to 4: a protected gallery, by encoder, kind of noise and epsilon."""
    rows = []
    for (name, kind, epsilon), cell in cells.items():
        proved = "none" if cell["proved"] is None else f"{cell['proved']:g}"
        paper = PAPER_NOISE.get(epsilon, "") if kind == "paper" and name == STAGE1 else ""
        rows.append(
            (NAMES[name], kind, f"{epsilon:g}", proved, *_kept(cell["utility"]), *_named(cell["identification"]),
             paper, remark(cell["identification"]))
        )  # fmt: skip
    head = ("encoder", "noise", "epsilon", "proved", "mAP", "Rank-1", *_ID, "paper: mAP / Top-1 / ID", "remark")
    return markdown(head, rows)


def curve_table(curves: Mapping[tuple[int, NoiseKind], Row]) -> str:
    """Rank-1 in % against epsilon: of the person, and of the very picture."""
    rows = []
    for (dimension, kind), cell in curves.items():
        points = [(key, point) for key, point in cell.items() if key not in ("clean", "people")]
        shown = [
            f"{key}: not drawable" if point is None
            else f"{key}: {100 * point['person']:.1f} / {100 * point['record']:.1f}"
            for key, point in points
        ]  # fmt: skip
        rows.append((f"{dimension}", kind, f"{100 * cell['clean']['person']:.1f}", "; ".join(shown)))
    return markdown(("features", "noise", "person, without noise", "epsilon: person / very picture"), rows)


def averaging_table(cells: Mapping[NoiseKind, Row]) -> str:
    """What repeated releases give away, in %."""
    rows = [
        (kind, count, f"{found['epsilon']:.1f}",
         *(f"{100 * found[name]:.1f}" for name in ("rank-1", "1-NN", "centroid")))
        for kind, cell in cells.items()
        for count, found in cell.items()
    ]  # fmt: skip
    return markdown(("noise", "releases averaged", "epsilon together", "Rank-1", "ID, 1-NN", "ID, centroid"), rows)


def reconstruction_table(cells: Mapping[str, Row]) -> str:
    """Pictures decoded from features."""
    rows = []
    for name, cell in cells.items():
        scores = cell["scores"]
        rows.append(
            (NAMES[name], with_interval(scores.get("SSIM"), 3), with_interval(scores.get("PSNR"), 2),
             *(percent(scores.get(metric)) for metric in ("rank-1", "person rank-1")), remark(cell))
        )  # fmt: skip
    return markdown(("features of", "SSIM", "PSNR, dB", "very original found", "person found", "remark"), rows)


def membership_table(cells: Mapping[str, Row]) -> str:
    """Whether training people can be told from others."""
    metrics = ("AUC", "TPR at 1% FPR", "balanced accuracy")
    rows = [
        (NAMES[name], *(with_interval(cell["scores"].get(metric), 3) for metric in metrics))
        for name, cell in cells.items()
    ]  # fmt: skip
    return markdown(("encoder", *metrics), rows)


def pictures_table(cells: Mapping[str, Row]) -> str:
    """The decoder's pictures as a release."""
    rows = []
    for name, cell in cells.items():
        settings = cell["judge"]["settings"]
        rows.append(
            (NAMES[name], with_interval(cell["pictures"]["SSIM"], 3), with_interval(cell["pictures"]["PSNR"], 2),
             percent(settings["protected-protected"]["rank-1"]), percent(settings["protected-raw"]["rank-1"]),
             percent(cell["own_original"]["scores"].get("rank-1")),
             "; ".join(filter(None, (remark(cell[each]) for each in ("stock_recogniser", "own_original")))))
        )  # fmt: skip
    head = ("decoder of", "SSIM", "PSNR, dB", "a stranger's Rank-1, among themselves", "in originals",
            "very original found", "remark")  # fmt: skip
    return markdown(head, rows)


def losses_table(trainings: Mapping[str, Row]) -> str:
    """The losses of the first and of the last epoch, and what became of the adversary's weights."""
    rows = []
    for name, cell in trainings.items():
        first, last = cell["history"][0], cell["history"][-1]
        rows.append(
            (NAMES[name], f"{last['epoch']:g}",
             *(f"{first[part]:.4g} to {last[part]:.4g}" for part in ("reid", "deid", "adversary", "head weight")))
        )  # fmt: skip
    return markdown(("encoder", "epochs", "Eq. 1", "Eq. 2", "Eq. 3", "adversary's weights (rms)"), rows)


def _kept(cell: Row) -> tuple[str, str]:
    return percent(cell["mAP"]), percent(cell["rank-1"])


def _named(cell: Row) -> tuple[str, ...]:
    return tuple(percent(cell["scores"].get(f"{ACCURACY} ({name})")) for name in CLASSIFIERS)


def page_tables(cells: Mapping[str, Any], config: PeprStudyConfig) -> str:
    """What stands on PEPR-Net's page, as far as it is computed."""
    sections = [
        f"CUHK03-NP (detected, 128x64): {scale(config)}; seed {config.seed}, on a CPU. "
        "Rates in %, with 95 % intervals over people who were not trained on."
    ]
    if models := named_cells(cells, "model", config.models):
        sections += [
            "Table 1, utility against closed-set identification by three classifiers:",
            encoders_table(models),
        ]
    if changed := named_cells(cells, "change", config.changed):
        sections += ["Against the baseline, paired:", changes_table(changed)]
    if trainings := named_cells(cells, "training", config.models):
        sections += ["Losses from the first epoch to the last:", losses_table(trainings)]
    noisy = noise_cells(cells, config)
    if noisy:
        sections += [
            f"Tables 2 to 4, a gallery with noise (delta {config.delta:g} for Gaussian, {config.paper_delta:g} for "
            "the paper's, else 0):",
            noise_table(noisy),
        ]
    if curves := curve_cells(cells, config):
        sections += [
            f"Rank-1 against epsilon, one noisy picture of each person ([figure]({CURVE})):",
            curve_table(curves),
        ]
    if averaged := {kind: cells[f"averaging/{kind}"] for kind in config.averaged if f"averaging/{kind}" in cells}:
        sections += [
            f"Releases of stage 1 at epsilon {config.averaging_epsilon:g} with fresh noise, averaged:",
            averaging_table(averaged),  # type: ignore[arg-type]
        ]
    if decoded := named_cells(cells, "reconstruction", (*config.reconstructed, "stage1-noisy")):
        sections += ["Pictures reconstructed from features:", reconstruction_table(decoded)]
    if members := named_cells(cells, "membership", config.models):
        sections += ["Training people told from others:", membership_table(members)]
    if pictures := named_cells(cells, "pictures", config.pictured):
        sections += ["The decoder's pictures as a release:", pictures_table(pictures)]
    if rivals := named_cells(cells, "rival", config.rivals):
        sections += ["Rivals:", encoders_table(rivals)]
    return "\n\n".join(sections)


def curve_cells(cells: Mapping[str, Any], config: PeprStudyConfig) -> dict[Any, Any]:
    """The curves that are there, by length of features and kind of noise."""
    return {point: cells[f"curve/{point[0]}/{point[1]}"] for point in config.curves()
            if f"curve/{point[0]}/{point[1]}" in cells}  # fmt: skip


def noise_cells(cells: Mapping[str, Any], config: PeprStudyConfig) -> dict[tuple[str, NoiseKind, float], Any]:
    """Galleries with noise that are there, by encoder, kind of noise and epsilon."""
    return {
        (name, kind, epsilon): cells[cell]
        for name in config.noisy
        for kind, epsilon in config.noises()
        if (cell := f"stage2/{name}/{kind}/{epsilon:g}") in cells
    }

"""What PEPR-Net's study found: every cell in order, the tables as Markdown, the figures as SVG."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from studies.peprnet.plan import PAPERS_NOISE
from studies.peprnet.study import PeprStudy
from studies.peprnet.tables import (
    NAMES,
    averaging_table,
    changes_table,
    curve_table,
    encoders_table,
    losses_table,
    membership_table,
    noise_table,
    pictures_table,
    reconstruction_table,
)
from studies.privacyreid.feature_distribution import draw_distributions
from studies.shared.figures import Point, plot, sheet
from studies.shared.tables import Row
from veilkit.attacks.identify import ACCURACY, CENTROID, NEIGHBOUR, SOFTMAX
from veilkit.media.writing import write_atomically
from veilkit.methods.peprnet.feature_noise import NoiseKind

CURVE, TRADE, PLANE = "rank-1-epsilon.svg", "privacy-utility.svg", "t-sne.svg"
_COLUMNS = 10  # pictures on a sheet


def run_study(study: PeprStudy) -> Path:
    """Compute every cell and write report.md with its figures; returns the report's file."""
    config = study.config
    trainings = {name: study.training(name) for name in config.models}
    models = {name: study.model(name) for name in config.models}
    rivals = {name: study.rival(name) for name in config.rivals}
    changed = {name: study.change(name) for name in config.changed}
    noisy = {
        (name, kind, epsilon): study.stage2(name, kind, epsilon)
        for name in config.noisy
        for kind, epsilon in config.noises()
    }
    curves: dict[tuple[int, NoiseKind], Row] = {point: study.curve(*point) for point in config.curves()}
    averaged = {kind: study.averaging(kind) for kind in _kinds(config.averaged)}
    decoded = {name: study.reconstruction(name) for name in study.reconstructed}
    members = {name: study.membership(name) for name in config.models}
    planes = {name: study.plane(name) for name in config.plotted}
    pictures = {name: study.pictures(name) for name in config.pictured}
    file = study.folder / "sheets" / "reconstructed.png"
    if not file.exists() and all(cell["applicable"] for cell in decoded.values()):
        sheet(file, study.shown(_COLUMNS))
    draw_curve(study.folder / CURVE, curves)
    draw_trade(study.folder / TRADE, {**models, **rivals}, noisy)
    panels = {f"({letter}) {_plain(name)}": cell for letter, (name, cell) in zip("abc", planes.items(), strict=False)}
    draw_distributions(
        study.folder / PLANE, "Features of some test people (paper: Figure 6)", panels,
        ("feature", f"with PrivUnit's noise, epsilon {max(config.epsilons):g}"),
    )  # fmt: skip
    method = config.method
    people = "all" if config.training_people is None else f"{config.training_people}"
    parts = [
        "# PEPR-Net in small",
        f"{len(next(iter(models.values()))['identification'].get('people', []))} test people, official query and "
        f"gallery; trained on {people} people of the training part, {method.backbone}, {method.epochs} epochs at "
        f"{method.size[0]} x {method.size[1]}, seed {config.seed}. Rates in %, with 95 % intervals over people. "
        "Identification (ID) is closed-set: each person's pictures are divided into some to learn from, some to "
        "choose by and some to be named in; people are the same, pictures are not. `cells/` holds each figure, "
        "`sheets/` reconstructed pictures.",
        "## Table 1: what encoders keep and give away",
        encoders_table(models),
        "Paired differences from the baseline:",
        changes_table(changed),
        "What the losses did:",
        losses_table(trainings),
        f"## Tables 2 to 4: noise on the gallery ([figure]({TRADE}))",
        "Clean queries search a gallery with noise; people are identified in noisy features. delta is "
        f"{config.delta:g} for Gaussian noise, {config.paper_delta:g} for the paper's, else 0.",
        noise_table(noisy),
        f"## [Rank-1 against epsilon]({CURVE})",
        f"Among as many noisy pictures as people, means over {config.draws} releases.",
        curve_table(curves),
        "## Repeated releases",
        f"Of stage 1, each at epsilon {config.averaging_epsilon:g} with fresh noise; a ledger gives the same vector.",
        averaging_table(averaged),
        "## Reconstructed pictures (Figure 7)",
        reconstruction_table(decoded),
        "## Membership: was this person trained on?",
        membership_table(members),
        "## The decoder's pictures as a release",
        pictures_table(pictures),
        "## Rivals",
        encoders_table(rivals),
        f"## [t-SNE]({PLANE}) (Figure 6)",
        "## Settings",
        "```json\n" + json.dumps(asdict(config), indent=2) + "\n```",
    ]
    report = study.folder / "report.md"
    write_atomically(report, ("\n\n".join(parts) + "\n").encode(), study.folder)
    return report


def draw_curve(file: Path, curves: Mapping[tuple[int, NoiseKind], Row]) -> None:
    """Rank-1 of the person against epsilon, a line for each length and kind of noise."""
    series: dict[str, list[Point]] = {}
    for (dimension, kind), cell in curves.items():
        name = f"{kind}, {dimension} features" + (" (no guarantee)" if kind == PAPERS_NOISE else "")
        points = {key: point for key, point in cell.items() if key not in ("clean", "people") and point is not None}
        last = max(points, key=float, default="")  # where a line ends stands the length of its features
        series[name] = [
            (float(key), point["person"], f"{dimension}" if key == last else "") for key, point in points.items()
        ]
    plot(
        file, "Rank-1 in a gallery with noise", {name: points for name, points in series.items() if points},
        across="epsilon (logarithmic)", up="Rank-1 (share)", logarithmic=True,
    )  # fmt: skip


def draw_trade(file: Path, models: Mapping[str, Row], noisy: Mapping[tuple[str, NoiseKind, float], Row]) -> None:
    """Identification by the strongest classifier against mAP (the paper's Figure 5): right and low is good."""
    series: dict[str, list[Point]] = {"without noise": [], "with noise": []}
    for name, cell in models.items():
        series["without noise"].append((cell["utility"]["mAP"][0], _strongest(cell), _plain(name)))
    for cell in noisy.values():
        series["with noise"].append((cell["utility"]["mAP"][0], _strongest(cell), ""))
    plot(
        file, "Privacy and utility (paper: Figure 5)", series, across="mAP", up="identified (share), best classifier",
        joined=False,
    )  # fmt: skip


def _strongest(cell: Row) -> float:
    scores = cell["identification"]["scores"]
    found = [scores[f"{ACCURACY} ({name})"][0] for name in (SOFTMAX, NEIGHBOUR, CENTROID)
             if f"{ACCURACY} ({name})" in scores]  # fmt: skip
    return max(found, default=0.0)


def _kinds(names: tuple[str, ...]) -> list[NoiseKind]:
    known: list[NoiseKind] = ["privunit", "gaussian", "laplace"]
    return [kind for kind in known if kind in names]


def _plain(name: str) -> str:
    return NAMES[name].replace("*", "").replace("`", "")

"""What PrivacyReID's study found: every cell in order, the tables as Markdown, the figures as SVG."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from studies.privacyreid.feature_distribution import draw_distributions
from studies.privacyreid.plan import BASE, LEARNED, STAGES, STRANGER, WITH
from studies.privacyreid.study import PrivacyReidStudy
from studies.privacyreid.tables import (
    NAMES,
    checks_table,
    features_table,
    informed_table,
    likeness_table,
    order_table,
    recovered_table,
    settings_table,
    stranger_table,
)
from studies.shared.figures import sheet
from studies.shared.tables import attacks_table, differences
from veilkit.media.writing import write_atomically
from veilkit.methods.privacyreid.method import Kind
from veilkit.methods.privacyreid.training.decision_log import decision_figure

_COLUMNS = 10  # pictures on a sheet
_PANELS = (STRANGER, *STAGES)  # Figure 9, a to d


def run_study(study: PrivacyReidStudy) -> Path:
    """Compute every cell and write report.md with its figures; returns the report's file."""
    config = study.config
    people = "all" if config.training_people is None else f"{config.training_people}"
    parts = [
        "# PrivacyReID in small",
        f"{config.people} test people, {config.queries} query and {config.gallery} gallery pictures of each at most; "
        f"trained on {people} people of the training part, {config.method.validation:.0%} of whom validate, "
        f"{config.method.reid.epochs} epochs at {config.method.size[0]} x {config.method.size[1]}; base "
        f"{config.method.baseline_epochs}. Attackers learn from {config.public_people} training people, "
        f"{config.public_pictures} pictures of each, in {config.updates} updates of {config.batch} pictures. Seed "
        f"{config.seed}. All figures are of PNG files read back; rates in %, with 95 % intervals over people. "
        "`cells/` holds each figure, `sheets/` original, protected and recovered pictures.",
    ]
    for kind in config.desensitise:
        parts += _chapter(study, kind)
    parts += ["## Settings", "```json\n" + json.dumps(asdict(config), indent=2) + "\n```"]
    file = study.folder / "report.md"
    write_atomically(file, ("\n\n".join(parts) + "\n").encode(), study.folder)
    return file


def _chapter(study: PrivacyReidStudy, kind: Kind) -> list[str]:
    config = study.config
    checks = {stage: study.training(kind, stage)["checks"] for stage in LEARNED}
    releases = {stage: study.release(kind, stage) for stage in STAGES}
    recovered = {stage: study.recovered(kind, stage) for stage in LEARNED}
    order = study.order(kind)
    features = {stage: study.features(kind, stage) for stage in _PANELS}
    compared = {name: study.attack(kind, BASE, name) for name in config.compared}
    attacks = {name: study.attack(kind, WITH, name) for name in config.attacks}
    lock = study.lock(kind) if config.locked else {}
    _draw(study, kind, checks, features)
    parts = [
        f"## First supervision: {kind}",
        f"### Table 1: recognised by a stranger, {releases[BASE]['judge']['recogniser']}",
        stranger_table(releases),
        "### Privacy, and Table 3: likeness to the originals",
        "Of the protected pictures, and of what the learned decoder makes of the released files.",
        likeness_table(releases, recovered),
        "### Table 4: retrieval in recovered pictures",
        recovered_table(recovered),
        "### Table 5: four settings, by the recogniser trained with each release",
        settings_table(releases),
        "Paired differences of Rank-1 on the same queries, in points:",
        order_table(order),
        f"### The checks with upgradation ([figure]({_checks(kind, WITH)}))",
        checks_table(checks[WITH]),
        f"Without, for comparison ([figure]({_checks(kind, LEARNED[0])})):",
        checks_table(checks[LEARNED[0]]),
        f"### [Figure 9]({_figure(kind)}): features of raw and protected pictures",
        features_table(features),
        "### What attackers get, by what they hold",
        informed_table(attacks, compared, recovered[WITH]),
    ]
    if lock:
        parts.append("The decoder with authority, minus a U-Net that never saw it, picture by picture:")
        parts += [differences(found, metric) for metric, found in lock.items()]
    parts += ["Every score, on the release with upgradation:", attacks_table(attacks)]
    return [*parts, "And on the desensitised release:", attacks_table(compared)]


def _draw(
    study: PrivacyReidStudy, kind: Kind, checks: Mapping[str, Any], features: Mapping[str, Mapping[str, Any]]
) -> None:
    for stage, decisions in checks.items():
        figure = decision_figure(decisions)
        write_atomically(study.folder / _checks(kind, stage), figure.encode(), study.folder)
    panels = {
        f"({letter}) {NAMES[name]}": cell for letter, (name, cell) in zip("abcd", features.items(), strict=True)
    }
    draw_distributions(study.folder / _figure(kind), f"Features, {kind} (paper: Figure 9)", panels)
    file = study.folder / "sheets" / f"{kind}.png"
    if not file.exists():
        sheet(file, study.shown(kind, _COLUMNS))


def _checks(kind: Kind, stage: str) -> str:
    return f"checks-{kind}-{stage}.svg"


def _figure(kind: Kind) -> str:
    return f"figure-9-{kind}.svg"

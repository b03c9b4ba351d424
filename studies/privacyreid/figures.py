"""The figures of PrivacyReID's study as SVG, from its cells."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from studies.privacyreid.feature_distribution import draw_distributions
from studies.privacyreid.tables import NAMES
from veilkit.media.writing import write_atomically
from veilkit.methods.privacyreid.config import Kind
from veilkit.methods.privacyreid.supervision import decision_figure


def draw_figures(
    folder: Path, kind: Kind, checks: Mapping[str, Any], features: Mapping[str, Mapping[str, Any]]
) -> None:
    """The checks of each training by stage, and Figure 9, a to d, of the features of each recogniser."""
    for stage, decisions in checks.items():
        write_atomically(folder / f"checks-{kind}-{stage}.svg", decision_figure(decisions).encode(), folder)
    panels = {
        f"({letter}) {NAMES[name]}": cell for letter, (name, cell) in zip("abcd", features.items(), strict=True)
    }
    draw_distributions(folder / f"figure-9-{kind}.svg", f"Features, {kind} (paper: Figure 9)", panels)

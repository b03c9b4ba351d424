"""What the study of controls computes: its options, and what of an audit its cells hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from veilkit.audit import AuditResult
from veilkit.audit.result import SETTINGS, By
from veilkit.methods import METHODS
from veilkit.types import Evidence, Score

CONTROLS = ("blur", "pixelate", "noise", "mask", "mixup", "patches")
METRICS = ("rank-1", "mAP")
RECOGNISERS: tuple[By, By] = ("expert", "judge")
UNDOING = ("jigsaw", "unmix")
_CHAOS = "chaos (AD)"


@dataclass(frozen=True, slots=True)
class ControlsConfig:
    """methods: names of methods that need no model, at their defaults."""

    methods: tuple[str, ...] = CONTROLS
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.methods:
            _ = METHODS[name]


def audited(result: AuditResult) -> dict[str, Any]:
    """What the tables and claims need of an audit, as JSON values; scores are [value, low, high]."""
    return {
        "queries": result.queries,
        "gallery": result.gallery,
        "people": result.people,
        "recognisers": {"expert": result.expert.name, "judge": result.judge.name},
        "chance": {metric: _chance(result, metric) for metric in METRICS},
        "settings": {
            by: {
                setting: {metric: _interval(result.score(by, setting, metric)) for metric in METRICS}
                for setting in SETTINGS
            }
            for by in RECOGNISERS
        },
        "SSIM": _interval(result.score("images", "protected to original", "SSIM")),
        "AD": _interval(result.score("images", "protected", "AD")),
        "AD of originals": _interval(result.score("images", "originals", "AD")),
        "AD undefined": any(each.what == _CHAOS for each in result.unmeasured),
        "invalid": {name: list(reasons) for name, reasons in result.invalid.items()},
        "undone": {each.attack: _undone(each) for each in result.attacks if each.attack in UNDOING and each.scores},
    }


def _undone(evidence: Evidence) -> dict[str, Any]:
    return {
        "scores": {score.metric: _interval(score) for score in evidence.scores},
        "notes": {score.metric: score.note.split(";")[0] for score in evidence.scores},
        "chance": dict(evidence.details["chance"]),
        "pictures": evidence.details.get("pictures attacked", 1000),
        "invalid": list(evidence.invalid),
    }


def _chance(result: AuditResult, metric: str) -> float:
    return next(m.chance for m in result.measurements if m.score.metric == metric and m.chance is not None)


def _interval(score: Score | None) -> list[float | None] | None:
    return None if score is None else [score.value, score.low, score.high]

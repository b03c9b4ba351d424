"""Results of audits that were never made, with numbers of one's own choice."""

from __future__ import annotations

from typing import Any

from veilkit.audit.result import AuditResult, Input, Measurement, Recogniser, Tallies, Tally
from veilkit.types import Evidence, Level, Reason, Role, Score


def attacked(
    attack: str,
    level: Level,
    value: float,
    low: float | None,
    high: float | None,
    *,
    chance: float = 0.05,
    metric: str = "rank-1",
    invalid: tuple[Reason, ...] = (),
) -> Evidence:
    score = Score(metric, value, Role.PRIVACY, False, low, high)
    return Evidence(attack, level, (score,), invalid=invalid, details={"chance": {metric: chance}})


def result_of(
    *attacks: Evidence,
    utility: float = 0.6,
    people: int = 100,
    originals: str = "0" * 64,
    judge: str = "1" * 64,
    hits: tuple[int, ...] = (1, 0, 2),
    **changes: Any,
) -> AuditResult:
    kept = Score("rank-1", utility, Role.UTILITY, True, utility - 0.1, utility + 0.1)
    clean = Score("rank-1", 0.9, Role.UTILITY, True, 0.8, 0.95)
    values: dict[str, Any] = {
        "veilkit": "0",
        "versions": {},
        "config": {"labels": "auto", "bootstrap_draws": 1000, "confidence": 0.95, "draw_seed": 0},
        "originals": Input("originals", 2 * people, originals),
        "protected": Input("protected", 2 * people, "2" * 64),
        "release": None,
        "paired_by": "by their paths",
        "pictures": 2 * people,
        "people": people,
        "cameras_used": False,
        "queries": 6,
        "gallery": 6,
        "expert": Recogniser("people", "3" * 64, 8, "", ""),
        "judge": Recogniser("other", judge, 8, "", ""),
        "independent": True,
        "summary": (),
        "measurements": (
            Measurement("expert", "raw-raw", clean, 0.05, reference=True),
            Measurement("expert", "protected-protected", kept, 0.05),
        ),
        "attacks": attacks,
        "curves": (),
        "histograms": (),
        "unmeasured": (),
        "notes": (),
        "tallies": Tallies("order", (2, 1, 3), (Tally("expert", "protected-protected", hits),)),
    }
    return AuditResult(**{**values, **changes})

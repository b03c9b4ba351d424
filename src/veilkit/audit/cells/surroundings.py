"""The second, small audit of pictures with faces: who is found by everything else, in cells of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from veilkit.attacks import ATTACKS, Need
from veilkit.audit.cells.engine import compute_cells
from veilkit.audit.cells.prepared import ATTACK, EVIDENCE, RECOGNISED, RECOGNITION, Prepared
from veilkit.audit.cells.store import CellFiles
from veilkit.audit.inputs.judges import describe
from veilkit.audit.result import AuditResult, Surroundings
from veilkit.audit.verdicts.levels import level_verdicts
from veilkit.audit.verdicts.verdict import Thresholds
from veilkit.types import Level

_GIVEN = frozenset({Need.IMAGES, Need.PAIRS, Need.IDENTITIES, Need.EXPERT})


def found_apart(prepared: Prepared, files: CellFiles, workers: int) -> tuple[Prepared, Mapping[str, Any]]:
    """What attackers who know nothing find in the pictures without their faces."""
    ignorant = {name for name, attack in ATTACKS.items() if attack.level is Level.L0 and attack.needs <= _GIVEN
                and attack.tells_identity and not attack.baseline}  # fmt: skip
    plan = replace(
        prepared.plan, seen="surroundings", why_seen="", attacks=prepared.plan.attacks & ignorant, budget=None,
        expert=None, judge=None,
    )  # fmt: skip
    apart = Prepared.of(plan, prepared.cache)
    return apart, compute_cells(apart, CellFiles(files.folder, f"{files.prefix}surroundings-"), workers)


def judged_apart(
    result: AuditResult, apart: Prepared, cells: Mapping[str, Any], thresholds: Thresholds
) -> Surroundings:
    """Their verdict. result: of the faces, from which only what is known of the people is taken."""
    evidence = tuple(EVIDENCE.validate_python(cell) for name, cell in cells.items() if name.startswith(ATTACK))
    seen = [RECOGNISED.validate_python(cell) for name, cell in cells.items() if name.startswith(RECOGNITION)]
    judge = describe(apart.judge)
    alone = replace(
        result, attacks=evidence, judge=judge, independent=True, pictures=len(apart.subject.protected),
        measurements=tuple(each for found in seen for each in found.measurements),
    )  # fmt: skip
    return Surroundings(judge, alone.score("judge", "raw-raw", "rank-1"), level_verdicts(alone, thresholds)[0])

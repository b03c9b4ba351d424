"""What a time allows, measured once for an audit and kept as one of its cells: a resumed audit spends the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from veilkit.audit.cells.budget import Choice, choose, dear_among, learners_among, measure_costs
from veilkit.audit.cells.engine import FORMAT, Place, holds
from veilkit.audit.cells.prepared import Prepared
from veilkit.audit.cells.store import as_json
from veilkit.audit.inputs.plan import AuditPlan
from veilkit.methods.base import InjectsIdentity

CELL = "budget"
_CHOICE = TypeAdapter(Choice)


def affordable(prepared: Prepared, place: Place, seconds: float) -> Choice:
    """The choice for this time, read where it was made before for the same inputs; otherwise costs are measured."""
    files = place.files.open()
    facts = {**prepared.facts(CELL), "seconds": seconds, "attacks": sorted(prepared.plan.attacks)}
    facts["runs again"] = prepared.method is not None
    facts |= {"expert": prepared.expert.info.fingerprint, "judge": prepared.judge.info.fingerprint}
    held = files.read(place.name(CELL))
    if held is not None and holds(held, facts):
        try:
            return _CHOICE.validate_python(held["result"])
        except ValidationError:
            pass  # of another version: measured again
    subject = prepared.subject
    choice = choose(
        seconds,
        measure_costs(subject, prepared.expert, prepared.judge),
        pictures=len(subject.protected),
        people=None if subject.people is None else len(np.unique(subject.people)),
        dear=dear_among(prepared.plan.attacks, paired=subject.originals is not None),
        learners=learners_among(
            prepared.plan.attacks,
            paired=subject.originals is not None,
            runs_again=prepared.method is not None,
            identity=isinstance(prepared.method, InjectsIdentity),
        ),
    )
    result: dict[str, Any] = as_json(choice.facts)
    files.write(place.name(CELL), {"format": FORMAT, "cell": CELL, "facts": as_json(facts), "result": result})
    return choice


def with_choice(plan: AuditPlan, choice: Choice) -> AuditPlan:
    """The plan with what was chosen."""
    budget = choice.budget(plan.draw_seed)
    why = "" if budget is not None else f"the budget is too small for them: {choice.why}"
    return replace(plan, budget=budget, people=choice.people, why_none=why)

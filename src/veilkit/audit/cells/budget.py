"""From a time to a budget: how many people are measured, and how many updates attackers learn for.

The rule, also in docs/audit-attacks.md. What a picture costs to embed and an update costs to train is measured on
the pictures at hand. A tenth of the time is kept back. Three tenths pay for embedding: where all pictures cost more,
fewer people are measured. The rest gives all attackers who learn as many updates, each of whom trains three times
(once, and for two gates), and some of whom pay more for an update. Fewer updates than teach anything are not made at
all, and that is said.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError

from veilkit.attacks import ATTACKS, Budget, Need
from veilkit.attacks.base import AttackTarget
from veilkit.attacks.headline import Cost
from veilkit.attacks.learned.training_cost import one_update, recogniser_update_seconds
from veilkit.attacks.people_split import attack_size
from veilkit.attacks.pictures import resized
from veilkit.audit.cells.engine import FORMAT, holds
from veilkit.audit.cells.prepared import Prepared
from veilkit.audit.cells.store import CellFiles, as_json
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.options import AuditPlan
from veilkit.experts import Embedder
from veilkit.methods.base import InjectsIdentity
from veilkit.rng import Randomness

_FOR_EMBEDDING, _FOR_LEARNING = 0.3, 0.6
_TRAININGS = 3  # the release, the originals and noise
_PASSES = 4  # times that a picture is embedded: raw, protected, noise, recovered
_FEWEST_UPDATES, _MOST_UPDATES = 100, 20_000
_FEWEST_PEOPLE = 8  # four who teach and four who are attacked
_MOST_PICTURES = 2000
_ROUNDING = 1e-9
_TRIED = 8  # pictures that are embedded, and updates that are made, to measure


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured seconds: to embed a picture by judge and expert together, and of an update of a recovery network.

    dear: of an update of those who train, or optimise through, a whole recogniser; None where that costs no more.
    """

    picture: float
    update: float
    dear: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """people: at most so many are measured, None for all. updates: 0 where attackers who learn are left out."""

    seconds: float
    people: int | None
    pictures: int
    updates: int
    costs: Costs
    why: str

    def budget(self, seed: int) -> Budget | None:
        """What attackers who learn may spend."""
        return Budget(updates=self.updates, pictures=self.pictures, seed=seed) if self.updates else None

    @property
    def facts(self) -> dict[str, Any]:
        """For audit.json."""
        return asdict(self)


def choose(
    seconds: float, costs: Costs, *, pictures: int, people: int | None, learners: int, dear: int = 0
) -> Choice:
    """Apply the rule to measured costs. people: how many there are, None where unknown.

    learners: attackers who learn, among whom `dear` pay more for an update.
    """
    why = [f"a picture takes {costs.picture:.3g} s to embed by judge and expert, an update {costs.update:.3g} s"]
    if dear and costs.dear is not None:
        why[0] += f", or {costs.dear:.3g} s where it goes through a whole recogniser"
    round_of_all = costs.update * (learners - dear) + (costs.update if costs.dear is None else costs.dear) * dear
    affordable = int(_FOR_EMBEDDING * seconds / (_PASSES * max(costs.picture, 1e-9)))
    most: int | None = None
    measured = pictures
    if people is not None and affordable < pictures:
        most = max(_FEWEST_PEOPLE, affordable * people // pictures)
        most = most if most < people else None
        measured = pictures if most is None else pictures * most // people
    if most is None:
        why.append(f"all {pictures} pictures are measured")
    else:
        why.append(f"{_FOR_EMBEDDING:.0%} of the time embed {affordable} of {pictures} pictures: {most} people")
    updates = 0
    if learners:
        updates = min(
            _MOST_UPDATES, int(_FOR_LEARNING * seconds / (_TRAININGS * max(round_of_all, 1e-9)) + _ROUNDING)
        )
        why.append(
            f"{_FOR_LEARNING:.0%} of the time, divided among {learners} attackers who train {_TRAININGS} times each, "
            f"are {updates} updates"
        )
        if updates < _FEWEST_UPDATES:
            enough = _FEWEST_UPDATES * round_of_all * _TRAININGS / _FOR_LEARNING
            why.append(
                f"fewer than {_FEWEST_UPDATES} teach nothing, so that attackers who learn are left out; about "
                f"{math.ceil(enough / 60)}m would be enough, or fewer of them (--attack)"
            )
            updates = 0
    limit = max(2 * _FEWEST_PEOPLE, min(_MOST_PICTURES, measured))
    return Choice(seconds, most, limit, updates, costs, "; ".join(why))


def learners_among(
    attacks: frozenset[str], *, paired: bool = True, runs_again: bool = False, identity: bool = False
) -> int:
    """How many of these attacks learn or optimise on pictures alone. paired: whether the originals are known.

    runs_again, identity: whether the protection can be run again, and has an identity expert of its own.
    """
    absent = {
        Need.PAIRS: not paired,
        Need.PROTECTOR: not runs_again,
        Need.IDENTITY: not identity,
        Need.FEATURES: True,
    }
    rare = {need for need, lacks in absent.items() if lacks}
    return sum(Need.BUDGET in a.needs and not rare & a.needs for name, a in ATTACKS.items() if name in attacks)


def dear_among(attacks: frozenset[str], *, paired: bool = True) -> int:
    """How many of these attacks learn at the price of a whole recogniser. paired: as of `learners_among`."""
    dear = {name for name, attack in ATTACKS.items() if attack.cost is Cost.RECOGNISER}
    return learners_among(attacks & dear, paired=paired)


def measure_costs(subject: Subject, expert: Embedder, judge: Embedder) -> Costs:
    """Embed some pictures and make some updates, and take the time; the first of each is not counted."""
    target = AttackTarget(rng=Randomness.from_seed(0), protected=subject.protected)
    size = attack_size(target)
    places = range(min(_TRIED, len(subject.protected)))
    images = torch.cat([resized(subject.protected.load(place)[None], size) for place in places])
    with torch.no_grad():
        embedding = [_seconds(lambda each=each: each.embed(images)) for each in (expert, judge)]  # type: ignore[misc]
    update = _seconds(one_update(images))
    through = recogniser_update_seconds(max(embedding) / len(images))
    return Costs(sum(embedding) / len(images), update, max(update, through))


def _seconds(work: Callable[[], object]) -> float:
    """The median time of a few runs, after one that is not counted."""
    work()
    taken = []
    for _ in range(3):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken))


CELL = "budget"
_CHOICE = TypeAdapter(Choice)


def affordable(prepared: Prepared, files: CellFiles, seconds: float) -> Choice:
    """The choice for this time, read where it was made before for the same inputs; otherwise costs are measured."""
    files.open()
    facts = {**prepared.facts(CELL), "seconds": seconds, "attacks": sorted(prepared.plan.attacks)}
    facts["runs again"] = prepared.method is not None
    facts |= {"expert": prepared.expert.info.fingerprint, "judge": prepared.judge.info.fingerprint}
    held = files.read(CELL)
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
    files.write(CELL, {"format": FORMAT, "cell": CELL, "facts": as_json(facts), "result": result})
    return choice


def with_choice(plan: AuditPlan, choice: Choice) -> AuditPlan:
    """The plan with what was chosen."""
    budget = choice.budget(plan.draw_seed)
    why = "" if budget is not None else f"the budget is too small for them: {choice.why}"
    return replace(plan, budget=budget, people=choice.people, why_none=why)

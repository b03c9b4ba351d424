"""An audit ready to compute its cells: pictures, recognisers and the target of its attacks, each made when needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from veilkit.attacks import (
    ATTACKS,
    UNPAIRED_ATTACKS,
    AttackTarget,
    Need,
    Trial,
    UnpairedNeed,
    UnpairedTrial,
    run_gated,
    run_unpaired,
)
from veilkit.attacks.base import LACKING
from veilkit.attacks.learned.foreground import foreground
from veilkit.attacks.learned.learning import digest
from veilkit.audit.cells.images import class_similarity, face_scores, image_scores
from veilkit.audit.cells.recognition import Recognition, recognise
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.judges import choose_expert, choose_judge
from veilkit.audit.inputs.rerun import NO_MODEL, FreshKeys, method_of, one_identity, wants_model
from veilkit.audit.inputs.student import load_student
from veilkit.audit.inputs.subject import Subject, load_subject
from veilkit.audit.inputs.synthetic_subject import UnpairedSubject, load_unpaired
from veilkit.audit.options import AuditPlan
from veilkit.audit.result import By, Measurement
from veilkit.errors import UsageError
from veilkit.experts import Embedder
from veilkit.methods.base import InjectsIdentity, Method
from veilkit.methods.learned import Decoder
from veilkit.pipeline.recovery.decoder import decoder_for
from veilkit.pipeline.recovery.target import finished_manifest
from veilkit.pipeline.synthesis import is_synthetic
from veilkit.rng import Randomness
from veilkit.types import Evidence, Reason, ReasonCode
from veilkit.version import __version__

RECOGNITION, IMAGES, ATTACK = "recognition-", "images", "attack-"
_ENGINE = 2  # raised whenever the same inputs give other numbers than before
LEFT_OUT = Reason(ReasonCode.NOT_ASKED, "not asked for (--attack)")
SYNTHETIC = Reason(ReasonCode.SYNTHETIC, "its pictures belong to no original")
SMALL_BUDGET = Reason(ReasonCode.SMALL_BUDGET, "the budget is too small for an attack that learns or optimises")
_SAMPLE = 240  # originals on which judges are compared, of whole people
_MASKS = (128, 64)  # height and width at which people are separated from the background


@dataclass(frozen=True, slots=True)
class ImageCell:
    """Scores of pictures as such, and notes for the reader."""

    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...]


EVIDENCE, RECOGNISED, PICTURED = TypeAdapter(Evidence), TypeAdapter(Recognition), TypeAdapter(ImageCell)


class Prepared:
    """One audit. `cells` names what there is to compute, `facts` what a cell depends on, `compute` computes it."""

    def __init__(self, plan: AuditPlan, cache: Cache, subject: Subject, student: Embedder | None) -> None:
        self.plan, self.cache, self.student = plan, cache, student
        self.rng = Randomness.from_seed(plan.draw_seed)
        self.subject = subject
        self.expert, expert_notes = choose_expert(plan.expert, subject.seen)
        self.judge, judge_notes = choose_judge(plan.judge, self.expert, subject.seen, _found_in_originals(subject))
        self.notes = (*filter(None, (plan.why_seen,)), *expert_notes, *judge_notes)

    @classmethod
    def of(cls, plan: AuditPlan, cache: Cache) -> Prepared:
        """Read the folders of a plan; raises DataError where nothing at all could be measured."""
        student = load_student(plan)
        subject = load_subject(
            plan.originals, plan.protected, key=plan.key, seed=plan.seed, labels=plan.labels, limits=plan.limits,
            cache=cache, boxes=plan.boxes, seen=plan.seen,
        )  # fmt: skip
        return cls(plan, cache, _limited(subject, plan), student)

    @property
    def judge_is_expert(self) -> bool:
        """Whether judge and expert are one and the same model."""
        return self.expert.sha256 == self.judge.sha256

    @cached_property
    def stolen(self) -> Decoder | None:
        """The decoder of a reversible method, for who has stolen it."""
        plan = self.plan
        if plan.decoder is not None and self.subject.manifest is None:
            raise UsageError(
                "--decoder belongs to a release of `veilkit protect`, whose manifest says by which decoder it is "
                f"undone, but {plan.protected.name} has no manifest that this version reads; leave it out"
            )
        return None if plan.decoder is None else decoder_for(finished_manifest(plan.protected), plan.decoder)

    @cached_property
    def method(self) -> Method[Any] | None:
        """The protection, where it can be run again under other keys: on whole pictures, and not on parts of them."""
        method = method_of(self.subject.manifest, self.plan.model)
        return method if self.subject.seen == "pictures" else None

    @cached_property
    def unpaired(self) -> UnpairedSubject | None:
        """What a synthetic release is asked; None for any other."""
        if not is_synthetic(self.subject.manifest):
            return None
        return load_unpaired(
            self.plan, self.subject, self.student, cache=self.cache, recogniser=self.judge, rng=self.rng
        )

    @property
    def cells(self) -> tuple[str, ...]:
        """Names of the cells, those that others profit from first."""
        names = ATTACKS if self.unpaired is None else UNPAIRED_ATTACKS
        attacks = tuple(f"{ATTACK}{name}" for name in names if name in self.plan.attacks)
        seen = () if self.subject.search is None else (f"{RECOGNITION}expert", f"{RECOGNITION}judge")
        return (*seen[1:], *attacks) if self.plan.seen == "surroundings" else (*seen, IMAGES, *attacks)

    def facts(self, cell: str) -> dict[str, Any]:
        """All that a cell's numbers depend on, as JSON values: hashes of its inputs, versions, settings, the seed."""
        facts: dict[str, Any] = {
            "engine": _ENGINE,
            "versions": versions(),
            "inputs": {"originals": self.subject.inputs[0].sha256, "protected": self.subject.inputs[1].sha256},
            "pairs": self.subject.digest(),
            "seed": self.plan.draw_seed,
        }
        if self.unpaired is not None and not cell.startswith(RECOGNITION):
            facts["synthetic"] = self._unpaired_digest()
        if cell.startswith(RECOGNITION):
            by = cell.removeprefix(RECOGNITION)
            embedder = self.expert if by == "expert" else self.judge
            facts |= {"by": by, "recogniser": embedder.info.fingerprint, "independent": not self.judge_is_expert}
        elif cell.startswith(ATTACK):
            facts |= self._attack_facts(cell.removeprefix(ATTACK))
        return facts

    def compute(self, cell: str) -> dict[str, Any]:
        """The result of a cell as JSON values."""
        values: Any
        if cell.startswith(RECOGNITION):
            values = RECOGNISED.dump_python(self._recognition(cell), mode="json")
        elif cell == IMAGES:
            values = PICTURED.dump_python(self._images(), mode="json")
        else:
            values = EVIDENCE.dump_python(self._evidence(cell.removeprefix(ATTACK)), mode="json")
        result: dict[str, Any] = values
        return result

    @cached_property
    def target(self) -> AttackTarget:
        """What the attacks on paired releases are given."""
        subject, plan, method = self.subject, self.plan, self.method
        target = AttackTarget(
            rng=self.rng,
            protected=subject.protected,
            originals=subject.originals,
            people=subject.people,
            search=subject.search,
            recogniser=self.judge,
            authorised=self.expert,
            decoder=None if self.stolen is None else self.stolen.recover,
            protector=None if method is None else FreshKeys(method, plan.draw_seed),
            neutral=one_identity(method, plan.draw_seed),
            identity=method.identity_expert() if isinstance(method, InjectsIdentity) else None,
        )
        if plan.budget is None:
            return target
        upright = subject.originals is not None and subject.seen == "pictures"
        masks = foreground(subject.originals, _MASKS) if subject.originals is not None and upright else None
        return replace(target, budget=plan.budget, masks=masks, work=plan.work, start=plan.start)

    @cached_property
    def _trial(self) -> Trial | None:
        return Trial.of(self.target)

    @cached_property
    def _unpaired_trial(self) -> UnpairedTrial:
        assert self.unpaired is not None
        assert self.unpaired.target is not None
        return UnpairedTrial.of(self.unpaired.target)

    def _recognition(self, cell: str) -> Recognition:
        by: By = "expert" if cell.endswith("expert") else "judge"
        embedder: Embedder = self.expert if by == "expert" else self.judge
        features = {"protected": self.subject.protected.features(embedder)}
        if self.subject.originals is not None:
            features["raw"] = self.subject.originals.features(embedder)
        assert self.subject.search is not None
        note = "not independent" if by == "judge" and self.judge_is_expert else ""
        return recognise(by, features, self.subject.search, self.rng, note=note)

    def _images(self) -> ImageCell:
        measured, notes = image_scores(self.subject, self.cache, self.rng)
        if self.subject.seen == "faces":
            measured += face_scores(self.subject, self.plan.limits, self.cache, self.rng)
        if self.unpaired is not None:
            measured += class_similarity(self.unpaired, self.plan.limits, self.cache, self.rng)
        return ImageCell(measured, notes)

    def _evidence(self, name: str) -> Evidence:
        if self.unpaired is None:
            return run_gated(ATTACKS[name], self.target, trial=self._trial)
        if self.unpaired.target is None:
            return UNPAIRED_ATTACKS[name]().not_applicable(Reason(ReasonCode.NOT_MEASURABLE, self.unpaired.why))
        return run_unpaired(UNPAIRED_ATTACKS[name], self.unpaired.target, trial=self._unpaired_trial)

    def _attack_facts(self, name: str) -> dict[str, Any]:
        facts: dict[str, Any] = {"attack": name, "judge": self.judge.info.fingerprint}
        if self.unpaired is not None:
            unpaired = UNPAIRED_ATTACKS[name]
            facts["level"] = str(unpaired.level)
            if UnpairedNeed.STUDENT in unpaired.needs and self.student is not None:
                facts["student"] = self.student.info.fingerprint
            return facts
        attack, plan = ATTACKS[name], self.plan
        facts["level"] = str(attack.level)
        config = getattr(attack(), "config", None)
        if is_dataclass(config) and not isinstance(config, type):
            facts["config"] = asdict(config)
        if Need.BUDGET in attack.needs:
            facts["budget"] = None if plan.budget is None else asdict(plan.budget)
        if {Need.BUDGET, Need.AUTHORISED} & attack.needs:
            facts["expert"] = self.expert.info.fingerprint
        facts |= attack.weights_facts(plan.start)
        if Need.DECODER in attack.needs:
            facts["decoder"] = None if self.stolen is None else self.stolen.sha256
        if {Need.PROTECTOR, Need.NEUTRAL, Need.IDENTITY} & attack.needs and self.subject.manifest is not None:
            facts["protection"] = [self.subject.manifest.method, self.subject.manifest.config]
            if plan.model is not None:
                facts["runs again"] = self.method is not None
        return facts

    def _unpaired_digest(self) -> str:
        assert self.unpaired is not None
        target = self.unpaired.target
        if target is None:
            return self.unpaired.why
        parts: list[Any] = [target.members.people, target.release.classes]
        parts += [each.people for each in (target.unseen, target.held_out) if each is not None]
        parts += [] if target.release.soft_labels is None else [target.release.soft_labels]
        files = [file.sha256 for found in self.unpaired.read for file in found.files]
        return digest(*parts, np.frombuffer("\n".join(files).encode(), dtype=np.uint8))


def evidence_of(prepared: Prepared, found: Mapping[str, Evidence]) -> tuple[Evidence, ...]:
    """Every attack of the tables: what its cell found, or why it has none."""
    evidence = []
    levels = {name: attack.level for name, attack in ATTACKS.items()}
    if prepared.unpaired is not None:
        levels = {name: attack.level for name, attack in UNPAIRED_ATTACKS.items()} | levels
    for name, level in levels.items():
        other = prepared.unpaired is not None and name in ATTACKS
        each = found.get(name, Evidence(name, level, missing=(SYNTHETIC if other else LEFT_OUT,)))
        evidence.append(replace(each, missing=_what_is_missing(each.missing, prepared)))
    return tuple(evidence)


def _what_is_missing(missing: tuple[Reason, ...], prepared: Prepared) -> tuple[Reason, ...]:
    """Why an attack was not made; without a budget, what comes along with one is not what is missing."""
    plan = prepared.plan
    if plan.model is None and wants_model(prepared.subject.manifest):
        needed = {LACKING[need] for need in (Need.PROTECTOR, Need.NEUTRAL, Need.IDENTITY)}
        missing = tuple(dict.fromkeys(NO_MODEL if each in needed else each for each in missing))
    if LACKING[Need.BUDGET] not in missing:
        return missing
    comes_along = (LACKING[Need.AUTHORISED], LACKING[Need.MASKS])
    budget = SMALL_BUDGET if plan.why_none else LACKING[Need.BUDGET]
    return tuple(budget if each == LACKING[Need.BUDGET] else each for each in missing if each not in comes_along)


def versions() -> Mapping[str, str]:
    """Of what computes the numbers."""
    return {"veilkit": __version__, **{name: version(name) for name in ("torch", "numpy")}}


def _limited(subject: Subject, plan: AuditPlan) -> Subject:
    """At most `plan.people` people, drawn at random, each with all their pictures."""
    if plan.people is None or subject.people is None:
        return subject
    codes, counts = np.unique(subject.people, return_counts=True)
    if len(codes) <= plan.people:
        return subject
    order = Randomness.from_seed(plan.draw_seed).child("measured people").permutation(len(codes))[: plan.people]
    places = np.flatnonzero(np.isin(subject.people, codes[order]))
    note = (
        f"{plan.people} of {len(codes)} people, drawn at random, are measured: {len(places)} of {counts.sum()} "
        "pictures, as the budget allows"
    )
    return subject.only(places, note)


def _found_in_originals(subject: Subject) -> Callable[[Embedder], float] | None:
    """The mAP of a recogniser among some of the originals; None where nobody can be searched for in them."""
    originals, search = subject.originals, subject.search
    if originals is None or search is None:
        return None
    right, _ = search.candidates()
    people = np.unique(search.people[right > 0])
    pictures = np.array([(search.identities == person).sum() for person in people])
    most = max(2, int(_SAMPLE / pictures.mean())) if len(people) else 0
    chosen = people[np.unique(np.linspace(0, len(people) - 1, min(most, len(people))).astype(int))]
    places = np.flatnonzero(np.isin(search.identities, chosen))
    sample, some = search.only(places), originals.only(places)
    if not sample.candidates()[0].any():
        return None

    def found(embedder: Embedder) -> float:
        features = some.features(embedder)
        return sample.find(features, features).mean_ap

    return found

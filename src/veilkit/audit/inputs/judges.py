"""Which recognisers take part: the authorised expert, and a judge that is independent of it.

A name such as dlib@dlib is an identity expert of faces that is shown a view of wide crops (`experts.faces`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from veilkit.audit.inputs.faces import Seen, choose_seen
from veilkit.audit.options import AuditPlan
from veilkit.audit.result import Recogniser
from veilkit.errors import CheckpointError, MissingExtraError
from veilkit.experts import Embedder, load_expert
from veilkit.experts.faces import load_viewed, names_view
from veilkit.experts.names import FACE_EXPERTS, PEOPLE_EXPERTS
from veilkit.pipeline.manifest import known_manifest
from veilkit.pipeline.synthesis import is_synthetic

BUILT_IN = ("people", "outfits", "stripes", "histogram")  # in the order of preference
STRONGEST = (*PEOPLE_EXPERTS, "stripes", "histogram")
FACES = FACE_EXPERTS


def choose_expert(wanted: str | Path | Embedder | None, seen: Seen = "pictures") -> tuple[Embedder, tuple[str, ...]]:
    """The authorised expert; "people" unless told otherwise, and "outfits" where its weights are not installed.

    For faces it is the last face network at hand, as the first one judges.
    """
    if wanted is not None:
        return _loaded(wanted), ()
    if seen == "faces":
        expert = _first(FACES[::-1], other_than="")
        assert expert is not None  # or the plan would not ask for faces
        return expert, ("no authorised expert was named: a face network stands in for it",)
    expert = _first(BUILT_IN, other_than="")
    assert expert is not None  # stripes need no weights
    if expert.name == BUILT_IN[0]:
        return expert, ()
    return expert, (
        f"the expert {BUILT_IN[0]!r} is not installed: {expert.name!r} stands in for it, a weak recogniser",
    )


def choose_judge(
    wanted: str | Path | Embedder | None,
    expert: Embedder,
    seen: Seen = "pictures",
    found: Callable[[Embedder], float] | None = None,
) -> tuple[Embedder, tuple[str, ...]]:
    """The judge: the strongest recogniser at hand that is not the expert, unless told otherwise.

    found: how much a recogniser finds in the originals. Of several networks of people at hand the one that finds most
    judges; without it, the first of a fixed order.
    """
    if wanted is None and seen != "faces" and found is not None:
        at_hand = [each for each in map(_at_hand, PEOPLE_EXPERTS) if each and each.sha256 != expert.sha256]
        if len(at_hand) > 1:
            shares = [found(each) for each in at_hand]
            order = sorted(range(len(at_hand)), key=lambda place: -shares[place])
            each_found = ", ".join(f"{at_hand[place].name} {shares[place]:.2f}" for place in order)
            return at_hand[order[0]], (
                f"the judge is who finds most in a sample of the originals (mAP): {each_found}",
            )
    names = FACES if seen == "faces" else STRONGEST
    judge = _loaded(wanted) if wanted is not None else _first(names, other_than=expert.sha256) or expert
    if judge.sha256 != expert.sha256:
        return judge, ()
    return judge, (
        "judge and expert are one and the same model: the judge's numbers are not independent. "
        "Name another judge with --judge",
    )


def with_seen(plan: AuditPlan) -> AuditPlan:
    """The plan with what of the pictures is judged: what was asked for, or what the originals show.

    An expert, a judge or boxes that were named say themselves what is seen.
    """
    named = plan.kind == "auto" and (plan.expert, plan.judge, plan.boxes) != (None, None, None)
    if named or is_synthetic(known_manifest(plan.protected)[0]):
        return plan
    seen, why = choose_seen(plan.originals, plan.limits, plan.kind)
    if seen == "faces" and plan.judge is None and _first(FACES, other_than="") is None:
        missing = MissingExtraError("a face network", "faces")
        if plan.kind == "faces":
            raise missing
        seen, why = "pictures", f"the originals show faces, but whole pictures are judged: {missing}"
    return replace(plan, seen=seen, why_seen=why)


def describe(embedder: Embedder) -> Recogniser:
    """What the report says of a recogniser."""
    info = embedder.info
    return Recogniser(info.name, info.sha256, info.dim, info.licence, info.source, info.flip)


def _loaded(wanted: str | Path | Embedder) -> Embedder:
    if isinstance(wanted, str) and names_view(wanted):
        return load_viewed(wanted)
    return load_expert(wanted) if isinstance(wanted, str | Path) else wanted


def _first(names: tuple[str, ...], *, other_than: str) -> Embedder | None:
    at_hand = (expert for name in names if (expert := _at_hand(name)) is not None)
    return next((expert for expert in at_hand if expert.sha256 != other_than), None)


def _at_hand(name: str) -> Embedder | None:
    try:
        return _loaded(name)
    except (CheckpointError, MissingExtraError):
        return None

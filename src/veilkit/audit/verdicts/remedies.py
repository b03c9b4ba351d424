"""What it would take to get a verdict from an attack that gave none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from veilkit.attacks import ATTACKS
from veilkit.attacks.base import FROM_SCRATCH, Need
from veilkit.audit.verdicts.verdict import LevelVerdict
from veilkit.audit.verdicts.wording import together
from veilkit.types import Evidence, Reason, ReasonCode

_LEARN = "attackers who learn (--learn UPDATES)"
_LONGER = "attackers who learn (a longer --budget, or --learn UPDATES)"
_MORE = "more updates (--learn)"
_JUDGE = "a judge that recognises these people in the originals (--judge, see “veilkit experts”), or more people"
_PAIRS = "the originals of these pictures (--key, or kept names)"
_FAULT = "a sound attack: this one finds people even in noise, which is a fault of the attack or of its judge"
_OTHER_CODES = {
    ReasonCode.NOT_ASKED: "all attacks (no --attack)",
    ReasonCode.TOO_FEW_PEOPLE: "more people who are known (--labels)",
    ReasonCode.NO_PAIRS: _PAIRS,
    ReasonCode.NO_MODEL: "the model that the release was made with (--model)",
    ReasonCode.NO_DECODER: "the method's decoder, if it has one (--decoder)",
}
_BUDGETS = (ReasonCode.NO_BUDGET, ReasonCode.SMALL_BUDGET)


def for_invalid(evidence: Evidence) -> str:
    """What would make an invalid attack valid."""
    codes = {reason.code for reason in evidence.invalid}
    known = ATTACKS.find(evidence.attack)
    if codes & {ReasonCode.NOT_TRAINED, ReasonCode.BELOW_MEAN_IMAGE}:
        return _MORE
    if ReasonCode.NO_ORIGINALS in codes:
        return _PAIRS
    if ReasonCode.FOUND_IN_NOISE in codes:
        return _FAULT
    if known is None or Need.BUDGET not in known.needs or ReasonCode.BELOW_POSSIBLE not in codes:
        return _JUDGE
    scratch = known.uses_weights and evidence.details.get("started from") == FROM_SCRATCH
    return f"{_MORE}, or weights to start from (--start)" if scratch else _MORE


def for_missing(attack: str, missing: Sequence[Reason]) -> str:
    """What would let an attack be made that was not; empty where nothing would."""
    codes = [reason.code for reason in missing]
    if ReasonCode.NOT_ASKED not in codes and wants_budget(attack, missing):
        return _LONGER if codes[0] is ReasonCode.SMALL_BUDGET else _LEARN
    return next((remedy for code, remedy in _OTHER_CODES.items() if code in codes), "")


def wants_budget(attack: str, missing: Sequence[Reason]) -> bool:
    """Whether an attack was not made for lack of a budget alone, and not of pairs or of what folders never hold."""
    never = {Need.FEATURES, Need.PROTECTOR}
    first = missing[0].code if missing else None
    return first in _BUDGETS and (attack not in ATTACKS or not never & ATTACKS[attack].needs)


def why_missing(attacks: Mapping[str, Sequence[Reason]]) -> str:
    """Attacks that were not made and why, in few words; those of one reason together."""
    return listed((attack, _in_short(attack, missing)) for attack, missing in attacks.items())


def _in_short(attack: str, missing: Sequence[Reason]) -> str:
    if wants_budget(attack, missing):
        small = missing[0].code is ReasonCode.SMALL_BUDGET
        return f"they learn, and {'the budget is too small for that' if small else 'no budget was given'}"
    return together([each for each in missing if each.code not in _BUDGETS] or missing)


def listed(reasons: Iterable[tuple[str, str]]) -> str:
    """(attack, reason) in words, attacks of one reason together."""
    return "; ".join(f"{', '.join(names)} ({why})" for why, names in by_need(reasons).items())


def by_need(needs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """(attack, what it needs) by need, without those that need nothing."""
    merged: dict[str, tuple[str, ...]] = {}
    for attack, need in needs:
        if need:
            merged[need] = (*merged.get(need, ()), attack)
    return merged


def needed(verdicts: Iterable[LevelVerdict]) -> str:
    """One line on what would give more verdicts, over all levels; empty where nothing would."""
    merged = by_need(
        (attack, need) for each in verdicts for need, attacks in each.needs.items() for attack in attacks
    )
    return "; ".join(f"{need}, for {', '.join(attacks)}" for need, attacks in merged.items())

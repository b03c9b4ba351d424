"""What it would take to get a verdict from an attack that gave none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from veilkit.attacks import ATTACKS
from veilkit.attacks.base import NO_BUDGET, NO_PAIRS_KNOWN, SMALL_BUDGET, Need
from veilkit.attacks.gates import IN_NOISE
from veilkit.attacks.learned.retrained import SCRATCH, Retrained
from veilkit.attacks.people_split import TOO_FEW
from veilkit.audit.cells.synthetic_measures import LEFT_OUT
from veilkit.audit.inputs.rerun import NO_MODEL
from veilkit.audit.verdicts.verdict import LevelVerdict
from veilkit.types import Evidence

_LEARN = "attackers who learn (--learn UPDATES)"
_LONGER = "attackers who learn (a longer --budget, or --learn UPDATES)"
_MORE = "more updates (--learn)"
_JUDGE = "a judge that recognises these people in the originals (--judge, see “veilkit experts”), or more people"
_PAIRS = "the originals of these pictures (--key, or kept names)"
_FAULT = "a sound attack: this one finds people even in noise, which is a fault of the attack or of its judge"
_TRAINING = ("stopped early", "too short", "diverged", "its training failed", "learned nothing", "not converged")


def for_invalid(evidence: Evidence) -> str:
    """What would make an invalid attack valid."""
    reasons = "; ".join(evidence.invalid)
    learns = evidence.attack in ATTACKS and Need.BUDGET in ATTACKS[evidence.attack].needs
    if any(sign in reasons for sign in _TRAINING):
        return _MORE
    if "originals are not at hand" in reasons:
        return _PAIRS
    if IN_NOISE in reasons:
        return _FAULT
    if not learns or "where nothing is protected" not in reasons:
        return _JUDGE
    scratch = evidence.attack == Retrained.name and evidence.details.get("started from") == SCRATCH
    return f"{_MORE}, or weights to start from (--start)" if scratch else _MORE


def for_missing(attack: str, reason: str) -> str:
    """What would let an attack be made that was not; empty where nothing would."""
    if reason == LEFT_OUT:
        return "all attacks (no --attack)"
    if wants_budget(attack, reason):
        return _LONGER if reason.startswith(SMALL_BUDGET) else _LEARN
    if TOO_FEW in reason:
        return "more people who are known (--labels)"
    if NO_PAIRS_KNOWN in reason:
        return _PAIRS
    if NO_MODEL in reason:
        return "the model that the release was made with (--model)"
    return "the method's decoder, if it has one (--decoder)" if "no decoder" in reason else ""


def wants_budget(attack: str, reason: str) -> bool:
    """Whether an attack was not made for lack of a budget alone, and not of pairs or of what folders never hold."""
    never = {Need.FEATURES, Need.PROTECTOR}
    return reason.startswith((NO_BUDGET, SMALL_BUDGET)) and (
        attack not in ATTACKS or not never & ATTACKS[attack].needs
    )


def why_missing(missing: Mapping[str, str]) -> str:
    """Attacks that were not made and why, in few words; those of one reason together."""
    together: dict[str, list[str]] = {}
    for attack, reason in missing.items():
        if wants_budget(attack, reason):
            small = reason.startswith(SMALL_BUDGET)
            short = (
                "they learn, and the budget is too small for that" if small else "they learn, and no budget was given"
            )
        else:
            short = (
                "; ".join(each for each in reason.split("; ") if not each.startswith((NO_BUDGET, SMALL_BUDGET)))
                or reason
            )
        together.setdefault(short, []).append(attack)
    return "; ".join(f"{', '.join(names)} ({why})" for why, names in together.items())


def together(needs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """(attack, what it needs) by need, without those that need nothing."""
    merged: dict[str, tuple[str, ...]] = {}
    for attack, need in needs:
        if need:
            merged[need] = (*merged.get(need, ()), attack)
    return merged


def needed(verdicts: Iterable[LevelVerdict]) -> str:
    """One line on what would give more verdicts, over all levels; empty where nothing would."""
    merged = together(
        (attack, need) for each in verdicts for need, attacks in each.needs.items() for attack in attacks
    )
    return "; ".join(f"{need}, for {', '.join(attacks)}" for need, attacks in merged.items())

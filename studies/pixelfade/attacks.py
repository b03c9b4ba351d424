"""The stronger attacks of PixelFade's study, and what they need: outlines, and the method to be run again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from studies.pixelfade.plan import PixelFadeStudyConfig
from studies.shared.attacks import described, rounded
from veilkit.attacks import ATTACKS, Attack, AttackTarget, Budget, run_gated
from veilkit.attacks.averaging import Averaging
from veilkit.attacks.learned.recovery import RecoveryConfig, RecoveryWithFeatures
from veilkit.attacks.learned.silhouette import (
    Silhouette,
    SilhouetteConfig,
    areas,
    beyond_place,
    mark,
    strength,
    train_marker,
)
from veilkit.attacks.people_split import divide, pixels
from veilkit.audit.inputs.rerun import FreshKeys
from veilkit.methods import Method


def stronger(name: str, target: AttackTarget, config: PixelFadeStudyConfig, method: Method[Any]) -> dict[str, Any]:
    """The evidence of an attack of the table, through its gates. method: protects again, for the averaging."""
    make: Callable[[], Attack] = ATTACKS[name]
    if name == RecoveryWithFeatures.name:
        make = partial(RecoveryWithFeatures, RecoveryConfig(width=config.width))
    elif name == Averaging.name:
        make = partial(Averaging, config.counts)
        updates = -(-config.averaged * max(config.counts) // config.batch)  # picture-steps, as the attack counts
        budget = Budget(updates, config.averaged, config.batch, config.seed)
        target = replace(target, protector=FreshKeys(method, config.seed), budget=budget)
    return described(run_gated(make, target))


def outline(target: AttackTarget, config: SilhouetteConfig, *, gated: bool = True) -> dict[str, Any]:
    """Where people stand: the attack's evidence, and every picture's AUC, learned beyond place and by energy.

    Masks must have the size at which pictures are attacked. A picture without person or background has no AUC.
    """
    evidence = run_gated(lambda: Silhouette(config), target) if gated else Silhouette(config).run(target)
    if not evidence.applicable:
        return described(evidence)
    division = divide(target)
    public, victims = division.public, division.victims
    assert target.budget is not None
    assert public.masks is not None
    assert victims.masks is not None
    assert victims.protected is not None
    assert victims.people is not None
    lessons, shown = pixels(public.protected, division.size), pixels(victims.protected, division.size)
    network, _ = train_marker(lessons, public.masks.values, public.people, config, target.budget, target.work)
    truth = victims.masks.values
    each = areas(beyond_place(mark(network, shown)), truth)
    energies = areas(strength(shown, lessons, public.masks.values), truth)
    return {
        **described(evidence),
        "masks": victims.masks.source,
        "mean mask": float(evidence.details["mean mask"]),
        "people": victims.people.tolist(),
        "AUC each": rounded(each),
        "energy each": rounded(energies),
    }

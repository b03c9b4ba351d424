"""Attacks of PixelFade's study as JSON values, picture by picture where releases are compared in pairs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks import ATTACKS, Attack, AttackTarget, Budget, run_gated
from veilkit.attacks.averaging import Averaging
from veilkit.attacks.division import divide, pixels
from veilkit.attacks.recovered import likeness
from veilkit.attacks.recovery import Recovery, RecoveryConfig, RecoveryWithFeatures
from veilkit.attacks.silhouette import Silhouette, SilhouetteConfig, areas, beyond_place, mark, train_marker
from veilkit.audit.attempts import recover
from veilkit.audit.reproduce.pixelfade_plan import PixelFadeStudyConfig
from veilkit.methods import Method, bind
from veilkit.metrics import paired_difference
from veilkit.rng import Randomness
from veilkit.types import Evidence, ImageBatch

_DIGITS = 5  # of values of single pictures
_AHEAD = 4  # draws made together, so that quick pictures do not leave the expert's slots empty


def described(evidence: Evidence) -> dict[str, Any]:
    """An attack's evidence as JSON values; the first score is its headline, `chance` what blind guessing scores."""
    details = evidence.details
    return {
        "level": str(evidence.level),
        "applicable": evidence.applicable,
        "reason": evidence.reason,
        "invalid": list(evidence.invalid),
        "scores": {
            score.metric: [None if part is None else float(part) for part in (score.value, score.low, score.high)]
            for score in evidence.scores
        },
        "chance": {metric: float(value) for metric, value in details.get("chance", {}).items()},
        "mean image": {metric: float(value) for metric, value in details.get("mean image", {}).items()},
        "as released": {metric: float(value) for metric, value in details.get("as released", {}).items()},
        "gates": dict(details.get("gates", {})),
    }  # fmt: skip


def recovery(target: AttackTarget, config: RecoveryConfig) -> dict[str, Any]:
    """The U-Net's evidence, through its gates, and the SSIM of every recovered picture with its person's code."""
    evidence = run_gated(lambda: Recovery(config), target)
    if not evidence.applicable:
        return described(evidence)
    victims, answers = recover(target, config)
    assert victims.originals is not None
    assert victims.people is not None
    found = likeness(answers, pixels(victims.originals, (answers.shape[2], answers.shape[3])))
    return {**described(evidence), "people": victims.people.tolist(), "SSIM each": _rounded(found.get("SSIM"))}


def stronger(name: str, target: AttackTarget, config: PixelFadeStudyConfig, method: Method[Any]) -> dict[str, Any]:
    """The evidence of an attack of the table, through its gates. method: protects again, for the averaging."""
    make: Callable[[], Attack] = ATTACKS[name]
    if name == RecoveryWithFeatures.name:
        make = partial(RecoveryWithFeatures, RecoveryConfig(width=config.width))
    elif name == Averaging.name:
        make = partial(Averaging, config.counts)
        updates = -(-config.averaged * max(config.counts) // config.batch)  # picture-steps, as the attack counts
        budget = Budget(updates, config.averaged, config.batch, config.seed)
        target = replace(target, protector=Again(method, config.seed), budget=budget)
    return described(run_gated(make, target))


def outline(target: AttackTarget, config: SilhouetteConfig, *, gated: bool = True) -> dict[str, Any]:
    """Where people stand: the attack's evidence, and the AUC beyond place of every picture.

    Masks must have the size at which pictures are attacked. A picture without person or background has no AUC.
    """
    evidence = run_gated(lambda: Silhouette(config), target) if gated else Silhouette(config).run(target)
    if not evidence.applicable:
        return described(evidence)
    division = divide(target, None, None)
    public, victims = division.public, division.victims
    assert target.budget is not None
    assert public.masks is not None
    assert victims.masks is not None
    assert victims.protected is not None
    assert victims.people is not None
    network, _ = train_marker(
        pixels(public.protected, division.size), public.masks.values, public.people, config, target.budget,
        target.work,
    )  # fmt: skip
    marked = mark(network, pixels(victims.protected, division.size))
    each = areas(beyond_place(marked), victims.masks.values)
    return {
        **described(evidence),
        "masks": victims.masks.source,
        "mean mask": float(evidence.details["mean mask"]),
        "people": victims.people.tolist(),
        "AUC each": _rounded(each),
    }


def paired(
    pairs: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]], each: str, rng: Randomness
) -> dict[str, Any]:
    """`difference` of the values `each` of pairs of cells, by the pairs' names; without those that lack values."""
    return {
        name: difference(first[each], second[each], first["people"], rng)
        for name, (first, second) in pairs.items()
        if first.get(each) and second.get(each)
    }


def difference(
    first: Sequence[float | None], second: Sequence[float | None], people: Sequence[int], rng: Randomness
) -> list[float]:
    """[mean(first) - mean(second), low, high] over the pictures that have both values; people are drawn again."""
    both = [place for place, pair in enumerate(zip(first, second, strict=True)) if None not in pair]
    one, other = (np.array([values[place] for place in both], dtype=np.float64) for values in (first, second))
    found = paired_difference(one, other, np.asarray(people)[both], generator=rng.child("bootstrap").numpy())
    return [found.value, found.low, found.high]


class Again:
    """Protects pictures again, as `attacks.means.Protector`: the draw's number takes the place of a fresh key.

    A picture's randomness derives from its own values and the draw, so that it does not matter who shares a call.
    """

    def __init__(self, method: Method[Any], seed: int) -> None:
        self._method = method
        self._rng = bind(Randomness.from_seed(seed).child("again"), method)
        self._made: dict[tuple[str, int], Tensor] = {}

    def __call__(self, images: Tensor, draw: int) -> Tensor:
        """Images (N, 3, H, W) in [0, 1] to protected ones, under the key of this draw."""
        names = [hashlib.sha256(image.contiguous().numpy().tobytes()).hexdigest() for image in images]
        if any((name, draw) not in self._made for name in names):
            self._make(images, names, range(draw, draw + _AHEAD))
        return torch.stack([self._made[name, draw] for name in names])

    def _make(self, images: Tensor, names: list[str], draws: range) -> None:
        batch = ImageBatch(
            images.repeat(len(draws), 1, 1, 1), tuple(f"{name} {draw}" for draw in draws for name in names)
        )
        protected = self._method.protect(batch, rng=self._rng).images
        assert protected is not None
        keys = [(name, draw) for draw in draws for name in names]
        self._made = dict(zip(keys, protected, strict=True))  # earlier draws are not asked for again


def _rounded(values: NDArray[np.float64] | None) -> list[float | None]:
    if values is None:
        return []
    return [round(float(value), _DIGITS) if np.isfinite(value) else None for value in values]

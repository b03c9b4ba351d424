"""What attacks that learn share: watched people, scales, where a training is kept, and when it was long enough."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from veilkit.attacks.base import Attack, AttackTarget
from veilkit.attacks.people_split import some_people, victims_of
from veilkit.attacks.pictures import Features
from veilkit.attacks.recovered import own_bound
from veilkit.attacks.target import Budget, Indices
from veilkit.errors import ConfigError
from veilkit.rng import Randomness
from veilkit.training.fitting import FitConfig, Fitted, fit_network
from veilkit.types import Reason, ReasonCode

_NAMED = 16  # hexadecimal digits of a digest that name a training
_VALIDATIONS = 50  # on the watched people, evenly over the training
_WATCHED = 8  # batches at most, for each validation costs as much
_PATIENCE = 10  # validations without a new best that end a training, where it may end early
_WINDOW = 0.2  # of the losses: its last two are compared
_TOLERANCE = 0.02  # of all that was learned since the start, which may be learned in the last window


@dataclass(frozen=True, slots=True)
class Learning:
    """How an attacker's network learns: Adam at a constant rate, for as many updates as the budget has.

    watched: share of the public people who do not train: their loss says which weights are best, and whether more
    training would help. The loss on those who train says neither, as it goes on falling where a network learns them
    by heart. early: stop where the loss on watched people has long not fallen.
    """

    rate: float = 1e-3
    watched: float = 0.1
    early: bool = False

    def __post_init__(self) -> None:
        if self.rate <= 0 or not 0 < self.watched <= 0.5:
            raise ConfigError(f"rate must be positive and watched in (0, 0.5], but got {self.rate}, {self.watched}")


class LearningAttack(Attack):
    """Learns from other people's pairs.

    clean_share: of the originals that the judge finds among the originals, those to be found where nothing is
    protected.
    """

    clean_share: ClassVar[float]

    def clean_bound(self, target: AttackTarget) -> float | None:
        """That share of the originals that the recogniser finds among the originals."""
        bound = own_bound(victims_of(target))
        return None if bound is None else self.clean_share * bound


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """Of features: their mean (D,), and one spread for all dimensions, lest noise in idle ones be blown up."""

    mean: Features
    spread: float

    def standardised(self, features: Features) -> Tensor:
        """(N, D) about zero and of unit spread."""
        return self.centred(torch.from_numpy(np.asarray(features, dtype=np.float32)))

    def centred(self, features: Tensor) -> Tensor:
        """The same of features through which gradients pass."""
        return (features - torch.from_numpy(np.asarray(self.mean, dtype=np.float32))) / self.spread


def learn(
    network: nn.Module,
    loss: Callable[[Indices], Tensor],
    people: Indices,
    learning: Learning,
    budget: Budget,
    *,
    name: str,
    facts: Mapping[str, Any],
    work: Path | None,
) -> Fitted:
    """Fit an attacker's network to public pictures; `people` (N,) are their codes, loss is of some positions.

    facts: all that the result depends on besides. In the work folder, a training of the same facts is found again:
    gates on the same originals need no second one, whatever the release.
    """
    watched = some_people(
        people,
        max(2, min(round(learning.watched * len(people)), _WATCHED * budget.batch)),
        Randomness.from_seed(budget.seed).child(name, "watched"),
    )
    train = np.setdiff1d(np.arange(len(people)), watched)

    def error() -> float:
        parts = [watched[at : at + budget.batch] for at in range(0, len(watched), budget.batch)]
        return sum(float(loss(part)) * len(part) for part in parts) / len(watched)

    whole = {
        "attack": name,
        "learning": asdict(learning),
        "budget": asdict(budget),
        **facts,
        "people": digest(people),
    }
    return fit_network(
        network,
        lambda positions: loss(train[positions]),
        len(train),
        FitConfig(
            budget.updates,
            budget.batch,
            learning.rate,
            validate_every=max(1, budget.updates // _VALIDATIONS),
            patience=_PATIENCE if learning.early else 0,
            seed=budget.seed,
        ),
        facts=whole,
        state=state_file(work, name, whole),
        validate=error,
        what=f"training the attacker {name}",
    )


def digest(*parts: Tensor | NDArray[Any]) -> str:
    """SHA-256 of the values that teach an attacker."""
    whole = hashlib.sha256()
    for part in parts:
        values = part.contiguous().numpy() if isinstance(part, Tensor) else np.ascontiguousarray(part)
        whole.update(f"{values.dtype} {values.shape}".encode())
        whole.update(values.tobytes())
    return whole.hexdigest()


def state_file(work: Path | None, attack: str, facts: Mapping[str, Any]) -> Path | None:
    """Where a training of these facts is kept, below the work folder."""
    if work is None:
        return None
    name = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:_NAMED]
    return Path(work) / f"{attack}-{name}.safetensors"


def unfinished(fitted: Fitted, found: float, enough: float | None) -> tuple[Reason, ...]:
    """Why a training proves nothing, or nothing: the best error on watched people must have levelled off.

    enough: what can be found where nothing is protected. Who has found as much needs no more training, and is never
    called invalid for it.
    """
    done = fitted.early or (enough is not None and found >= enough)
    reason = None if done else loss_levelled(np.minimum.accumulate(fitted.validations).tolist())
    return () if reason is None else (reason,)


def loss_levelled(losses: Sequence[float]) -> Reason | None:
    """A trained attacker's loss must have levelled off.

    The mean of the last fifth of the losses may lie below the mean of the fifth before by at most the fiftieth part
    of all that was learned since the start. A loss that is not finite, or rises, is no better.
    """
    values = np.asarray(losses, dtype=np.float64)
    length = int(len(values) * _WINDOW)
    if length < 2:
        return _untrained(f"is too short to tell whether its loss has levelled off ({len(values)} values)")
    if not np.isfinite(values).all():
        return _untrained("diverged: the loss is not finite")
    start, before, last = values[:length].mean(), values[-2 * length : -length].mean(), values[-length:].mean()
    if last > start:
        return _untrained(f"failed: the loss rose from {start:.3g} to {last:.3g}")
    if before - last > _TOLERANCE * (start - last):
        return _untrained(f"was stopped early: the loss was still falling, from {before:.3g} to {last:.3g}")
    return None


def _untrained(what: str) -> Reason:
    return Reason(ReasonCode.NOT_TRAINED, f"its training {what}")

"""What attacks that learn share: people who are watched, where a training is kept, and when it was long enough."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from veilkit.attacks.adversary import Budget
from veilkit.attacks.gates import loss_levelled
from veilkit.attacks.people_split import some_people
from veilkit.errors import ConfigError
from veilkit.rng import Randomness
from veilkit.training.fitting import FitConfig, Fitted, fit_network
from veilkit.types import Reason

Indices = NDArray[np.int64]
_NAMED = 16  # hexadecimal digits of a digest that name a training
_LOOKS = 50  # at the watched people, evenly over the training
_WATCHED = 8  # batches at most, for each look costs as much
_STALE = 10  # looks without a new best that end a training, where it may end early


@dataclass(frozen=True, slots=True)
class Learning:
    """How an attacker's network learns: Adam at a constant rate, for as many updates as the budget has.

    watched: share of the public people who do not train, but say which weights are best and whether more training
    would help. The loss on those who train says neither: it goes on falling where a network learns them by heart.
    early: stop where the watched people have long not become better.
    """

    rate: float = 1e-3
    watched: float = 0.1
    early: bool = False

    def __post_init__(self) -> None:
        if self.rate <= 0 or not 0 < self.watched <= 0.5:
            raise ConfigError(f"rate must be positive and watched in (0, 0.5], but got {self.rate}, {self.watched}")


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
            validate_every=max(1, budget.updates // _LOOKS),
            patience=_STALE if learning.early else 0,
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

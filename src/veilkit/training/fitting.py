"""A small network fitted by a loss over a fixed number of updates, resumable to the same bits after any kill.

All randomness derives from (seed, epoch): a run that was killed goes on from its last saved update and reaches the
same weights, on the same machine with the same number of threads. A finished run is read back, not made again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from veilkit.checkpoint import check_weights, load_checkpoint, load_weights, save_checkpoint, understood
from veilkit.configs import read_facts
from veilkit.errors import ConfigError
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.training.loop import keep_memory, without_denormals
from veilkit.training.state import of_prefix, pack_optimizer, unpack_optimizer, with_prefix

STATE_KIND = "fitting"
_RECORDED = ("losses", "validations")  # which are NaN where nothing could be measured
Loss = Callable[[NDArray[np.int64]], Tensor]
Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class FitConfig:
    """updates: steps of Adam at the constant `rate`, each on `batch` items; an epoch takes every item once.

    Where there is something to validate on, that is done at the start and every `validate_every` updates, and the
    best weights are kept. patience: training ends after so many validations without a new best; 0 spends all updates.
    save_every: updates between saves.
    """

    updates: int
    batch: int = 16
    rate: float = 1e-3
    validate_every: int = 100
    patience: int = 0
    save_every: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.updates, self.batch, self.validate_every, self.save_every) < 1 or self.rate <= 0:
            raise ConfigError(f"updates, batch, rate and intervals must be positive, but got {self}")
        if self.patience < 0:
            raise ConfigError(f"patience must not be negative, but got {self.patience}")


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """losses: of each update made. validations: before the first update and on the way. early: ended by patience."""

    losses: NDArray[np.float64]
    validations: NDArray[np.float64]
    early: bool


def fit_network(
    network: nn.Module,
    loss: Loss,
    count: int,
    config: FitConfig,
    *,
    facts: Mapping[str, Any],
    state: Path | None = None,
    validate: Callable[[], float] | None = None,
    factor: Callable[[float], float] | None = None,
    what: str = "training",
    stream: TextIO | None = None,
) -> Fitted:
    """Fit `network` in place, and leave it in evaluation mode.

    loss: of the items at some positions of range(count), with the network in training mode. facts: all else that the
    result depends on (a digest of the data, the network's config), in JSON; a state of other facts is refused.
    state: the file in which the run is kept; None keeps nothing. validate: a value to make small, called in
    evaluation mode. factor: on the rate, of the share of all updates that is done; `facts` should hold it.
    """
    keep_memory()
    if not count:
        raise ConfigError("there is nothing to fit to: expected at least one item, but got 0")
    run = _Run(network, count, config, json.loads(json.dumps({**facts, "fit": asdict(config)})), state)
    bar = Progress(config.updates, what, done=run.updates, stream=stream)
    with without_denormals(), bar as progress:
        if validate is not None and not run.validations:
            run.judge(validate)
        while run.updates < config.updates and not run.early:
            if factor is not None:
                run.set_rate(config.rate * factor(run.updates / config.updates))
            progress.advance(1, f"loss {run.step(loss):.4f}")
            if validate is not None and run.updates % config.validate_every == 0:
                run.judge(validate)
            if run.updates % config.save_every == 0:
                run.save()
    run.finish()
    return Fitted(np.array(run.losses), np.array(run.validations), run.early)


def seeded(make: Callable[[], Network], rng: Randomness) -> Network:
    """A new network whose first weights depend on the node only; torch's global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(rng.integer(0, 2**63))
        return make()


class _Run:
    """A run between two updates."""

    def __init__(
        self,
        network: nn.Module,
        count: int,
        config: FitConfig,
        facts: dict[str, Any],
        state: Path | None,
    ) -> None:
        self.losses: list[float] = []
        self.validations: list[float] = []
        self.early = False
        self._network, self._config, self._facts, self._state = network, config, facts, state
        self._count, self._batch = count, min(config.batch, count)
        self._adam = torch.optim.Adam(network.parameters(), lr=config.rate)
        self._rng = Randomness.from_seed(config.seed).child("fitting")
        self._order: tuple[int, NDArray[np.int64]] = (-1, np.empty(0, dtype=np.int64))
        self._best: dict[str, Tensor] = {}
        self._saved = 0
        if state is not None and state.exists():
            self._restore(state)

    @property
    def updates(self) -> int:
        """Updates made."""
        return len(self.losses)

    def set_rate(self, rate: float) -> None:
        """Of the updates to come."""
        for group in self._adam.param_groups:
            group["lr"] = rate

    def step(self, loss: Loss) -> float:
        """One update."""
        self._network.train()
        value = loss(self._positions())
        self._adam.zero_grad(set_to_none=True)
        value.backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        self.losses.append(value.item())
        return self.losses[-1]

    @torch.no_grad()
    def judge(self, validate: Callable[[], float]) -> None:
        """Keep the weights where they are the best so far; ask for an end where they have long not been."""
        self._network.eval()
        self.validations.append(validate())
        best = int(np.argmin(self.validations))
        if best == len(self.validations) - 1:
            self._best = {name: tensor.clone() for name, tensor in self._network.state_dict().items()}
        elif self._config.patience:
            self.early = len(self.validations) - 1 - best >= self._config.patience

    def finish(self) -> None:
        """Save, take the best weights where there was a validation, and stop training."""
        if self.updates > self._saved:
            self.save()
        if self._best:
            load_weights(self._network, self._best, "run")
        self._network.eval()

    def _positions(self) -> NDArray[np.int64]:
        """The items of the next update: whole batches of a shuffle of its own for each epoch."""
        steps = self._count // self._batch
        epoch, at = divmod(self.updates, steps)
        if self._order[0] != epoch:
            self._order = epoch, self._rng.child("epoch", epoch).permutation(self._count)
        return self._order[1][at * self._batch : (at + 1) * self._batch]

    def save(self) -> None:
        """Write all that the next update depends on."""
        if self._state is None:
            return
        tensors = {
            **with_prefix("network", self._network.state_dict()),
            **with_prefix("best", self._best),
            **with_prefix("adam", pack_optimizer(self._adam)),
            "losses": torch.tensor(self.losses, dtype=torch.float64),
            "validations": torch.tensor(self.validations, dtype=torch.float64),
        }
        save_checkpoint(self._state, tensors, {"facts": self._facts, "early": self.early}, STATE_KIND)
        self._saved = self.updates

    def _restore(self, path: Path) -> None:
        saved = load_checkpoint(path, STATE_KIND, unknown=_RECORDED)
        with understood(path.name):
            known = read_facts(saved.config, {"facts": dict, "early": bool})
            recorded = [_recorded(saved.tensors, name) for name in _RECORDED]
        if known["facts"] != self._facts:
            raise ConfigError(f"{path} belongs to another run; give this run a work folder of its own, or delete it")
        load_weights(self._network, of_prefix("network", saved.tensors), path.name)
        unpack_optimizer(self._adam, of_prefix("adam", saved.tensors))
        self._best = of_prefix("best", saved.tensors)
        if self._best:
            check_weights(self._network, self._best, path.name)
        (self.losses, self.validations), self.early = recorded, known["early"]
        self._saved = self.updates


def _recorded(tensors: Mapping[str, Tensor], name: str) -> list[float]:
    found = tensors.get(name)
    if found is None or found.ndim != 1 or found.dtype != torch.float64:
        raise ConfigError(f"{name} must be a list of numbers")
    values: list[float] = found.tolist()
    return values

"""The state of a training run as plain tensors, so that a killed run goes on to exactly the same weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from veilkit.checkpoint import Checkpoint, load_checkpoint, load_weights, understood
from veilkit.configs import check_range, read_facts
from veilkit.errors import CheckpointError, ConfigError
from veilkit.training.pixels import split_digest
from veilkit.types import Split

Parts: TypeAlias = Mapping[str, nn.Module | Optimizer]
_FIELDS = ({"step", "exp_avg", "exp_avg_sq"}, {"momentum_buffer"})  # of Adam and of SGD


def pack_optimizer(optimizer: Optimizer) -> dict[str, Tensor]:
    """The optimizer's moments and counters, named INDEX.FIELD by the parameter's position."""
    state = optimizer.state_dict()["state"]
    return {f"{index}.{field}": value for index, fields in state.items() for field, value in fields.items()}


def unpack_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `pack_optimizer` took, in each parameter's memory layout (another layout may round otherwise).

    Raises CheckpointError for what belongs to no parameter.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, _, field = name.partition(".")
        if not index.isdecimal() or len(index) > 9 or int(index) >= len(parameters):
            raise CheckpointError(f"the state of the optimizer holds {name[:80]!r}, which belongs to no parameter")
        parameter = parameters[int(index)]
        if not value.is_floating_point() or value.shape not in ((), parameter.shape):
            raise CheckpointError(f"the state of the optimizer does not fit the network at {name!r}")
        if value.shape == parameter.shape and value.ndim:
            value = torch.empty_like(parameter).copy_(value)
        state.setdefault(int(index), {})[field] = value
    if wrong := [fields for fields in state.values() if set(fields) not in _FIELDS]:
        raise CheckpointError(f"the state of the optimizer is not whole: it has {', '.join(sorted(wrong[0]))[:80]}")
    whole = optimizer.state_dict()
    whole["state"] = state
    optimizer.load_state_dict(whole)


def with_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors, each name preceded by `prefix` and a slash."""
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def of_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors that `with_prefix` named, under their own names again."""
    start = f"{prefix}/"
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}


def split_prefixes(
    prefixes: Sequence[str], tensors: Mapping[str, Tensor]
) -> tuple[tuple[dict[str, Tensor], ...], dict[str, Tensor]]:
    """The tensors of each prefix under their own names, and all that have none of these."""
    parts = tuple(of_prefix(prefix, tensors) for prefix in prefixes)
    others = {name: value for name, value in tensors.items() if name.partition("/")[0] not in prefixes}
    return parts, others


def pack(parts: Parts) -> dict[str, Tensor]:
    """All that the next step of networks and optimizers depends on, each under its name and a slash."""
    tensors: dict[str, Tensor] = {}
    for name, part in parts.items():
        tensors |= with_prefix(name, pack_optimizer(part) if isinstance(part, Optimizer) else part.state_dict())
    return tensors


def unpack(parts: Parts, tensors: Mapping[str, Tensor], source: str) -> None:
    """Put back what `pack` took; `source` names the file in messages."""
    for name, part in parts.items():
        if isinstance(part, Optimizer):
            unpack_optimizer(part, of_prefix(name, tensors))
        else:
            load_weights(part, of_prefix(name, tensors), source)


def run_facts(config: Any, train: Split, **others: str | None) -> dict[str, Any]:
    """What makes two runs the same one, as JSON values: recipe, pictures and all else that the result depends on."""
    facts: dict[str, Any] = json.loads(json.dumps({**asdict(config), "data": split_digest(train), **others}))
    return facts


class MovingAverage:
    """An exponential moving average of a network's weights and statistics; early on it forgets faster."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self.tensors = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}

    @torch.no_grad()
    def update(self, network: nn.Module, step: int) -> None:
        """Move towards the weights after `step` steps (from 0) of training."""
        decay = min(self.decay, (1 + step) / (10 + step))
        for name, value in network.state_dict().items():
            if value.is_floating_point():
                self.tensors[name].lerp_(value, 1 - decay)
            else:
                self.tensors[name].copy_(value)


def read_state(path: Path, kind: str, facts: dict[str, Any]) -> Checkpoint:
    """A saved state, provided that it is one of the run that `facts` describe."""
    saved = load_checkpoint(path, kind)
    with understood(path.name):
        other = read_facts(saved.config, {"run": dict})["run"]
    changed = sorted(name for name in {*other, *facts} if other.get(name) != facts.get(name))
    if changed:
        raise ConfigError(
            f"{path} belongs to another run: {', '.join(changed)} differ; "
            "give this run a work folder of its own, or delete that file"
        )
    return saved


def read_counts(saved: Checkpoint, path: Path, most: Mapping[str, int]) -> dict[str, int]:
    """The counters of a saved state, each from 0 to what `most` says."""
    with understood(path.name):
        counts = read_facts(saved.config, dict.fromkeys(most, int))
        for name, limit in most.items():
            check_range(name, counts[name], 0, limit)
    return counts

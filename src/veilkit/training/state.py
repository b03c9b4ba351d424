"""The state of a training run as plain tensors, so that a killed run goes on to exactly the same weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from veilkit.checkpoint import Checkpoint, load_checkpoint
from veilkit.errors import ConfigError


def pack_optimizer(optimizer: Optimizer) -> dict[str, Tensor]:
    """The optimizer's moments and counters, named INDEX.FIELD by the parameter's position."""
    state = optimizer.state_dict()["state"]
    return {f"{index}.{field}": value for index, fields in state.items() for field, value in fields.items()}


def unpack_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `pack_optimizer` took, in each parameter's memory layout (another layout may round otherwise)."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, _, field = name.partition(".")
        parameter = parameters[int(index)]
        if value.shape == parameter.shape and value.ndim:
            value = torch.empty_like(parameter).copy_(value)
        state.setdefault(int(index), {})[field] = value
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
    other = saved.config.get("run", {})
    changed = sorted(name for name in {*other, *facts} if other.get(name) != facts.get(name))
    if changed:
        raise ConfigError(
            f"{path} belongs to another run: {', '.join(changed)} differ; "
            "give this run a work folder of its own, or delete that file"
        )
    return saved

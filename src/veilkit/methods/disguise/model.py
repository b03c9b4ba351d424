"""What a training of Disguise leaves on disk: swapper, transform, ensemble, and which experts they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from torch import Tensor

from veilkit.checkpoint import Checkpoint, built, content_sha256, refuse_tensors, understood
from veilkit.configs import check_lengths, check_range, read_facts
from veilkit.errors import ConfigError
from veilkit.methods.disguise.identity_transforms import Ensemble, Transform, make_transform
from veilkit.methods.disguise.swapper import Swapper
from veilkit.methods.disguise.training.config import DisguiseTrainingConfig
from veilkit.training.state import split_prefixes, with_prefix

_FACTS = {"experts": str, "dims": tuple[int, ...], "sensitivity": float}
_NETWORKS = ("swapper", "transform", "ensemble")
_MOST_EXPERTS = 64


@dataclass(frozen=True, eq=False)
class DisguiseModel:
    """Networks in evaluation mode.

    experts: fingerprint of the identity experts, together. dims: lengths of their features. sensitivity: as the paper
    measures it. people: (P, D) identities known by their faces, or (0, D). centres: of each expert's features, or
    none.
    """

    swapper: Swapper
    transform: Transform
    ensemble: Ensemble | None
    experts: str
    dims: tuple[int, ...]
    sensitivity: float
    people: Tensor
    centres: tuple[Tensor, ...] = ()

    @cached_property
    def sha256(self) -> str:
        """A fingerprint of everything here."""
        return content_sha256(self.tensors(), self.facts(), "disguise")

    def tensors(self) -> dict[str, Tensor]:
        """All weights, named for a model file."""
        tensors = with_prefix("swapper", self.swapper.state_dict())
        tensors |= with_prefix("transform", self.transform.state_dict())
        if self.ensemble is not None:
            tensors |= with_prefix("ensemble", self.ensemble.state_dict())
        tensors |= {f"centre.{number}": centre for number, centre in enumerate(self.centres)}
        return tensors | {"people": self.people}

    def facts(self) -> dict[str, Any]:
        """All else, as JSON values."""
        return {"experts": self.experts, "dims": list(self.dims), "sensitivity": self.sensitivity}

    @classmethod
    def read(cls, config: DisguiseTrainingConfig, checkpoint: Checkpoint, source: str) -> Self:
        """From a model file of this configuration; `source` names it in errors."""
        with understood(source):
            whole = read_facts(checkpoint.config, {"model": dict})
            facts = read_facts(whole["model"], _FACTS)
            check_lengths("dims", facts["dims"], _MOST_EXPERTS, 65536)
            check_range("sensitivity", facts["sensitivity"], 0.0, 1e12)
            (swapper, transform, ensemble), others = split_prefixes(_NETWORKS, checkpoint.tensors)
            centres = tuple(
                _vectors(others, f"centre.{number}", (dim,))
                for number, dim in enumerate(facts["dims"] if config.centred else ())
            )
            people = _vectors(others, "people", (-1, config.transform.dim))
        refuse_tensors(others, source)
        joined = None
        if ensemble:
            joined = built(lambda: Ensemble(facts["dims"], config.transform.dim), ensemble, source)
            joined.eval().requires_grad_(False)
        return cls(
            built(lambda: Swapper(config.swapper), swapper, source).eval().requires_grad_(False),
            built(lambda: make_transform(config.transform), transform, source).eval().requires_grad_(False),
            joined,
            facts["experts"],
            facts["dims"],
            facts["sensitivity"],
            people,
            centres,
        )


def _vectors(tensors: dict[str, Tensor], name: str, shape: tuple[int, ...]) -> Tensor:
    """Take out a tensor of this shape, in which -1 stands for any number."""
    found = tensors.pop(name, None)
    if found is None:
        raise ConfigError(f"{name} is missing")
    fits = found.ndim == len(shape) and all(
        wanted in (-1, side) for wanted, side in zip(shape, found.shape, strict=True)
    )
    if not fits or not found.is_floating_point():
        raise ConfigError(f"{name} must be of shape {shape}, but got {found.dtype} of shape {tuple(found.shape)}")
    return found

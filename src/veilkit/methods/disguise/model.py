"""What a training of Disguise leaves on disk: swapper, transform, ensemble, and which experts they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from torch import Tensor

from veilkit.checkpoint import Checkpoint, content_sha256, load_weights
from veilkit.errors import CheckpointError
from veilkit.methods.disguise.identity_transforms import Ensemble, Transform, make_transform
from veilkit.methods.disguise.swapper import Swapper
from veilkit.methods.disguise.training.config import DisguiseTrainingConfig
from veilkit.training.state import of_prefix, with_prefix


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
        wrong = sorted(name for name, values in checkpoint.tensors.items() if not bool(values.isfinite().all()))
        if wrong:
            raise CheckpointError(
                f"{source}: expected weights that are numbers, but {len(wrong)} of its tensors hold NaN or infinity "
                f"({wrong[0]}): it would draw no faces; train it again, or take another file"
            )
        facts: Mapping[str, Any] = checkpoint.config["model"]
        swapper, transform = Swapper(config.swapper), make_transform(config.transform)
        load_weights(swapper, of_prefix("swapper", checkpoint.tensors), source)
        load_weights(transform, of_prefix("transform", checkpoint.tensors), source)
        ensemble = None
        if weights := of_prefix("ensemble", checkpoint.tensors):
            ensemble = Ensemble(facts["dims"], config.transform.dim)
            load_weights(ensemble, weights, source)
            ensemble.eval().requires_grad_(False)
        return cls(
            swapper.eval().requires_grad_(False),
            transform.eval().requires_grad_(False),
            ensemble,
            facts["experts"],
            tuple(facts["dims"]),
            float(facts["sensitivity"]),
            checkpoint.tensors["people"],
            tuple(checkpoint.tensors[f"centre.{number}"] for number in range(len(facts["dims"])))
            if config.centred
            else (),
        )

"""What a mechanism is: vectors in, noisy vectors out, and what is proved of that."""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.privacy.cost import Cost
from veilkit.privacy.noise import Noise, SystemNoise
from veilkit.privacy.parameters import checked_dimension, checked_epsilon
from veilkit.privacy.vectors import unit_rows
from veilkit.types import Guarantee, Level

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """A way to release vectors of length `dimension`, each under a claim of `epsilon`.

    The claim is of local differential privacy: for any two unit vectors x, x' and any set S of outputs,
    P[M(x) in S] <= exp(epsilon) P[M(x') in S] + delta. It holds for each released vector by itself; releases of
    one record, or of one person's records, compose (see `Ledger`).
    """

    name: ClassVar[str]

    dimension: int
    epsilon: float

    def __post_init__(self) -> None:
        checked_dimension(self.dimension)
        checked_epsilon(self.epsilon)

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """What is proved of releasing one vector, with noise from a secure source."""

    @abstractmethod
    def _perturb(self, vectors: Array, noise: Noise) -> Array:
        """Float64 vectors (N, D), checked, to what is released of them."""

    def checked(self, vectors: Tensor) -> Array:
        """Vectors (N, D) as float64, once known to be what the claim rests on."""
        return unit_rows(vectors, dimension=self.dimension)

    def release(self, vectors: Tensor, *, noise: Noise | None = None) -> Tensor:
        """Unit vectors (N, D) with fresh noise each, as float32 (N, D); an unbiased estimate of them.

        Every call costs again: go through a `Ledger` to be charged and to get the same answer for the same record.
        noise: the operating system's unless told otherwise.
        """
        noisy = self._perturb(self.checked(vectors), SystemNoise() if noise is None else noise)
        return torch.from_numpy(noisy.astype(np.float32))

    def guarantee(self) -> Guarantee:
        """The claim for one released vector, with what is proved of it."""
        cost = self.cost
        return Guarantee(
            text=f"{self.name}: local differential privacy of each released vector by itself",
            level=Level.L3,
            epsilon_claimed=self.epsilon,
            epsilon_proved=cost.epsilon,
            delta=cost.delta,
        )

    def describe(self) -> str:
        """Name and parameters as JSON, the same for equal mechanisms."""
        return json.dumps({"mechanism": self.name, **dataclasses.asdict(self)}, sort_keys=True)

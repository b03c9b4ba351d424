"""Vectors on their way into a mechanism: bounded in sight of the caller, checked where a proof rests on it."""

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

from veilkit.errors import DataError
from veilkit.privacy.cost import Cost, checked_dimension, checked_epsilon
from veilkit.privacy.noise import Noise, SystemNoise
from veilkit.types import Guarantee, Level

TOLERANCE = 1e-4  # how far float32 and float16 arithmetic may leave a normalised vector from norm 1


def unit(features: Tensor) -> Tensor:
    """Features (N, D) divided by their L2 norms: what every sound mechanism expects.

    A row of zeros has no direction and is refused.
    """
    found = rows(features)
    norms = np.linalg.norm(found, axis=1)
    if empty := np.flatnonzero(norms == 0.0).tolist():
        raise DataError(
            f"a vector of zeros has no direction, but row {empty[0]} is one (of {len(empty)}): leave it out"
        )
    return torch.from_numpy(found / norms[:, None]).to(features)


def rows(vectors: Tensor, *, dimension: int | None = None) -> NDArray[np.float64]:
    """Vectors as a finite float64 array (N, D), with D as given."""
    if not isinstance(vectors, Tensor) or not vectors.is_floating_point():
        what = vectors.dtype if isinstance(vectors, Tensor) else type(vectors).__name__
        raise DataError(f"vectors must be a floating tensor of shape (N, D), but got {what}")
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise DataError(f"vectors must have shape (N, D), neither of them 0, but got {tuple(vectors.shape)}")
    if dimension is not None and vectors.shape[1] != dimension:
        raise DataError(f"this mechanism was made for vectors of {dimension}, but got vectors of {vectors.shape[1]}")
    found = vectors.detach().cpu().double().numpy()
    if not np.isfinite(found).all():
        raise DataError("vectors must be finite, but hold NaN or infinity; check the model that made them")
    return found


def unit_rows(vectors: Tensor, *, dimension: int) -> NDArray[np.float64]:
    """Unit vectors as a float64 array (N, D), of norm 1 to the last digits.

    Refuses rows whose norm is not 1 to within TOLERANCE: a sensitivity of 2 holds for unit vectors only. What
    rounding has left of a normalised vector is taken off here, so that the bound holds exactly.
    """
    found = rows(vectors, dimension=dimension)
    norms = np.linalg.norm(found, axis=1)
    wrong = np.flatnonzero(np.abs(norms - 1.0) > TOLERANCE)
    if len(wrong):
        raise DataError(
            f"expected unit vectors, but {len(wrong)} of {len(norms)} are not, the first (row {wrong[0]}) with norm "
            f"{norms[wrong[0]]:.4g}: the guarantee rests on norm 1, so pass veilkit.privacy.unit(features)"
        )
    return np.asarray(found / norms[:, None])


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

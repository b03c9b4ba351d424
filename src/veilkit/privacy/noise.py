"""Where noise comes from: the operating system, or, for tests only, a seed.

Gaussian and Laplace noise is opendp's: drawn exactly, in whole numbers, on a grid of 2**-40, and added on that grid,
so that the last bits of a float cannot give a vector away (Mironov 2012). Its bytes come from OpenSSL's generator,
which the operating system seeds and which a forked process does not share. Uniform and normal draws, which PrivUnit
needs and opendp does not offer, come from os.urandom in double precision; PrivUnit says what it does about their last
bits.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import ConfigError
from veilkit.rng import Randomness

Array = NDArray[np.float64]
GRID = -40  # noise lies on multiples of 2**GRID
_AT_ONCE = 2**16  # values handed to opendp at once, as a Python list


class Noise(Protocol):
    """A source of noise. `secure` tells whether a proof may rest on it."""

    secure: ClassVar[bool]

    def add_gaussian(self, values: Array, *, scale: float) -> Array:
        """Values plus independent Gaussian noise of standard deviation `scale`, in the shape of `values`."""
        ...

    def add_laplace(self, values: Array, *, scale: float) -> Array:
        """Values plus independent Laplace noise of density exp(-|x| / scale) / (2 scale)."""
        ...

    def uniform(self, *shape: int) -> Array:
        """Values in the open interval (0, 1)."""
        ...

    def normal(self, *shape: int) -> Array:
        """Values of the standard normal distribution."""
        ...


class SystemNoise:
    """Noise that nobody can draw again: the only kind that a guarantee may rest on."""

    secure: ClassVar[bool] = True

    def add_gaussian(self, values: Array, *, scale: float) -> Array:
        """Values plus Gaussian noise, by opendp's discrete sampler."""
        return self._add("make_gaussian", "l2_distance", values, scale)

    def add_laplace(self, values: Array, *, scale: float) -> Array:
        """Values plus Laplace noise, by opendp's discrete sampler."""
        return self._add("make_laplace", "l1_distance", values, scale)

    def uniform(self, *shape: int) -> Array:
        """The middles of 2**53 equal parts of (0, 1), each as likely as another."""
        words = np.frombuffer(os.urandom(8 * int(np.prod(shape))), dtype="<u8") >> np.uint64(11)
        return ((words.astype(np.float64) + 0.5) * 2.0**-53).reshape(shape)

    def normal(self, *shape: int) -> Array:
        """Standard normal values by inversion."""
        from scipy.special import ndtri

        return np.asarray(ndtri(self.uniform(*shape)), dtype=np.float64)

    @staticmethod
    def _add(maker: str, metric: str, values: Array, scale: float) -> Array:
        dp: Any = _opendp()
        flat, noisy = values.ravel(), np.empty(values.size)
        for start in range(0, flat.size, _AT_ONCE):
            part = flat[start : start + _AT_ONCE].tolist()
            domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(part))
            add = getattr(dp.m, maker)(domain, getattr(dp, metric)(T=float), scale=scale, k=GRID)
            noisy[start : start + len(part)] = add(part)
        return noisy.reshape(values.shape)


class SeededNoise:
    """Noise that anybody with the seed can draw again and take off: for tests, never for a release.

    Drawing goes on where it was; two sources of one seed give the same values in the same order.
    """

    secure: ClassVar[bool] = False

    def __init__(self, seed: int, *, insecure: bool = False) -> None:
        if not insecure:
            raise ConfigError(
                "seeded noise protects nobody, since whoever knows the seed can take it off: use SystemNoise(), or "
                "say insecure=True in a test"
            )
        self._generator = Randomness.from_seed(seed).child("insecure noise").numpy()

    def add_gaussian(self, values: Array, *, scale: float) -> Array:
        """Values plus Gaussian noise."""
        return values + self._generator.normal(0.0, scale, values.shape)

    def add_laplace(self, values: Array, *, scale: float) -> Array:
        """Values plus Laplace noise."""
        return values + self._generator.laplace(0.0, scale, values.shape)

    def uniform(self, *shape: int) -> Array:
        """Values in [0, 1)."""
        return self._generator.random(shape)

    def normal(self, *shape: int) -> Array:
        """Standard normal values."""
        return self._generator.standard_normal(shape)


def _opendp() -> Any:
    import opendp.prelude as dp  # half a second that only noise has to pay for

    dp.enable_features("contrib")  # the samplers have their proofs, but are still under review there
    return dp

"""The mechanisms with a proof, by name."""

from __future__ import annotations

from veilkit.errors import ConfigError
from veilkit.lookup import Lookup
from veilkit.privacy.gaussian import AnalyticGaussian
from veilkit.privacy.laplace import Laplace
from veilkit.privacy.mechanism import Mechanism
from veilkit.privacy.privunit import PrivUnit

_PURE: list[type[Laplace] | type[PrivUnit]] = [Laplace, PrivUnit]
MECHANISMS: Lookup[type[Mechanism]] = Lookup("mechanism", [(kind.name, kind) for kind in (AnalyticGaussian, *_PURE)])


def make_mechanism(name: str, *, dimension: int, epsilon: float, delta: float) -> Mechanism:
    """The mechanism of that name. Pure ones ("laplace", "privunit") take a delta of 0 and no other.

    >>> make_mechanism("privunit", dimension=128, epsilon=8.0, delta=0.0).cost
    Cost(epsilon=8.0, delta=0.0, multiplier=None)
    """
    kind = MECHANISMS[name]
    if kind is AnalyticGaussian:
        return AnalyticGaussian(dimension=dimension, epsilon=epsilon, delta=delta)
    if delta != 0.0:
        raise ConfigError(f"{name} is a pure mechanism, whose delta is 0, but got delta {delta!r}")
    return kind(dimension=dimension, epsilon=epsilon)

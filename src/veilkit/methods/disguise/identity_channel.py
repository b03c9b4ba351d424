"""From somebody's identity to the synthetic one that is injected: the paper's noise, or a mechanism with a proof.

What the sound channel proves is about the injected vector alone. The swapper also sees the picture, so that the
released picture as a whole has no formal guarantee, whatever the channel.
"""

from __future__ import annotations

import math
from typing import Literal, Protocol, TypeAlias

from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.methods.disguise.identity_transforms import Transform, TransformConfig, transformed
from veilkit.methods.disguise.training.monitor import inference_noise
from veilkit.privacy import DisguisePaper, Mechanism, make_mechanism, unit
from veilkit.rng import Randomness
from veilkit.types import Guarantee, Level

ChannelKind: TypeAlias = Literal["paper", "privunit", "gaussian"]
OUTSIDE = (
    "the swapper also sees the picture, so that this holds for the injected identity vector of each face by itself, "
    "not for the released picture"
)


class Channel(Protocol):
    """A way from identities to synthetic ones."""

    def synthetic(self, vectors: Tensor, node: Randomness) -> Tensor:
        """Unit vectors (1, D) to a synthetic identity (1, D) of length 1."""

    def guarantee(self) -> Guarantee:
        """What is claimed, and what of that is proved."""


class PaperChannel:
    """The transform with Laplace noise from the item's own randomness, as the paper has it. It proves nothing.

    sensitivity: the largest L1 distance seen between transformed identities, from which the paper takes its epsilon.
    """

    def __init__(self, config: TransformConfig, transform: Transform, sensitivity: float) -> None:
        self._config, self._transform, self._sensitivity = config, transform, sensitivity

    def synthetic(self, vectors: Tensor, node: Randomness) -> Tensor:
        """(1, D) -> (1, D)."""
        return transformed(self._transform, vectors, inference_noise(self._config, node)).vectors

    def guarantee(self) -> Guarantee:
        """No formal guarantee: epsilon as the paper would print it, where there is noise, and infinite as proved."""
        scale = self._config.noise if self._config.noise_length else 0.0
        if not scale:
            text = "disguise: no formal guarantee; the transform is without noise, and whoever has it can invert it"
            return Guarantee(text=text, level=Level.L0, epsilon_proved=math.inf)
        printed = DisguisePaper.from_scale(dimension=self._config.dim, sensitivity=self._sensitivity, scale=scale)
        return printed.guarantee()


class SoundChannel:
    """A mechanism on the unit vector, with noise of the operating system; then the transform, without noise.

    What comes after the mechanism looks at its output only, which costs nothing more.
    """

    def __init__(self, mechanism: Mechanism, transform: Transform) -> None:
        self._mechanism, self._transform = mechanism, transform

    def synthetic(self, vectors: Tensor, node: Randomness) -> Tensor:
        """(1, D) -> (1, D). Nothing derives from `node`: each call is another release, and costs again."""
        released = unit(self._mechanism.release(unit(vectors)))
        return transformed(self._transform, released).vectors

    def guarantee(self) -> Guarantee:
        """The mechanism's claim for one injected vector, and what lies outside of it."""
        proved = self._mechanism.guarantee()
        return Guarantee(
            text=f"{self._mechanism.name}: local differential privacy of the injected identity; {OUTSIDE}",
            level=proved.level,
            epsilon_claimed=proved.epsilon_claimed,
            epsilon_proved=proved.epsilon_proved,
            delta=proved.delta,
        )


def make_channel(
    kind: ChannelKind,
    config: TransformConfig,
    transform: Transform,
    *,
    sensitivity: float,
    epsilon: float | None,
    delta: float,
) -> Channel:
    """The channel of a configuration; a sound one needs an epsilon, which has no default."""
    if kind == "paper":
        return PaperChannel(config, transform, sensitivity)
    check_channel(kind, epsilon, delta)
    assert epsilon is not None
    return SoundChannel(make_mechanism(kind, dimension=config.dim, epsilon=epsilon, delta=delta), transform)


def check_channel(kind: ChannelKind, epsilon: float | None, delta: float) -> None:
    """Raise where kind, epsilon and delta do not go together."""
    if kind == "paper" and epsilon is not None:
        raise ConfigError("the paper's channel proves no epsilon: leave epsilon out, or take privunit or gaussian")
    if kind == "paper" and delta != 0.0:
        raise ConfigError(f"the paper's channel has no delta, but got {delta!r}: leave delta out, or take gaussian")
    if kind != "paper" and epsilon is None:
        raise ConfigError(f"the channel {kind} needs an epsilon: set one, like epsilon=8; smaller is more private")

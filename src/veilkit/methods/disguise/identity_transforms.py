"""Disguise's identity transforms: an identity vector to a synthetic one, and the ensemble that joins experts.

Vectors are unit vectors (Figure 3 of the paper): each transform ends in tanh, as printed, and its answer is brought
back to length 1. Noise comes in from outside as standard values, so that who calls decides where it is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias, cast, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.configs import check_lengths, check_range
from veilkit.errors import ConfigError

_WIDTHS = (0.1, 0.25, 0.5, 1.0)  # variances of the kernels; strangers are about 2 apart, squared

Kind: TypeAlias = Literal["opp", "mlp", "ved", "noise"]


@dataclass(frozen=True, slots=True)
class TransformConfig:
    """kind: `opp` (-z), `mlp`, `ved`, a variational encoder and decoder, or `noise`, which only adds noise (the
    supplement's Table 9, and what others had proposed before). dim: length of an identity vector.

    mlp: widths between input and output of the MLP. ved: widths of the VED's encoder and decoder. latent: its latent
    length. noise: scale of the Laplace noise at inference (the paper's beta for `mlp` and `noise`, alpha for `ved`).
    The defaults are the supplement's sizes and the scale of its example.
    """

    kind: Kind = "ved"
    dim: int = 512
    mlp: tuple[int, ...] = (2048, 1024)
    ved: tuple[int, ...] = (1024, 1024)
    latent: int = 512
    noise: float = 2.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ConfigError(f"an identity transform must be opp, mlp, ved or noise, but got {self.kind!r}")
        for name in ("dim", "latent"):
            check_range(name, getattr(self, name), 2, 65536)
        check_lengths("mlp", self.mlp, 16, 65536)
        check_lengths("ved", self.ved, 16, 65536)
        check_range("noise", self.noise, 0.0, 1e6)

    @property
    def noise_length(self) -> int:
        """How many random values one vector takes; 0 for `opp`."""
        return {"opp": 0, "mlp": self.dim, "ved": self.latent, "noise": self.dim}[self.kind]


@dataclass(frozen=True, slots=True, eq=False)
class Transformed:
    """vectors: (N, D) of length 1. mean, log_variance: (N, L) of the VED's latent distribution, else None."""

    vectors: Tensor
    mean: Tensor | None = None
    log_variance: Tensor | None = None


class Opposite(nn.Module):
    """The vector farthest away. It is its own inverse: no protection from whoever knows of it."""

    def forward(self, vectors: Tensor, noise: Tensor | None = None) -> Transformed:
        """(N, D) of length 1 -> their opposites; nothing is random."""
        return Transformed(-vectors)


class NoiseAlone(nn.Module):
    """z + noise, of length 1: nothing is learned, and without noise everybody keeps their identity."""

    def forward(self, vectors: Tensor, noise: Tensor | None = None) -> Transformed:
        """(N, D) -> (N, D). noise: (N, D), of the scale that is wanted."""
        return Transformed(F.normalize(vectors if noise is None else vectors + noise))


class MlpTransform(nn.Module):
    """tanh(MLP(z + noise)), of length 1."""

    def __init__(self, config: TransformConfig) -> None:
        super().__init__()
        self.layers = _layers((config.dim, *config.mlp, config.dim))

    def forward(self, vectors: Tensor, noise: Tensor | None = None) -> Transformed:
        """(N, D) -> (N, D). noise: (N, D), of the scale that is wanted; None adds nothing."""
        given = vectors if noise is None else vectors + noise
        return Transformed(F.normalize(torch.tanh(self.layers(given))))


class Ved(nn.Module):
    """A variational encoder whose decoder answers with another identity than the one encoded."""

    def __init__(self, config: TransformConfig) -> None:
        super().__init__()
        self.encoder = nn.Sequential(_layers((config.dim, *config.ved)), nn.LeakyReLU(0.2))
        self.mean = nn.Linear(config.ved[-1], config.latent)
        self.log_variance = nn.Linear(config.ved[-1], config.latent)
        self.decoder = _layers((config.latent, *config.ved, config.dim))

    def forward(self, vectors: Tensor, noise: Tensor | None = None) -> Transformed:
        """(N, D) -> (N, D): decoder(mean + sigma noise). noise: (N, L), Gaussian in training, Laplace later."""
        hidden = self.encoder(vectors)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        latent = mean if noise is None else mean + torch.exp(0.5 * log_variance) * noise
        return Transformed(F.normalize(torch.tanh(self.decoder(latent))), mean, log_variance)


Transform: TypeAlias = Opposite | NoiseAlone | MlpTransform | Ved


def make_transform(config: TransformConfig) -> Transform:
    """The transform that a configuration names, with new weights."""
    if config.kind == "opp":
        return Opposite()
    if config.kind == "noise":
        return NoiseAlone()
    return MlpTransform(config) if config.kind == "mlp" else Ved(config)


class Ensemble(nn.Module):
    """Several experts' identity vectors, side by side, to one of `dim` and length 1: a two-layer MLP with tanh.

    The paper's joins two of 512: 1024-1024-512.
    """

    def __init__(self, given: Sequence[int], dim: int, hidden: int = 1024) -> None:
        super().__init__()
        self.layers = _layers((sum(given), hidden, dim))

    def forward(self, vectors: Sequence[Tensor]) -> Tensor:
        """One (N, D_i) for each expert -> (N, dim) of length 1; each is brought to length 1 before."""
        joined = torch.cat([F.normalize(each) for each in vectors], 1)
        return F.normalize(torch.tanh(self.layers(joined)))


def standard_laplace(uniform: Tensor) -> Tensor:
    """Laplace values of scale 1 from uniform ones in (0, 1), by inversion."""
    centred = uniform - 0.5
    return -torch.sign(centred) * torch.log1p(-2 * centred.abs())


def deid_loss(vectors: Tensor, synthetic: Tensor) -> Tensor:
    """Eq. 2: 1 + cos(z, z~), the mean over the batch; 0 where they are opposites."""
    return 1 + F.cosine_similarity(vectors, synthetic).mean()


def kld_loss(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Kullback-Leibler divergence of N(mean, sigma^2) from N(0, 1): (N, L) summed over L, the mean over the batch."""
    return 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()


def unnatural_loss(synthetic: Tensor, real: Tensor) -> Tensor:
    """How far synthetic identities (N, D) are from being distributed as real ones (M, D).

    It is the squared maximum mean discrepancy of unit vectors under Gaussian kernels of several widths, unbiased.
    Nothing else tells a transform what vectors people have: it may answer with one that no face has, which a swapper
    then reaches by a texture that no face has either.
    """
    one, other = F.normalize(synthetic), F.normalize(real)

    def kernel(x: Tensor, y: Tensor) -> Tensor:
        apart = 2 - 2 * x @ y.T
        return torch.stack([torch.exp(-apart / (2 * width)) for width in _WIDTHS]).mean(0)

    def among(x: Tensor) -> Tensor:
        values = kernel(x, x)
        return (values.sum() - values.diagonal().sum()) / max(1, len(x) * (len(x) - 1))

    return among(one) + among(other) - 2 * kernel(one, other).mean()


def geometry_loss(joined: Tensor, vectors: Sequence[Tensor]) -> Tensor:
    """How far the cosines among joined vectors (N, D) are from the experts' mean cosines, mean squared.

    An ensemble that only had to agree with itself could answer the same for everybody; this keeps people apart.
    """
    units = [F.normalize(each) for each in vectors]
    wanted = torch.stack([each @ each.T for each in units]).mean(0)
    unit = F.normalize(joined)
    return (unit @ unit.T - wanted).square().mean()


def _layers(widths: Sequence[int]) -> nn.Sequential:
    """Linear layers of these widths with leaky rectifiers between them."""
    layers: list[nn.Module] = []
    for into, out in pairwise(widths):
        layers += [nn.Linear(into, out), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


def transformed(transform: Transform, vectors: Tensor, noise: Tensor | None = None) -> Transformed:
    """`transform(vectors, noise)` with its type."""
    return cast(Transformed, transform(vectors, noise))

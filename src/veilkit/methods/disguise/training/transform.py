"""Another identity transform for a swapper that is trained already: learned on identity vectors alone.

Disguise trains swapper and transform together. To compare transforms under one swapper, the others are fitted to the
same training people's vectors, by the losses that concern vectors (Eq. 2, the divergence of the VED and, where it has
a weight, how natural the answers are). A training of both may begin with such a transform.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from veilkit.methods.disguise.identity_transforms import (
    Transform,
    TransformConfig,
    deid_loss,
    kld_loss,
    make_transform,
    standard_laplace,
    transformed,
    unnatural_loss,
)
from veilkit.methods.disguise.training.config import DisguiseTrainingConfig
from veilkit.privacy import DisguisePaper
from veilkit.rng import Randomness
from veilkit.training.fitting import FitConfig, fit_network, seeded


def fit_transform(
    config: TransformConfig,
    identities: Tensor,
    recipe: DisguiseTrainingConfig,
    fit: FitConfig,
    *,
    state: Path | None = None,
    stream: TextIO | None = None,
) -> tuple[Transform, float]:
    """A transform fitted to identities (N, D) of length 1, in evaluation mode, and what the paper calls sensitivity.

    recipe: whose weights of the losses are taken. What learns nothing (`opp`, `noise`) is made as it is.
    """
    rng = Randomness.from_seed(fit.seed).child("disguise", "transform", config.kind)
    network = seeded(lambda: make_transform(config), rng.child("start"))
    if any(True for _ in network.parameters()):

        def loss(positions: NDArray[np.int64]) -> Tensor:
            own = identities[positions]
            node = rng.child("noise", positions.astype("<i8").tobytes())
            found = transformed(network, own, training_noise(config, len(own), node))
            total = recipe.deid_weight * deid_loss(own, found.vectors)
            if found.mean is not None and found.log_variance is not None:
                total = total + recipe.kld_weight * kld_loss(found.mean, found.log_variance)
            if recipe.natural_weight:
                others = node.child("others").permutation(len(identities))[: len(own)]
                total = total + recipe.natural_weight * unnatural_loss(found.vectors, identities[others])
            return total

        facts = {
            "transform": asdict(config),
            "weights": [recipe.deid_weight, recipe.kld_weight, recipe.natural_weight],
            "identities": hashlib.sha256(identities.contiguous().numpy().tobytes()).hexdigest(),
        }
        fit_network(
            network, loss, len(identities), fit, facts=facts, state=state, what=f"fitting {config.kind}",
            stream=stream,
        )  # fmt: skip
    network.eval().requires_grad_(False)
    answers = transformed(network, identities).vectors
    return network, DisguisePaper.measured(answers, epsilon=1.0).sensitivity


def training_noise(config: TransformConfig, count: int, node: Randomness) -> Tensor | None:
    """Gaussian for the VED, Laplace of the configured scale otherwise; None for `opp`."""
    if config.kind == "ved":
        return node.normal(count, config.latent)
    if config.kind in ("mlp", "noise"):
        return config.noise * standard_laplace(node.uniform(count, config.dim))
    return None

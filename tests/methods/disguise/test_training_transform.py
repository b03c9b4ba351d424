"""Transforms fitted to identity vectors: what they learn, and what needs no learning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from veilkit.methods.disguise.identity_transforms import TransformConfig, transformed, unnatural_loss
from veilkit.methods.disguise.training.config import DisguiseTrainingConfig
from veilkit.methods.disguise.training.transform import fit_transform
from veilkit.training.fitting import FitConfig

RECIPE, FIT = DisguiseTrainingConfig(), FitConfig(150, batch=32, rate=3e-3)


def identities(count: int = 200) -> torch.Tensor:
    return F.normalize(torch.randn(count, 6, generator=torch.Generator().manual_seed(0)))


def config(kind: str) -> TransformConfig:
    return TransformConfig(kind=kind, dim=6, mlp=(32,), ved=(32,), latent=4, noise=0.1)  # type: ignore[arg-type]


def test_an_mlp_learns_to_push_identities_away(tmp_path: Path) -> None:
    vectors = identities()
    state = tmp_path / "mlp.safetensors"
    network, sensitivity = fit_transform(config("mlp"), vectors[:150], RECIPE, FIT, state=state)
    others = transformed(network, vectors[150:]).vectors
    assert float(F.cosine_similarity(others, vectors[150:]).mean()) < -0.9
    assert not any(each.requires_grad for each in network.parameters())
    answers = transformed(network, vectors[:150]).vectors
    apart = (answers[:, None] - answers[None]).abs().sum(-1).max()
    assert sensitivity == pytest.approx(float(apart), rel=1e-4)
    again, _ = fit_transform(config("mlp"), vectors[:150], RECIPE, FIT, state=state)
    assert torch.equal(transformed(again, vectors).vectors, transformed(network, vectors).vectors)


def test_natural_answers_are_distributed_as_people_are(tmp_path: Path) -> None:
    """These people lie to one side, so that nobody is the opposite of anybody."""
    vectors = F.normalize(identities() + torch.tensor([1.5, 0, 0, 0, 0, 0]))
    held = replace(RECIPE, natural_weight=300.0)
    answers = [
        transformed(fit_transform(config("mlp"), vectors, recipe, FIT)[0], vectors).vectors
        for recipe in (RECIPE, held)
    ]
    free, natural = (float(unnatural_loss(each, vectors)) for each in answers)
    assert natural < 0.2 * free
    assert float(F.cosine_similarity(answers[1], vectors).mean()) < 0.9 * float((vectors @ vectors.T).mean())


def test_a_ved_is_held_near_its_prior(tmp_path: Path) -> None:
    network, _ = fit_transform(config("ved"), identities(), RECIPE, FIT)
    found = transformed(network, identities())
    assert found.mean is not None
    assert float(found.mean.square().mean()) < 4
    assert float(F.cosine_similarity(found.vectors, identities()).mean()) < 0


@pytest.mark.parametrize(("kind", "sign"), [("opp", -1.0), ("noise", 1.0)])
def test_what_learns_nothing_is_made_as_it_is(kind: str, sign: float, tmp_path: Path) -> None:
    state = tmp_path / "state.safetensors"
    network, _ = fit_transform(config(kind), identities(), RECIPE, FIT, state=state)
    torch.testing.assert_close(transformed(network, identities()).vectors, sign * identities())
    assert not state.exists()

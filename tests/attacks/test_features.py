"""Inversion of features: decoders, matching, and released features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.attacks.learners import (
    BRIEF,
    BUDGET,
    COLOURS,
    HASTY,
    Thumbnail,
    drawn,
    learned_target,
    people,
    shared_work,
)
from veilkit.attacks import Budget, Pairs, run_gated
from veilkit.attacks.features.decoding import (
    DecoderConfig,
    DecodingConfig,
    FeatureDecoder,
    MatchingConfig,
    match_features,
    total_variation,
    train_decoder,
)
from veilkit.attacks.features.inversion import FeatureMatching, FeatureReconstruction
from veilkit.attacks.pictures import HeldPictures
from veilkit.errors import ConfigError, DataError
from veilkit.experts import load_expert


@pytest.mark.parametrize("size", [(16, 8), (13, 7)])
def test_features_become_images_of_the_size(size: tuple[int, int]) -> None:
    answer = FeatureDecoder(DecoderConfig(5, size, 4, 2)).eval()(torch.randn(3, 5))
    assert answer.shape == (3, 3, *size)
    assert 0 < answer.min() <= answer.max() < 1


def test_other_features_give_another_image() -> None:
    network = FeatureDecoder(DecoderConfig(5, (8, 8), 4, 2)).eval()
    one, other = network(torch.tensor([[0.0] * 5, [1.0] * 5]))
    assert not torch.allclose(one, other)
    with pytest.raises(ConfigError, match="positive"):
        DecoderConfig(0, (8, 8))


def test_a_linear_map_that_keeps_everything_is_inverted() -> None:
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(3, 3, 6, 4, generator=generator)
    turned = torch.linalg.qr(torch.randn(72, 72, generator=generator))[0]

    def embed(some: torch.Tensor) -> torch.Tensor:
        return some.flatten(1) @ turned

    config = MatchingConfig(steps=150, rate=0.05, smoothness=0.0)
    found = match_features(embed, embed(images).numpy(), torch.full((3, 6, 4), 0.5), config, batch=2)
    torch.testing.assert_close(found, images, atol=0.02, rtol=0)
    alone = match_features(embed, embed(images[2:]).numpy(), torch.full((3, 6, 4), 0.5), config)
    torch.testing.assert_close(found[2:], alone, atol=1e-4, rtol=0)


def test_the_prior_fills_in_what_features_do_not_tell() -> None:
    """Cells' means say nothing of a cell's inside: with the prior it becomes smooth, from a rough start."""
    expert, image = Thumbnail("e", (2, 2)), torch.full((1, 3, 8, 8), 0.7)
    rough = torch.rand(3, 8, 8, generator=torch.Generator().manual_seed(0))
    wanted = expert.embed(image).numpy()
    with_prior, without = (
        match_features(expert.embed, wanted, rough, MatchingConfig(60, 0.03, weight)) for weight in (1.0, 0.0)
    )
    assert total_variation(with_prior) < 0.5 * total_variation(without)
    assert float((expert.embed(without) - expert.embed(image)).abs().max()) < 0.02


def test_total_variation_by_hand() -> None:
    image = torch.tensor([[0.0, 1.0], [0.5, 0.5]]).expand(1, 3, 2, 2)
    assert total_variation(image).item() == pytest.approx((0.5 + 0.5) / 2 + (1.0 + 0.0) / 2)
    assert total_variation(torch.rand(2, 3, 1, 1)).tolist() == [0.0, 0.0]


def test_a_decoder_comes_nearer_than_the_mean_to_people_it_never_saw() -> None:
    images, expert = drawn()[0], Thumbnail("e", (4, 3))
    features = expert.embed(images).numpy()
    stored = (images * 255).round().to(torch.uint8)
    decoder = train_decoder(
        features[:24], stored[:24], people()[:24], Budget(100, 100, 8), DecodingConfig(8, 2, HASTY)
    )
    answers = decoder.decode(features[24:])
    mean = images[:24].mean(0)
    assert (answers - images[24:]).square().mean() < 0.85 * (mean - images[24:]).square().mean()
    with pytest.raises(DataError, match="a feature vector per picture"):
        train_decoder(features[:3], stored[:2], people()[:2], BUDGET, DecodingConfig())


def test_an_expert_without_a_gradient_cannot_be_matched() -> None:
    evidence = run_gated(FeatureMatching, learned_target(authorised=load_expert("histogram")))
    assert "no gradient" in evidence.why_missing


def test_matching_attacks_as_many_as_the_budget_allows() -> None:
    attack = FeatureMatching(MatchingConfig(steps=4))
    evidence = attack.run(learned_target(budget=Budget(updates=5, pictures=200, batch=8)))
    assert evidence.details["pictures attacked"] == 5 * 8 // 4
    assert attack.clean_bound(learned_target(budget=Budget(updates=5, batch=8))) == pytest.approx(0.3)
    with pytest.raises(ConfigError, match="positive"):
        MatchingConfig(steps=0)


def test_features_that_tell_nothing_recognise_nobody() -> None:
    flat = torch.full_like(drawn()[0], 0.5)
    evidence = FeatureMatching(MatchingConfig(steps=2)).run(learned_target(flat, budget=Budget(60, 200, 8)))
    assert evidence.scores[0].value == pytest.approx(1 / 24)
    assert np.isfinite(evidence.scores[0].value)


def reconstruct() -> FeatureReconstruction:
    return FeatureReconstruction(DecodingConfig(8, 2, HASTY))


def test_released_features_are_reconstructed_from_them_alone() -> None:
    """No pictures are released and no model is held; noise in place of features shows nothing."""
    clean = COLOURS.embed(drawn()[0]).numpy()
    means = {"protected": None, "authorised": None, "clean_features": clean, "budget": BRIEF, "work": shared_work()}
    found = run_gated(reconstruct, learned_target_without(features=clean, **means))
    assert found.invalid == ()
    assert "expert" not in found.details
    random = np.random.default_rng(0).normal(size=clean.shape).astype(np.float32)
    blind = reconstruct().run(learned_target_without(features=random, **means))
    assert blind.scores[0].value < 0.5 * found.scores[0].value


def learned_target_without(**changes: object):
    """The target of `learned_target` with fields set afterwards, also to nothing."""
    from dataclasses import replace

    return replace(learned_target(), **changes)  # type: ignore[arg-type]


def test_pairs_without_their_released_features_teach_nothing() -> None:
    raw = HeldPictures(drawn()[0])
    pairs = Pairs(raw, raw, people() + 1000)
    clean = COLOURS.embed(drawn()[0]).numpy()
    evidence = run_gated(reconstruct, learned_target(features=clean, clean_features=clean, pairs=pairs))
    assert "what was released" in evidence.why_missing
    with pytest.raises(DataError, match="masks and features"):
        Pairs(raw, raw, people(), features=clean[:3])

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.attacks.learners import drawn, learned_target
from veilkit.attacks import Budget, run_gated
from veilkit.attacks.averaging import Averaging, averages, stretched
from veilkit.attacks.pictures import HeldPictures
from veilkit.errors import ConfigError
from veilkit.rng import Randomness


def noisy(images: torch.Tensor, draw: int, share: float = 0.5) -> torch.Tensor:
    """Noise of a standard deviation of share / sqrt(12), independent for each picture and draw."""
    rng = Randomness.from_seed(7)
    noise = [rng.child(draw, image.numpy().tobytes()).uniform(*image.shape) for image in images]
    return images * (1 - share) + share * torch.stack(noise)


def test_the_error_falls_by_the_root_of_their_number() -> None:
    pictures = HeldPictures(torch.rand(20, 3, 16, 12, generator=torch.Generator().manual_seed(1)))
    counts = (1, 4, 16, 64)
    found = averages(pictures, noisy, counts, (16, 12))
    clean = torch.stack([pictures.load(i) for i in range(20)]) / 2 + 0.25
    errors = np.array([float((found[n] - clean).square().mean().sqrt()) for n in counts])
    np.testing.assert_allclose(errors, 0.5 / np.sqrt(12) / np.sqrt(counts), rtol=0.03)


def test_sixteen_protections_tell_what_one_does_not() -> None:
    def hide(images: torch.Tensor, draw: int) -> torch.Tensor:
        return noisy(images, draw, 0.9)

    images = drawn()[0]
    evidence = run_gated(lambda: Averaging((1, 16)), learned_target(hide(images, 99), protector=hide))
    values = {score.metric: score.value for score in evidence.scores}
    assert evidence.scores[0].metric == "rank-1, 16 averaged"
    assert evidence.invalid == ()
    assert values["rank-1, 16 averaged"] > values["rank-1, 1 averaged"] + 0.1
    assert values["PSNR, 16 averaged"] > values["PSNR, 1 averaged"] + 2
    assert values["stretched rank-1, 16 averaged"] > values["rank-1, 1 averaged"] + 0.1
    assert evidence.details["chance"]["stretched rank-1, 16 averaged"] == pytest.approx(1 / 48)


def test_stretching_gives_contrast_back() -> None:
    images = drawn()[0]
    torch.testing.assert_close(stretched(images, images), images)
    torch.testing.assert_close(stretched(0.4 + images / 10, images), images, atol=1e-4, rtol=0)
    assert torch.equal(stretched(torch.zeros_like(images), images).unique(), images.mean()[None])


def test_one_key_for_all_draws_gives_nothing_to_average() -> None:
    images = drawn()[0]
    found = averages(HeldPictures(images[:3]), lambda some, draw: noisy(some, 0), (1, 4), (16, 12))
    torch.testing.assert_close(found[1], found[4])


def test_the_budget_bounds_how_often_pictures_are_protected() -> None:
    calls = []

    def count(images: torch.Tensor, draw: int) -> torch.Tensor:
        calls.append(len(images))
        return images

    Averaging((4,)).run(learned_target(protector=count, budget=Budget(updates=10, batch=4)))
    assert sum(calls) == 10 * 4


def test_what_it_needs_is_said() -> None:
    assert "under other keys" in run_gated(Averaging, learned_target(protector=None)).why_missing
    with pytest.raises(ConfigError, match="rise"):
        Averaging((4, 1))

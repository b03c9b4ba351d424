from __future__ import annotations

import numpy as np
import pytest

from veilkit.attacks.gated import reaches_clean_bound, scores_chance
from veilkit.attacks.learned.learning import loss_levelled
from veilkit.attacks.recovered import beats_mean_image
from veilkit.types import Role, Score


def rate(value: float, low: float | None = None, high: float | None = None) -> Score:
    return Score("rank-1", value, Role.PRIVACY, False, low, high)


def test_reaching_the_clean_bound_passes() -> None:
    assert reaches_clean_bound(rate(0.8, 0.7, 0.9), 0.8, 0.1) is None


def test_less_than_what_is_possible_is_invalid() -> None:
    assert "80.00% is possible" in str(reaches_clean_bound(rate(0.5, 0.4, 0.6), 0.8, 0.1))


def test_a_recogniser_that_recognises_nobody_is_invalid() -> None:
    assert "not surely better than chance" in str(reaches_clean_bound(rate(0.12, 0.08, 0.2), 0.12, 0.1))


def test_chance_on_noise_passes_and_more_is_invalid() -> None:
    assert scores_chance(rate(0.02, 0.0, 0.05), 0.025, 40) is None
    assert "on independent noise" in str(scores_chance(rate(0.5, 0.4, 0.6), 0.025, 40))


def test_no_hit_at_all_on_noise_is_chance_where_people_are_few() -> None:
    assert scores_chance(rate(0.0, 0.0, 0.0), 0.02, 50) is None
    assert scores_chance(rate(0.0, 0.0, 0.0), 0.5, 50) is not None


def test_sound_attacks_seldom_fail_the_noise_gate() -> None:
    """Binomial hits at exactly the chance level: at most a few of a thousand may be called invalid."""
    random = np.random.default_rng(0)
    chance, people = 0.05, 60
    failed = 0
    for _ in range(1000):
        value = random.binomial(people, chance) / people
        spread = 1.96 * np.sqrt(value * (1 - value) / people)
        failed += scores_chance(rate(value, max(0.0, value - spread), value + spread), chance, people) is not None
    assert failed <= 5


def test_a_recovery_must_beat_the_mean_image() -> None:
    assert beats_mean_image(20.0, 16.0, "PSNR") is None
    assert "below the mean image" in str(beats_mean_image(12.0, 16.0, "PSNR"))


def test_a_loss_that_has_levelled_passes() -> None:
    assert loss_levelled(1.0 / np.arange(1, 401) + 0.2) is None


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        (np.linspace(1.0, 0.1, 100), "still falling"),
        (np.linspace(0.1, 1.0, 100), "rose"),
        (np.r_[np.ones(50), np.full(50, np.nan)], "not finite"),
        (np.ones(5), "too short"),
    ],
)
def test_a_loss_that_has_not_is_invalid(losses: np.ndarray, said: str) -> None:
    assert said in str(loss_levelled(losses))

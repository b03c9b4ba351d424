"""All cross pairs against a count by hand, and their intervals against what must hold of them."""

from __future__ import annotations

import numpy as np
import pytest

from veilkit.errors import ConfigError, DataError
from veilkit.metrics import CrossPairs, tpr_at_fpr

RATES = (0.2, 0.05)


def generator() -> np.random.Generator:
    return np.random.default_rng(4)


def some(seed: int = 0, people: int = 30, shots: int = 3, pull: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Similarities that are higher by `pull` for two pictures of one person."""
    who = np.repeat(np.arange(people), shots)
    noise = np.random.default_rng(seed).normal(size=(len(who), len(who)))
    return noise + pull * (who[:, None] == who[None]), who


def by_hand(similar: np.ndarray, who: np.ndarray) -> tuple[list[float], list[float]]:
    genuine, impostor = [], []
    for i in range(len(who)):
        for j in range(len(who)):
            if i != j and who[i] == who[j]:
                genuine.append(similar[i, j])
            elif who[i] != who[j]:
                impostor.append(similar[i, j])
    return genuine, impostor


def test_rates_are_those_of_the_pairs_one_by_one() -> None:
    similar, who = some()
    genuine, impostor = by_hand(similar, who)
    found = CrossPairs.of(similar, who).tpr(RATES, generator=generator())
    assert (found.genuine, found.impostors, found.people) == (len(genuine), len(impostor), 30)
    assert found.values == pytest.approx([tpr_at_fpr(genuine, impostor, rate) for rate in RATES])
    for place, rate in enumerate(RATES):
        assert np.mean(np.array(impostor) > found.thresholds[place]) <= rate
        interval = found.interval(place)
        assert interval.low < interval.value < interval.high


def test_a_draw_counts_a_pair_as_often_as_its_people() -> None:
    """Everybody drawn twice is everybody; one person drawn alone has no impostor pair."""
    similar, who = some(people=6, shots=2)
    pairs = CrossPairs.of(similar, who)

    class Twice:
        def multinomial(self, count, chances, size):
            return np.full((size, count), 2)

    found = pairs.tpr(RATES, generator=Twice())  # type: ignore[arg-type]
    assert np.allclose(found.draws, found.values[:, None])


def test_the_interval_is_as_wide_as_many_sets_of_people_are_apart() -> None:
    found = [CrossPairs.of(*some(seed, people=20)).tpr(RATES, generator=generator()) for seed in range(16)]
    spread = np.std([each.values for each in found], axis=0)
    own = np.mean([each.draws.std(axis=1) for each in found], axis=0)
    assert own == pytest.approx(spread, rel=0.5)


def test_nobody_found_is_not_a_rate_of_zero_for_sure() -> None:
    similar, who = some(pull=-50.0)
    interval = CrossPairs.of(similar, who).tpr(RATES, generator=generator()).interval(0)
    assert (interval.value, interval.low) == (0, 0)
    assert interval.high == pytest.approx(1 - 0.025 ** (1 / 30))  # of 30 people


def test_a_threshold_set_elsewhere_is_kept() -> None:
    similar, who = some()
    pairs, lower = CrossPairs.of(similar, who), CrossPairs.of(similar - 10, who)
    assert lower.tpr(RATES, generator=generator()).values == pytest.approx(
        pairs.tpr(RATES, generator=generator()).values
    )
    assert not lower.tpr(RATES, generator=generator(), calibration=pairs).values.any()
    with pytest.raises(DataError, match="same people"):
        lower.tpr(RATES, generator=generator(), calibration=CrossPairs.of(*some(people=5)))


def test_few_kept_scores_are_enough_whatever_is_drawn() -> None:
    """One person whose pairs are all the high ones, drawn often, asks for more than are kept."""
    similar, who = some(people=12, shots=8)
    similar[who == 0] += 100
    found = CrossPairs.of(similar, who).tpr((0.01,), generator=generator())
    assert np.isfinite(found.draws).all()


def test_what_makes_no_pairs_is_refused() -> None:
    with pytest.raises(DataError, match="no such pair"):
        CrossPairs.of(np.zeros((3, 3)), [0, 1, 2])
    with pytest.raises(DataError, match="finite"):
        CrossPairs.of(np.full((2, 2), np.nan), [0, 0])
    with pytest.raises(ConfigError, match="rates"):
        CrossPairs.of(*some()).tpr((0.0,), generator=generator())

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve

from veilkit.errors import ConfigError, DataError
from veilkit.metrics import CrossPairs, accuracy_by_fold, auc, equal_error_rate, roc, tpr_at_fpr

scores = st.lists(st.integers(-6, 6).map(lambda value: value / 4), min_size=1, max_size=25)


def labelled(genuine, impostor):
    return np.repeat([1, 0], [len(genuine), len(impostor)]), np.concatenate([genuine, impostor])


@given(genuine=scores, impostor=scores)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_curve_and_area_are_those_of_sklearn(genuine, impostor):
    fpr, tpr, thresholds = roc_curve(*labelled(genuine, impostor), drop_intermediate=False)
    curve = roc(genuine, impostor)
    np.testing.assert_allclose(curve.fpr, fpr)
    np.testing.assert_allclose(curve.tpr, tpr)
    np.testing.assert_array_equal(curve.thresholds, thresholds)
    assert auc(genuine, impostor) == pytest.approx(roc_auc_score(*labelled(genuine, impostor)))


@given(genuine=scores, impostor=scores, target=st.sampled_from([0.0, 0.01, 0.1, 0.2, 0.5, 0.99, 1.0]))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_tpr_is_the_best_of_every_threshold_within_the_target(genuine, impostor, target):
    candidates = [-np.inf, np.inf, *genuine, *impostor]
    allowed = [t for t in candidates if sum(s >= t for s in impostor) <= target * len(impostor) + 1e-9]
    assert tpr_at_fpr(genuine, impostor, target) == max(np.mean([s >= t for s in genuine]) for t in allowed)


def test_a_target_below_one_pair_allows_no_false_acceptance():
    assert tpr_at_fpr([0.9, 0.6, 0.5], [0.5, 0.2], fpr=1e-3) == pytest.approx(2 / 3)


def test_seven_percent_of_a_hundred_is_seven():
    # 0.07 * 100 is 7.000000000000001 and 0.29 * 100 is 28.999999999999996 in binary.
    impostor = np.arange(100)
    for percent in (7, 29, 57):
        genuine = np.array([99.5 - percent, 98.5 - percent])
        assert tpr_at_fpr(genuine, impostor, percent / 100) == 0.5


@given(genuine=scores, impostor=scores)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_equal_error_rate_lies_on_the_curve_and_is_symmetric(genuine, impostor):
    rate = equal_error_rate(genuine, impostor)
    curve = roc(genuine, impostor)
    # No threshold has both errors below it or both above it.
    assert (np.maximum(curve.fpr, 1 - curve.tpr) >= rate - 1e-12).all()
    assert (np.minimum(curve.fpr, 1 - curve.tpr) <= rate + 1e-12).all()
    assert equal_error_rate([-s for s in impostor], [-s for s in genuine]) == pytest.approx(rate, abs=1e-12)


def test_equal_error_rate_of_two_normal_distributions():
    rng = np.random.default_rng(0)
    found = equal_error_rate(rng.normal(2.0, 1.0, 200_000), rng.normal(0.0, 1.0, 200_000))
    assert found == pytest.approx(norm.cdf(-1.0), abs=0.003)


def test_extremes():
    assert equal_error_rate([2.0, 3.0], [0.0, 1.0]) == 0.0
    assert equal_error_rate([0.0], [1.0]) == 1.0
    assert equal_error_rate([1.0, 1.0], [1.0]) == 0.5
    assert auc([1.0], [1.0]) == 0.5


def test_accuracy_by_fold_is_that_of_trying_every_threshold():
    rng = np.random.default_rng(1)
    same = rng.random(300) < 0.4
    values = np.round(rng.normal(size=300) + same, 1)  # with ties
    folds = rng.integers(0, 5, 300)
    found = accuracy_by_fold(values, same, folds)
    grid = np.arange(-5.05, 6.0, 0.1)  # between the rounded scores
    for fold, (accuracy, threshold) in enumerate(zip(found.accuracies, found.thresholds, strict=True)):
        chosen_on, judged_on = folds != fold, folds == fold
        best = max(np.mean((values[chosen_on] >= t) == same[chosen_on]) for t in grid)
        assert np.mean((values[chosen_on] >= threshold) == same[chosen_on]) == best
        assert np.mean((values[judged_on] >= threshold) == same[judged_on]) == accuracy
    assert found.mean == pytest.approx(found.accuracies.mean())
    assert found.standard_error == pytest.approx(np.sqrt(found.accuracies.var(ddof=1) / 5))


def test_the_threshold_never_sees_its_own_fold():
    values, same = np.array([0.1, 0.9, 5.1, 5.9]), [False, True, False, True]
    found = accuracy_by_fold(values, same, [0, 0, 1, 1])
    np.testing.assert_allclose(found.thresholds, [5.5, 0.5])
    np.testing.assert_allclose(found.accuracies, [0.5, 0.5])


def test_bad_input_is_explained():
    with pytest.raises(DataError, match="genuine scores must be one-dimensional and not empty"):
        roc([], [0.1])
    with pytest.raises(DataError, match="finite"):
        auc([np.nan], [0.1])
    with pytest.raises(ConfigError, match="fpr"):
        tpr_at_fpr([1.0], [0.0], fpr=1.5)
    with pytest.raises(DataError, match="at least 2 folds"):
        accuracy_by_fold([0.1, 0.2], [True, False], [0, 0])


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

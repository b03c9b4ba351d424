import numpy as np
import pytest

from veilkit.errors import DataError
from veilkit.metrics.kernel_distance import kernel_distance


def test_it_is_the_mean_over_all_ordered_pairs_of_different_pictures() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))

    def k(a: np.ndarray, b: np.ndarray) -> float:
        return (float(a @ b) / 3 + 1) ** 3

    within_x = np.mean([k(a, b) for i, a in enumerate(x) for j, b in enumerate(x) if i != j])
    within_y = np.mean([k(a, b) for i, a in enumerate(y) for j, b in enumerate(y) if i != j])
    across = np.mean([k(a, b) for a in x for b in y])
    assert kernel_distance(x, y) == pytest.approx(within_x + within_y - 2 * across)


def test_samples_of_one_kind_are_near_and_shifted_ones_are_far() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(300, 8)), rng.normal(size=(300, 8))
    assert abs(kernel_distance(x, y)) < 0.02 < 0.2 < kernel_distance(x, y + 0.7)


def test_other_shapes_are_refused() -> None:
    with pytest.raises(DataError, match="features"):
        kernel_distance(np.zeros((3, 2)), np.zeros((3, 4)))

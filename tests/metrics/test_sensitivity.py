from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from veilkit.errors import DataError
from veilkit.metrics import sensitivity


def test_a_worked_example() -> None:
    # 16.5 / 21 = 0.7857 and 4.5 / 21 = 0.2143 lie symmetrically: z = 0.7916 on both sides.
    told = sensitivity(16, 20, 4, 20)
    assert told.d_prime == pytest.approx(2 * 0.7916, abs=1e-4)
    assert told.criterion == pytest.approx(0, abs=1e-12)


def test_against_the_standard_library() -> None:
    z = NormalDist().inv_cdf
    told = sensitivity([18, 3], [20, 20], [9, 3], [25, 25])
    for place, (hits, alarms) in enumerate(((18, 9), (3, 3))):
        hit, alarm = z((hits + 0.5) / 21), z((alarms + 0.5) / 26)
        assert told.d_prime[place] == pytest.approx(hit - alarm)
        assert told.criterion[place] == pytest.approx(-(hit + alarm) / 2)


def test_always_right_is_finite_and_always_yes_is_zero() -> None:
    assert np.isfinite(sensitivity(20, 20, 0, 20).d_prime)
    always_yes = sensitivity(20, 20, 20, 20)
    assert always_yes.d_prime == pytest.approx(0)
    assert always_yes.criterion < -1


def test_more_hits_than_pairs_are_refused() -> None:
    with pytest.raises(DataError, match="hits must lie between 0 and same"):
        sensitivity(21, 20, 0, 20)

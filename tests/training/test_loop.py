"""Schedules at their corners, and what makes a CPU quicker."""

from itertools import pairwise

import pytest
import torch

from veilkit.errors import ConfigError
from veilkit.training.loop import Decay, Schedule, without_denormals


def test_warm_up_rises_evenly_to_one():
    schedule = Schedule(20, warmup=10, decay=Decay.STEPS, milestones=(0.9,))
    assert [schedule.factor(epoch) for epoch in (0, 5, 10)] == pytest.approx([0.1, 0.55, 1.0])


def test_steps_fall_tenfold_at_agws_epochs():
    schedule = Schedule(120, warmup=10, decay=Decay.STEPS)
    assert [schedule.factor(epoch) for epoch in (39.9, 40, 69.9, 70, 119)] == pytest.approx([1, 0.1, 0.1, 0.01, 0.01])


def test_cosine_ends_at_zero():
    schedule = Schedule(12, warmup=2)
    assert [schedule.factor(epoch) for epoch in (2, 7, 12)] == pytest.approx([1, 0.5, 0], abs=1e-9)


def test_exponential_has_equal_ratios():
    schedule = Schedule(10, decay=Decay.EXPONENTIAL)
    values = [schedule.factor(epoch) for epoch in range(11)]
    ratios = [after / before for before, after in pairwise(values)]
    assert ratios == pytest.approx([ratios[0]] * 10)
    assert values[-1] == pytest.approx(0.01)


def test_warm_up_longer_than_the_run_is_refused():
    with pytest.raises(ConfigError, match="warmup"):
        Schedule(3, warmup=4)


def test_denormal_numbers_count_as_zero_while_training_and_not_after() -> None:
    tiny = torch.tensor([1e-40])
    with without_denormals():
        assert (tiny * 0.5).item() == 0.0
        with without_denormals():
            pass
        assert (tiny * 0.5).item() == 0.0
    assert (tiny * 0.5).item() > 0.0

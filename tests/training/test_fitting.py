"""A fit: it goes on to the same weights, schedules at their corners, and what makes a CPU quicker."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from veilkit.errors import ConfigError
from veilkit.networks.unet import UNet, UNetConfig
from veilkit.rng import Randomness
from veilkit.training.fitting import FitConfig, fit_network, seeded
from veilkit.training.loop import Decay, Schedule, without_denormals

FACTS = {"data": "a line", "size": (3, 1)}
X = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
Y = X @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.3
CONFIG = FitConfig(updates=30, batch=8, rate=0.05, save_every=10)


class Killed(BaseException):
    pass


def line() -> nn.Linear:
    return seeded(lambda: nn.Linear(3, 1), Randomness.from_seed(1))


def fit(network: nn.Linear, config: FitConfig = CONFIG, state: Path | None = None, die_at: int = -1, **options):
    calls = 0

    def loss(at: np.ndarray) -> torch.Tensor:
        nonlocal calls
        if calls == die_at:
            raise Killed
        calls += 1
        return (network(X[at]) - Y[at]).square().mean()

    fitted = fit_network(network, loss, len(X), config, facts=options.pop("facts", FACTS), state=state, **options)
    return fitted, calls


def test_it_finds_the_least_squares_solution() -> None:
    network = line()
    fitted, _ = fit(network, FitConfig(updates=600, batch=40, rate=0.05))
    solution = np.linalg.lstsq(np.c_[X.numpy(), np.ones(40)], Y.numpy(), rcond=None)[0].ravel()
    found = torch.cat([network.weight.detach().ravel(), network.bias.detach()])
    np.testing.assert_allclose(found.numpy(), solution, atol=1e-3)
    assert len(fitted.losses) == 600
    assert not network.training


@pytest.mark.parametrize("die_at", [0, 7, 10, 25])
def test_a_killed_run_reaches_the_same_bits(tmp_path: Path, die_at: int) -> None:
    whole = line()
    expected, _ = fit(whole)
    state = tmp_path / "state.safetensors"
    with pytest.raises(Killed):
        fit(line(), state=state, die_at=die_at)
    again = line()
    fitted, calls = fit(again, state=state)
    assert calls == 30 - 10 * (die_at // 10)
    assert torch.equal(again.weight, whole.weight)
    assert torch.equal(again.bias, whole.bias)
    np.testing.assert_array_equal(fitted.losses, expected.losses)


def test_a_killed_network_of_convolutions_reaches_the_same_bits(tmp_path: Path) -> None:
    """Batch norm's statistics and the memory layout of weights and moments come back too."""
    images = torch.rand(8, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    config = FitConfig(updates=8, batch=4, rate=1e-2, save_every=3)

    def run(state: Path | None, die_at: int = -1) -> dict[str, torch.Tensor]:
        network, calls = seeded(lambda: UNet(UNetConfig(4, 2)), Randomness.from_seed(2)), 0

        def loss(at: np.ndarray) -> torch.Tensor:
            nonlocal calls
            if calls == die_at:
                raise Killed
            calls += 1
            return (network(1 - images[at]) - images[at]).abs().mean()

        fit_network(network, loss, len(images), config, facts=FACTS, state=state)
        return network.state_dict()

    whole, state = run(None), tmp_path / "state.safetensors"
    with pytest.raises(Killed):
        run(state, 5)
    again = run(state)
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def test_a_finished_run_is_read_back(tmp_path: Path) -> None:
    state = tmp_path / "state.safetensors"
    first, again = line(), line()
    fit(first, state=state)
    fitted, calls = fit(again, state=state)
    assert calls == 0
    assert torch.equal(first.weight, again.weight)
    assert len(fitted.losses) == 30


def test_the_state_of_another_run_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state.safetensors"
    fit(line(), state=state)
    with pytest.raises(ConfigError, match="another run"):
        fit(line(), state=state, facts={"data": "another"})
    with pytest.raises(ConfigError, match="another run"):
        fit(line(), FitConfig(updates=30, batch=8, rate=0.1, save_every=10), state=state)


@pytest.mark.parametrize(("patience", "looks"), [(0, 11), (2, 5)])
def test_the_best_weights_are_kept_and_patience_ends_the_run(tmp_path: Path, patience: int, looks: int) -> None:
    """Validations fall to the third and rise from there on: the weights of the third, after six updates, are kept."""
    values = [5.0, 4.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    config = FitConfig(updates=30, batch=8, rate=0.05, validate_every=3, patience=patience, save_every=10)

    def scripted() -> nn.Linear:
        network, given = line(), iter(values)
        fitted, _ = fit(network, config, validate=lambda: next(given))
        assert fitted.validations.tolist() == values[:looks]
        assert fitted.early == bool(patience)
        return network

    after_six = line()
    fit(after_six, FitConfig(updates=6, batch=8, rate=0.05))
    assert torch.equal(scripted().weight, after_six.weight)


def test_a_killed_run_remembers_its_best_weights(tmp_path: Path) -> None:
    """The held-back values are the weights' own distance from zero: the first weights are the best ones."""
    config = FitConfig(updates=30, batch=8, rate=0.05, validate_every=5, save_every=10)

    def run(state: Path | None, die_at: int = -1) -> nn.Linear:
        network = line()
        fit(network, config, state, die_at, validate=lambda: float(network.weight.abs().sum()))
        return network

    whole = run(None)
    with pytest.raises(Killed):
        run(tmp_path / "s.safetensors", 17)
    assert torch.equal(run(tmp_path / "s.safetensors").weight, whole.weight)


def test_first_weights_depend_on_the_node_only() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one = line()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    assert torch.equal(one.weight, line().weight)


@pytest.mark.parametrize("change", [{"updates": 0}, {"rate": 0.0}, {"patience": -1}, {"batch": 0}])
def test_what_makes_no_sense_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        FitConfig(**{"updates": 3, **change})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="nothing to fit"):
        fit_network(line(), lambda at: X.sum(), 0, CONFIG, facts={})


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

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import kstest

from veilkit.errors import ConfigError
from veilkit.privacy import SeededNoise, SystemNoise


def test_seeded_noise_must_be_called_insecure() -> None:
    with pytest.raises(ConfigError, match="insecure=True"):
        SeededNoise(7)
    assert not SeededNoise(7, insecure=True).secure
    assert SystemNoise().secure


def test_sums_lie_on_the_grid_whatever_the_last_bits_of_the_values_were() -> None:
    values = np.full((4, 3), 1.0 / 3.0)
    for noisy in (SystemNoise().add_gaussian(values, scale=0.7), SystemNoise().add_laplace(values, scale=0.7)):
        assert noisy.shape == values.shape
        steps = noisy * 2.0**40
        assert (steps == np.round(steps)).all()


def test_more_values_than_go_at_once_keep_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilkit.privacy.noise._AT_ONCE", 8)
    values = 1000.0 * np.arange(30.0).reshape(10, 3)
    assert np.abs(SystemNoise().add_laplace(values, scale=0.1) - values).max() < 10.0


def test_uniform_and_normal_values_are_that() -> None:
    noise = SystemNoise()
    uniform = noise.uniform(50, 100)
    assert uniform.min() > 0.0
    assert uniform.max() < 1.0
    assert kstest(uniform.ravel(), "uniform").pvalue > 1e-6
    assert kstest(noise.normal(50, 100).ravel(), "norm").pvalue > 1e-6


def test_the_bytes_are_the_operating_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def urandom(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    monkeypatch.setattr(os, "urandom", urandom)
    assert (SystemNoise().uniform(3) == 0.5 * 2.0**-53).all()
    assert asked == [24]


_FORKS = """
import os
import numpy as np
from veilkit.privacy.noise import SystemNoise

def draw():
    return SystemNoise().add_gaussian(np.zeros(2), scale=1.0).tolist(), SystemNoise().uniform(2).tolist()

draw()  # so that whatever there is to inherit is there
for _ in range(3):
    if not os.fork():
        print(draw(), flush=True)
        os._exit(0)
    os.wait()
print(draw())
"""


def test_a_forked_process_draws_noise_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", _FORKS], capture_output=True, text=True, check=True, timeout=300)
    assert len(set(done.stdout.splitlines())) == 4

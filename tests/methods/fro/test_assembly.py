"""The moments that feature assembling watches, against plain formulas in double precision and autograd's own way."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from veilkit.methods.fro.assembly import Statistics, moments


def values(*shape: int, seed: int = 0) -> Tensor:
    """Channels of other means and spreads, so that a mix-up of channels shows."""
    drawn = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    along = (1, shape[1]) + (1,) * (len(shape) - 2)
    return drawn * torch.arange(1, shape[1] + 1).view(along) + 3 * torch.arange(shape[1]).view(along)


MAPS = [(2, 3, 4, 5), (4, 3, 4, 5), (11, 5, 3, 2)]


@pytest.mark.parametrize(
    ("shape", "layout"),
    [(shape, torch.contiguous_format) for shape in [*MAPS, (9, 7), (6, 4, 3)]]
    + [(shape, torch.channels_last) for shape in MAPS],
)
def test_moments_are_mean_and_variance_whatever_the_shape_and_layout(
    shape: tuple[int, ...], layout: torch.memory_format
) -> None:
    exact = values(*shape)
    over = [axis for axis in range(len(shape)) if axis != 1]
    mean, variance = moments(exact.float().contiguous(memory_format=layout))
    torch.testing.assert_close(mean.double(), exact.mean(over), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(variance.double(), exact.var(over, correction=0), rtol=1e-5, atol=1e-5)


def test_moments_of_many_values_far_from_zero_stay_precise() -> None:
    exact = values(96, 2, 64, 32) + 1000
    mean, variance = moments(exact.float())
    torch.testing.assert_close(mean.double(), exact.mean((0, 2, 3)), rtol=1e-5, atol=0)
    torch.testing.assert_close(variance.double(), exact.var((0, 2, 3), correction=0), rtol=1e-3, atol=0)


@pytest.mark.parametrize("shape", [(6, 3, 8, 4), (6, 3)])
def test_the_gradient_is_that_of_equation_5_by_autograd(shape: tuple[int, ...]) -> None:
    layer = (nn.BatchNorm2d(3) if len(shape) == 4 else nn.BatchNorm1d(3)).double().eval().requires_grad_(False)
    layer.running_mean.copy_(torch.tensor([1.0, -2.0, 0.5]))
    layer.running_var.copy_(torch.tensor([0.5, 3.0, 9.0]))
    layer.weight.copy_(torch.tensor([2.0, 0.0, -1.0]))
    over = [axis for axis in range(len(shape)) if axis != 1]

    def ours(inputs: Tensor) -> Tensor:
        with Statistics(layer, first_layer=0.3) as statistics:
            passed = layer(inputs)
            return passed.square().sum() + statistics.distance()

    def theirs(inputs: Tensor) -> Tensor:
        off_mean = inputs.mean(over) - layer.running_mean
        off_variance = inputs.var(over, correction=0) - layer.running_var
        return layer(inputs).square().sum() + 0.3 * (off_mean.norm() + off_variance.norm())

    inputs = values(*shape, seed=1).requires_grad_()
    torch.testing.assert_close(ours(inputs), theirs(inputs))
    (found,), (expected,) = torch.autograd.grad(ours(inputs), inputs), torch.autograd.grad(theirs(inputs), inputs)
    torch.testing.assert_close(found, expected)


def test_watching_changes_nothing_of_what_the_network_gives() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Conv2d(4, 2, 3)).eval()
    images = torch.rand(5, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = network(images)
        with Statistics(network):
            torch.testing.assert_close(network(images), expected, rtol=0, atol=0)

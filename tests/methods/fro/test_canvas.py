"""Canvases: what an optimiser moves, and the pictures that follow from it."""

from __future__ import annotations

import pytest
import torch

from veilkit.methods.fro.canvas import Pixels, Spectrum

LIMITS = (torch.full((3, 1, 1), -1.0), torch.full((3, 1, 1), 1.0))


def noise(size: tuple[int, int] = (32, 16)) -> torch.Tensor:
    return torch.randn(64, 3, *size, generator=torch.Generator().manual_seed(0))


def test_pixels_are_the_picture_and_are_kept_in_range() -> None:
    canvas = Pixels(3 * noise(), LIMITS)
    assert torch.equal(canvas.picture(), 3 * noise())
    canvas.keep()
    assert canvas.picture().abs().max() == 1
    free = Pixels(3 * noise(), None)
    free.keep()
    assert torch.equal(free.picture(), 3 * noise())


@pytest.mark.parametrize("size", [(32, 16), (31, 15), (16, 16)])
@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_a_spectrums_pictures_fall_with_frequency_as_asked(size: tuple[int, int], power: float) -> None:
    picture = Spectrum(noise(size), power, None).picture().detach()
    assert picture.shape == (64, 3, *size)
    energy = torch.fft.fft2(picture.mean(1)).abs().square().mean(0)  # the sum of channels has light and dark alone
    down = torch.fft.fftfreq(size[0])[:, None].expand(size)
    across = torch.fft.fftfreq(size[1])[None].expand(size)
    frequency = (down.square() + across.square()).sqrt()
    inner = frequency >= 1 / max(size)
    x, y = frequency[inner].log(), energy[inner].log()
    slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    assert slope.item() == pytest.approx(-2 * power, abs=0.1)  # energy goes by the square


def test_colours_vary_less_than_light_and_dark() -> None:
    picture = Spectrum(noise(), 1.0, None).picture().detach()
    red, green, blue = picture.unbind(1)
    grey = picture.mean(1)
    assert (red - blue).std() < 0.6 * (3**0.5) * grey.std()
    assert (red + blue - 2 * green).std() < (red - blue).std()


def test_pictures_are_cut_off_and_follow_their_coefficients() -> None:
    canvas = Spectrum(noise(), 1.0, LIMITS)
    with torch.no_grad():
        canvas.values.mul_(1000)
    assert canvas.picture().abs().max() <= 1
    small = Spectrum(noise(), 1.0, LIMITS)
    (gradient,) = torch.autograd.grad(small.picture().square().sum(), small.values)
    before = small.picture().square().sum()
    with torch.no_grad():
        small.values.sub_(1e-3 * gradient / gradient.abs().max())
    assert small.picture().square().sum() < before


@pytest.mark.parametrize("size", [(32, 16), (31, 15)])
def test_a_spectrum_can_begin_with_a_picture(size: tuple[int, int]) -> None:
    begun = noise(size).clamp(-1, 1)
    canvas = Spectrum(noise(size), 1.0, None, begun)
    faint = Spectrum(noise(size), 1.0, None)
    torch.testing.assert_close(canvas.picture(), begun + faint.picture(), atol=1e-4, rtol=1e-4)

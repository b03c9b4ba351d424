"""What feature assembling moves, from which pictures it starts, and its moments against plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from veilkit.errors import ConfigError, DataError
from veilkit.methods.fro.assembly import Statistics, moments
from veilkit.methods.fro.canvas import (
    FEWEST,
    Pixels,
    PrincipalComponents,
    Spectrum,
    Start,
    dead_leaves,
    start_pictures,
)
from veilkit.rng import Randomness

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


def pictures(count: int, size: tuple[int, int], seed: int = 0) -> torch.Tensor:
    """Two stripes whose brightness varies, one more than the other, and a little noise."""
    rng = np.random.default_rng(seed)
    values = np.full((count, 3, *size), 128.0)
    values[:, :, : size[0] // 2] += rng.normal(0, 30, (count, 1, 1, 1))
    values[:, :, size[0] // 2 :] += rng.normal(0, 10, (count, 1, 1, 1))
    values += rng.normal(0, 2, values.shape)
    return torch.from_numpy(values.clip(0, 255).astype(np.uint8))


@pytest.mark.parametrize("size", [(16, 16), (8, 4)])  # more values than pictures, and fewer
def test_axes_are_principal_components_one_deviation_long(size: tuple[int, int]) -> None:
    pixels = pictures(100, size)
    components = PrincipalComponents.of(pixels)
    values = pixels.numpy().astype(np.float64).reshape(100, 3, size[0] // 2, 2, size[1] // 2, 2).mean((3, 5)) / 255
    flat = values.reshape(100, -1)
    np.testing.assert_allclose(components.mean.numpy().ravel(), flat.mean(0), atol=1e-5)
    _, lengths, directions = np.linalg.svd(flat - flat.mean(0), full_matrices=False)
    count = len(components.axes)
    assert count == 100 // 16
    ours = components.axes.flatten(1).numpy()
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), lengths[:count] / 10, rtol=1e-3)
    for axis, true in list(zip(ours, directions, strict=False))[:2]:  # the two stripes; noise has no certain axes
        assert abs(axis @ true) == pytest.approx(np.linalg.norm(axis), rel=1e-3)


def test_mixtures_vary_as_the_pictures_do() -> None:
    pixels = pictures(600, (16, 16))
    components = PrincipalComponents.of(pixels)
    weights = torch.randn(2000, len(components.axes), generator=torch.Generator().manual_seed(0))
    mixed = components.mixed(weights, (16, 16))
    assert mixed.shape == (2000, 3, 16, 16)
    upper = pixels[:, :, :8].float().div(255).mean((1, 2, 3))
    assert mixed[:, :, :6].mean((1, 2, 3)).std().item() == pytest.approx(upper.std().item(), rel=0.1)
    assert mixed.mean().item() == pytest.approx(pixels.float().div(255).mean().item(), abs=0.01)


def test_mixtures_are_pictures_of_the_size_asked_for() -> None:
    components = PrincipalComponents.of(pictures(FEWEST, (16, 8)))
    mixed = components.mixed(torch.full((2, len(components.axes)), 100.0), (17, 9))
    assert mixed.shape == (2, 3, 17, 9)
    assert mixed.min() >= 0
    assert mixed.max() <= 1


def test_very_many_pictures_are_sampled_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilkit.methods.fro.canvas._MOST_PICTURES", 80)
    pixels = pictures(200, (8, 8))
    some = pixels[torch.arange(80) * 200 // 80]
    assert torch.equal(PrincipalComponents.of(pixels).mean, PrincipalComponents.of(some).mean)


def test_no_axis_belongs_to_a_few_pictures() -> None:
    assert len(PrincipalComponents.of(pictures(FEWEST, (16, 16))).axes) == FEWEST // 16
    with pytest.raises(DataError, match="at least 64 pictures"):
        PrincipalComponents.of(pictures(FEWEST - 1, (16, 16)))


def plain(*colours: float, size: tuple[int, int] = (64, 32)) -> torch.Tensor:
    return torch.tensor(colours)[:, None, None, None].expand(-1, 3, *size).contiguous()


def test_no_leaves_leave_the_picture_as_it_is() -> None:
    picture = torch.rand(3, 64, 32, generator=torch.Generator().manual_seed(0))
    assert torch.equal(dead_leaves(picture, plain(0.0), 0, Randomness.from_seed(0)), picture)


def test_leaves_are_pieces_of_the_sources_and_the_picture_is_not_touched() -> None:
    picture, sources = plain(0.5)[0], plain(0.0, 1.0)
    laid = dead_leaves(picture, sources, 12, Randomness.from_seed(0))
    assert laid.unique().tolist() == [0.0, 0.5, 1.0]
    assert picture.unique().tolist() == [0.5]


def test_a_leaf_keeps_half_of_its_source_around_the_colour_of_its_middle() -> None:
    source = torch.linspace(0, 1, 64)[None, :, None].expand(3, 64, 32).contiguous()
    laid = dead_leaves(torch.full((3, 64, 32), -1.0), source[None], 1, Randomness.from_seed(3))
    inside = laid[0] >= 0
    assert 0 < inside.float().mean() < 0.9
    doubled = 2 * laid[0][inside] - source[0][inside]  # the middle's colour, once the source's half is taken off
    torch.testing.assert_close(doubled, doubled[:1].expand_as(doubled), atol=1e-5, rtol=0)


def test_small_leaves_lie_above_large_ones_and_edges_come_at_all_scales() -> None:
    covered = [
        (dead_leaves(plain(0.0)[0], plain(1.0), count, Randomness.from_seed(seed))[0] > 0).float().mean().item()
        for count in (1, 40)
        for seed in range(20)
    ]
    one, many = torch.tensor(covered).view(2, 20)
    assert 0.005 < one.mean() < 0.2  # most leaves are small
    assert 0.5 < many.mean() < 0.98  # forty of them hide most of a picture, but not all


@pytest.mark.parametrize("seed", [0, 1])
def test_leaves_belong_to_the_key(seed: int) -> None:
    picture, sources = plain(0.5)[0], plain(0.0, 1.0)
    first = dead_leaves(picture, sources, 12, Randomness.from_seed(seed))
    assert torch.equal(first, dead_leaves(picture, sources, 12, Randomness.from_seed(seed)))
    assert not torch.equal(first, dead_leaves(picture, sources, 12, Randomness.from_seed(seed + 2)))


SIZE = (64, 32)
ITEMS = ("a", "b", "c")


@pytest.fixture(scope="module")
def components() -> PrincipalComponents:
    return PrincipalComponents.of(
        (255 * torch.rand(FEWEST, 3, *SIZE, generator=torch.Generator().manual_seed(5))).byte()
    )


@pytest.mark.parametrize("start", ["looks", "leaves", "figures"])
def test_a_beginning_belongs_to_its_item_and_key(start: Start, components: PrincipalComponents) -> None:
    first = start_pictures(start, SIZE, components, Randomness.from_seed(0), ITEMS)
    assert first.shape == (3, 3, *SIZE)
    assert 0 <= first.min() < first.max() <= 1
    again = start_pictures(start, SIZE, components, Randomness.from_seed(0), ("c", "a"))
    torch.testing.assert_close(again, first[[2, 0]], atol=1e-6, rtol=0)
    assert (first[0] - first[1]).abs().mean() > 0.01
    other = start_pictures(start, SIZE, components, Randomness.from_seed(1), ITEMS)
    assert ((first - other).abs().flatten(1).mean(1) > 0.01).all()


def test_leaves_lie_over_the_same_mixture(components: PrincipalComponents) -> None:
    plain, covered = (
        start_pictures(start, SIZE, components, Randomness.from_seed(0), ITEMS) for start in ("looks", "leaves")
    )
    untouched = ((plain - covered).abs().amax(1) < 1e-6).flatten(1).float().mean(1)
    assert (untouched > 0.005).all()
    assert (untouched < 0.6).all()


@pytest.mark.parametrize("start", ["looks", "leaves"])
def test_unknown_components_are_refused_and_figures_need_none(start: Start) -> None:
    with pytest.raises(ConfigError, match="preset that begins with noise"):
        start_pictures(start, SIZE, None, Randomness.from_seed(0), ITEMS)
    assert start_pictures("figures", SIZE, None, Randomness.from_seed(0), ITEMS[:1]).shape == (1, 3, *SIZE)


def test_figures_need_pictures_that_are_not_wider_than_high() -> None:
    with pytest.raises(ConfigError, match="head to foot, but pictures of 32x64"):
        start_pictures("figures", (32, 64), None, Randomness.from_seed(0), ITEMS)


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

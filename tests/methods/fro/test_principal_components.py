"""What pictures have in common: mean and axes against numpy's, and how many there may be."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from veilkit.errors import DataError
from veilkit.methods.fro.canvas import FEWEST, PrincipalComponents


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

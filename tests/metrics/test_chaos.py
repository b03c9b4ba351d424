from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
import torch
from scipy import stats

from veilkit.errors import DataError
from veilkit.metrics import anderson_darling


def scipy_statistic(values: np.ndarray) -> float:
    if "method" in inspect.signature(stats.anderson).parameters:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a p-value beyond its table, which is not used
            return float(stats.anderson(values, "norm", method="interpolate").statistic)
    return float(stats.anderson(values, "norm").statistic)


def test_is_the_statistic_of_scipy():
    generator = torch.Generator().manual_seed(0)
    images = torch.stack(
        [
            torch.rand(3, 16, 8, generator=generator),
            (0.5 + 0.1 * torch.randn(3, 16, 8, generator=generator)).clamp(0, 1),
            torch.rand(3, 16, 8, generator=generator).round(),
            torch.rand(3, 16, 8, generator=generator) ** 8,
        ]
    )
    found = anderson_darling(images)
    expected = [scipy_statistic(image.double().flatten().numpy()) for image in images]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9)


def test_normal_noise_is_chaotic_and_a_gradient_is_not():
    noise = (0.5 + 0.1 * torch.randn(1, 3, 64, 32, generator=torch.Generator().manual_seed(1))).clamp(0, 1)
    gradient = torch.linspace(0, 1, 64)[None, None, :, None].expand(1, 3, 64, 32)
    assert anderson_darling(noise) < 1.1  # the 1 % critical value
    assert anderson_darling(gradient) > 10


def test_brightness_and_contrast_do_not_matter():
    image = torch.rand(1, 3, 16, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(anderson_darling(image), anderson_darling(0.3 * image + 0.2))


def test_a_constant_image_is_infinitely_far_from_chaos():
    assert anderson_darling(torch.full((2, 3, 8, 8), 0.3)).tolist() == [float("inf")] * 2


def test_one_odd_pixel_is_still_finite():
    image = torch.zeros(1, 3, 128, 64)
    image[0, 0, 0, 0] = 1.0
    assert torch.isfinite(anderson_darling(image)).all()


def test_bad_images_are_explained():
    with pytest.raises(DataError, match=r"\(N, 3, H, W\)"):
        anderson_darling(torch.zeros(3, 8, 8))

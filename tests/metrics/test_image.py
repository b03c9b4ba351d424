from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.ndimage import gaussian_filter

from veilkit.errors import DataError
from veilkit.metrics import anderson_darling, paper_psnr, psnr, ssim


def pictures(seed: int, *shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def direct_ssim(x: np.ndarray, y: np.ndarray) -> float:
    """The definition, channel by channel, in double precision."""

    def blur(plane: np.ndarray) -> np.ndarray:
        return gaussian_filter(plane, sigma=1.5, truncate=3.5, mode="mirror")

    maps = []
    for a, b in zip(x.astype(np.float64), y.astype(np.float64), strict=True):
        ma, mb = blur(a), blur(b)
        va, vb, vab = blur(a * a) - ma * ma, blur(b * b) - mb * mb, blur(a * b) - ma * mb
        c1, c2 = 0.01**2, 0.03**2
        maps.append((2 * ma * mb + c1) * (2 * vab + c2) / ((ma**2 + mb**2 + c1) * (va + vb + c2)))
    return float(np.mean(maps))


@pytest.mark.parametrize("size", [(11, 11), (16, 16), (32, 17), (128, 64)])
def test_ssim_is_its_definition(size):
    reference = pictures(0, 4, 3, *size)
    images = (reference + 0.2 * pictures(1, 4, 3, *size)).clamp(0, 1)
    images[3] = 1 - reference[3]
    found = ssim(images, reference)
    assert found.shape == (4,)
    expected = [direct_ssim(x.numpy(), y.numpy()) for x, y in zip(images, reference, strict=True)]
    np.testing.assert_allclose(found.numpy(), expected, atol=2e-4)


@pytest.mark.parametrize("metric", [psnr, ssim])
def test_each_image_is_measured_alone(metric):
    images, reference = pictures(2, 3, 3, 16, 16), pictures(3, 3, 3, 16, 16)
    together = metric(images, reference)
    alone = torch.cat([metric(images[i : i + 1], reference[i : i + 1]) for i in range(3)])
    torch.testing.assert_close(together, alone)
    torch.testing.assert_close(together, metric(reference, images))


def test_equal_images():
    images = torch.cat([pictures(4, 1, 3, 16, 16), torch.zeros(1, 3, 16, 16)])
    torch.testing.assert_close(ssim(images, images), torch.ones(2))
    assert psnr(images, images).tolist() == [float("inf")] * 2


def test_psnr_is_its_definition_on_a_fixed_scale():
    images, reference = pictures(5, 6, 3, 9, 7) * 0.5, pictures(6, 6, 3, 9, 7) * 0.5
    expected = [
        10 * np.log10(1.0 / np.mean((x.numpy().astype(np.float64) - y.numpy()) ** 2))
        for x, y in zip(images, reference, strict=True)
    ]
    np.testing.assert_allclose(psnr(images, reference).numpy(), expected, rtol=1e-6)


def test_paper_psnr_forgives_brightness_and_contrast():
    reference = pictures(7, 4, 3, 16, 16)
    dull = 0.3 * reference + 0.5
    assert psnr(dull, reference).max() < 20
    assert paper_psnr(dull, reference).min() > 100  # equal but for rounding


def test_paper_psnr_depends_on_the_batch():
    images, reference = pictures(8, 2, 3, 16, 16), pictures(9, 2, 3, 16, 16)
    images[1] = images[1] * 0.2
    images[0] = images[0] * 0.1
    reference[0] = reference[0] * 0.1
    assert abs(float(paper_psnr(images, reference)[0] - paper_psnr(images[:1], reference[:1])[0])) > 1.0


def test_paper_psnr_takes_the_range_of_each_batch():
    x, y = pictures(10, 2, 3, 8, 8) * 4 - 2, pictures(11, 2, 3, 8, 8) * 2 - 1
    a, b = x.numpy().astype(np.float64), y.numpy().astype(np.float64)
    a, b = (a - a.min()) / np.ptp(a), (b - b.min()) / np.ptp(b)
    expected = -10 * np.log10(((a - b) ** 2).mean(axis=(1, 2, 3)))
    np.testing.assert_allclose(paper_psnr(x, y).numpy(), expected, rtol=1e-5)
    assert torch.isfinite(paper_psnr(torch.ones_like(x), y)).all()


def scipy_statistic(values: np.ndarray) -> float:
    if "method" in inspect.signature(stats.anderson).parameters:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a p-value beyond its table, which is not used
            return float(stats.anderson(values, "norm", method="interpolate").statistic)
    return float(stats.anderson(values, "norm").statistic)


def test_chaos_is_the_statistic_of_scipy():
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
    good = torch.zeros(1, 3, 16, 16)
    with pytest.raises(DataError, match="at least 11 x 11"):
        ssim(good[..., :8], good[..., :8])
    with pytest.raises(DataError, match="divide 8-bit values by 255"):
        psnr(good + 255, good)
    with pytest.raises(DataError, match=r"\[0, 1\]"):
        psnr(good, good + torch.nan)
    with pytest.raises(DataError, match="one shape"):
        psnr(good, good[..., :8])
    with pytest.raises(DataError, match="finite"):
        paper_psnr(good + torch.nan, good)
    with pytest.raises(DataError, match="none of them 0"):
        paper_psnr(good[:0], good[:0])
    with pytest.raises(DataError, match="floating"):
        psnr(good.to(torch.uint8), good.to(torch.uint8))
    with pytest.raises(DataError, match=r"\(N, 3, H, W\)"):
        anderson_darling(torch.zeros(3, 8, 8))

"""Per image: PSNR and SSIM on the fixed [0, 1] scale, a published PSNR on a broken one, and chaos of pixels."""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import log_ndtr
from torch import Tensor
from torchmetrics.functional.image import structural_similarity_index_measure

from veilkit.errors import DataError
from veilkit.metrics.inputs import unit_images

_SSIM_WINDOW = 11


def psnr(images: Tensor, reference: Tensor) -> Tensor:
    """Peak signal-to-noise ratio in dB, -10 log10(mean squared error), of (N, 3, H, W) in [0, 1]: (N,).

    Equal images have infinite PSNR.

    >>> psnr(torch.full((1, 3, 16, 16), 0.6), torch.full((1, 3, 16, 16), 0.5)).round(decimals=3)
    tensor([20.])
    """
    _paired(images, reference)
    return _psnr(unit_images(images, "images"), unit_images(reference, "reference"))


def ssim(images: Tensor, reference: Tensor) -> Tensor:
    """Structural similarity (Wang et al. 2004) of (N, 3, H, W) in [0, 1]: (N,), in [-1, 1], 1 for equal images.

    Gaussian window of 11 x 11, sigma 1.5, K1 = 0.01, K2 = 0.03, data range 1, on each channel; images are mirrored at
    their borders and all pixels count. Images must have at least 11 pixels a side, or the window does not fit.
    """
    _paired(images, reference)
    if min(images.shape[2:]) < _SSIM_WINDOW:
        raise DataError(
            f"SSIM's window needs images of at least {_SSIM_WINDOW} x {_SSIM_WINDOW} pixels, "
            f"but got {images.shape[2]} x {images.shape[3]}"
        )
    value = structural_similarity_index_measure(
        unit_images(images, "images"), unit_images(reference, "reference"), data_range=1.0, reduction="none"
    )
    return cast(Tensor, value)  # a tuple comes only with options not used here


def paper_psnr(images: Tensor, reference: Tensor) -> Tensor:
    """PSNR as PixelFade's released code takes it, of (N, 3, H, W): (N,) dB. A broken scale, for comparison only.

    Images and reference are each stretched to [0, 1] by the least and greatest value *of their batch* before the
    error is taken. A value so depends on which other images share the batch, a wrong brightness or contrast goes
    unpunished, and no two papers' or batches' figures compare. Any finite range of values is accepted. A batch of one
    single value becomes 0.
    """
    _paired(images, reference)
    return _psnr(_stretched(images, "images"), _stretched(reference, "reference"))


def anderson_darling(images: Tensor) -> Tensor:
    """Chaos of pixels (PixelFade, Figure 1a): how far the values of each image are from a normal distribution.

    The Anderson-Darling statistic, (N,) float64, over all values of each of (N, 3, H, W) in [0, 1]. Near 0 for normal
    values; it grows with their number, so compare images of one size only. A low value alone proves no privacy: a
    photo whose values are reshaped to a normal distribution scores near 0 too. A constant image, for which the
    statistic is not defined, gives infinity: nothing is less chaotic.
    """
    flat = unit_images(images, "images").detach().cpu().double().flatten(1).numpy()
    return torch.tensor([_anderson_darling(values) for values in flat], dtype=torch.float64)


def _psnr(images: Tensor, reference: Tensor) -> Tensor:
    error = (images.double() - reference.double()).square().flatten(1).mean(dim=1)
    return (-10.0 * torch.log10(error)).to(images.dtype)


def _stretched(batch: Tensor, name: str) -> Tensor:
    low, high = torch.aminmax(batch)
    if not torch.isfinite(high - low):
        raise DataError(f"{name} must be finite, but span [{float(low):g}, {float(high):g}]")
    return (batch - low) / (high - low) if high > low else torch.zeros_like(batch)


def _paired(images: Tensor, reference: Tensor) -> None:
    if images.shape != reference.shape or images.dtype != reference.dtype:
        raise DataError(
            "images and reference must have one shape and type, "
            f"but got {tuple(images.shape)} {images.dtype} and {tuple(reference.shape)} {reference.dtype}"
        )
    if images.ndim != 4 or not images.numel():
        raise DataError(f"expected images of shape (N, 3, H, W), none of them 0, but got {tuple(images.shape)}")


def _anderson_darling(values: NDArray[np.float64]) -> float:
    """A^2 = -n - (1/n) sum (2i - 1) [ln F(z_i) + ln(1 - F(z_(n+1-i)))], mean and deviation from the data.

    This is `scipy.stats.anderson(values, "norm").statistic`, whose call signature changes between SciPy's versions.
    """
    ordered = np.sort(values)
    if ordered[0] == ordered[-1]:
        return float("inf")
    n = len(ordered)
    z = (ordered - ordered.mean()) / ordered.std(ddof=1)
    weights = np.arange(1, 2 * n, 2) / n
    return float(-n - (weights * (log_ndtr(z) + log_ndtr(-z[::-1]))).sum())

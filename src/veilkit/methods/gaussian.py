"""Convolution of rows with a Gaussian, at a cost that the Gaussian's length cannot raise much above the rows' own."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

_LONG_KERNEL = 127  # taps from which on the Fourier transform is quicker
_FAR = 1_024  # pixels: a radius beyond this and beyond the row is folded into the row
_ROWS, _VALUES = 256, 2**22  # rows, and padded values, that are filtered at once
_PLAIN = 16_384  # values: a longer transform of a length with large prime factors takes minutes
_SUMMED = 2**20  # taps that are added up one by one


def convolved(rows: Tensor, sigma: float, radius: int) -> Tensor:
    """Each row of a matrix (H, W) convolved with a Gaussian that is cut at `radius`; the edges repeat.

    Long ones go through the Fourier transform: on a photograph of 4000 pixels a side the direct way takes minutes.
    """
    length = rows.shape[1]
    if radius > max(length, _FAR):
        return _folded(rows, sigma, radius)
    kernel = weights(radius, sigma)
    kernel /= kernel.sum()
    padded_length = _quick(length + 2 * radius)
    transfer = torch.fft.rfft(kernel, n=padded_length)
    result = torch.empty(rows.shape)
    at_once = min(_ROWS, max(1, _VALUES // padded_length))
    for part, target in zip(torch.split(rows, at_once), torch.split(result, at_once), strict=True):
        padded = F.pad(part[None], (radius, radius), mode="replicate")[0]
        if len(kernel) <= _LONG_KERNEL:
            target.copy_(F.conv1d(padded[:, None], kernel[None, None])[:, 0])
        else:
            filtered = torch.fft.irfft(torch.fft.rfft(padded, n=padded_length).mul_(transfer), n=padded_length)
            target.copy_(filtered[:, len(kernel) - 1 : len(kernel) - 1 + length])
    return result


def weights(radius: int, sigma: float) -> Tensor:
    """A Gaussian's values at -radius ... radius, 1 in the middle."""
    return torch.exp(-0.5 * (torch.arange(-radius, radius + 1, dtype=torch.float32) / sigma) ** 2)


def _folded(rows: Tensor, sigma: float, radius: int) -> Tensor:
    """The same for a Gaussian longer than the rows: all that falls beyond an edge falls on one value, the edge's."""
    length = rows.shape[1]
    near = weights(length - 1, sigma).double()
    half = near[length - 1 :]  # at 0, 1 ... length - 1
    total = _total(sigma, radius)
    beyond = (total - 2 * half.sum() + half[0]) / 2
    from_here = half.flip(0).cumsum(0).flip(0)  # the sum of what is at i and further
    before = ((beyond + torch.cat([from_here[1:], from_here.new_zeros(1)])) / total).float()  # at -1 - i and further
    padded_length = _quick(3 * length - 2)
    transfer = torch.fft.rfft((near / total).float(), n=padded_length)
    result = torch.empty(rows.shape)
    at_once = min(_ROWS, max(1, _VALUES // padded_length))
    for part, target in zip(torch.split(rows, at_once), torch.split(result, at_once), strict=True):
        filtered = torch.fft.irfft(torch.fft.rfft(part, n=padded_length).mul_(transfer), n=padded_length)
        target.copy_(filtered[:, length - 1 : 2 * length - 1])
        target.addcmul_(part[:, :1], before[None]).addcmul_(part[:, -1:], before.flip(0)[None])
    return result


def _quick(length: int) -> int:
    """A length from there on that the Fourier transform is quick for; short ones are quick enough as they are."""
    from scipy.fft import next_fast_len  # only what blurs has to pay for it

    return length if length <= _PLAIN else int(next_fast_len(length, real=True))


def _total(sigma: float, radius: int) -> float:
    """The sum of a Gaussian's values at -radius ... radius; of very many of them, their integral."""
    if radius <= _SUMMED:
        return float(weights(radius, sigma).double().sum())
    return sigma * math.sqrt(2 * math.pi) * math.erf((radius + 0.5) / (sigma * math.sqrt(2)))

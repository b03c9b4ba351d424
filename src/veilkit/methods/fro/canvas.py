"""What is optimised in feature assembling: pixels as they are, or their spectrum, in which large shapes come first.

Adam moves every value alike. Of pixels that draws fine grain; of a spectrum whose coefficients count by one over
their frequency, as those of natural pictures do, it draws shapes and plain colours as well (Olah, Mordvintsev and
Schubert, Distill 2017). Both canvases hold pictures in the normalised space of a classifier's input.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

# Axes in which the colours of natural pictures vary almost by themselves (Ruderman et al., JOSA A 1998): light and
# dark, red against blue, and green against both; the columns' lengths are typical deviations, relative to the first.
_COLOURS = torch.tensor([[1.0, 1.0, 1.0], [0.34, 0.0, -0.34], [0.09, -0.18, 0.09]]).T
_START = 0.014  # of the coefficients of N(0, 1): a faint beginning, for fine grain that is there at first stays
_REACH = 4.0  # so far does a step of Adam move a picture, in units of its rate


Limits = tuple[Tensor, Tensor]  # lowest and highest value of each channel, (3, 1, 1) each


class Canvas(Protocol):
    """values: the leaf that an optimiser moves."""

    values: Tensor

    def picture(self) -> Tensor:
        """Pictures (N, 3, H, W), normalised."""
        ...

    def keep(self) -> None:
        """Called after each step: put values back into range, if there is one."""
        ...


class Pixels:
    """The pixels themselves, from `start` (N, 3, H, W); limits: the range that they are kept in."""

    def __init__(self, start: Tensor, limits: Limits | None) -> None:
        self._limits = limits
        self.values = start.detach().contiguous(memory_format=torch.channels_last).requires_grad_()

    def picture(self) -> Tensor:
        """The values."""
        return self.values

    def keep(self) -> None:
        """Clamp the values."""
        if self._limits is not None:
            self.values.data.clamp_(*self._limits)


class Spectrum:
    """Fourier coefficients of three colour axes; power: of 1 / frequency, by which they count.

    start: N(0, 1), of which a faint share is in the first picture. begun: the rest of that picture; none is grey.
    limits: where pictures are cut off; a coefficient by itself has no range.
    """

    def __init__(self, start: Tensor, power: float, limits: Limits | None, begun: Tensor | None = None) -> None:
        self._size = (start.shape[2], start.shape[3])
        self._weights = _falling(self._size, power) * _REACH
        self._limits = limits
        coefficients = torch.fft.rfft2(start.detach(), norm="ortho") * _START
        if begun is not None:
            axes = torch.einsum("nchw,ac->nahw", begun, torch.linalg.inv(_COLOURS))
            coefficients = coefficients + torch.fft.rfft2(axes, norm="ortho") / self._weights
        self.values = torch.view_as_real(coefficients).contiguous().requires_grad_()

    def picture(self) -> Tensor:
        """The pictures of these coefficients."""
        weighted = torch.view_as_complex(self.values) * self._weights
        axes = torch.fft.irfft2(weighted, s=self._size, norm="ortho")
        drawn = torch.einsum("nahw,ca->nchw", axes, _COLOURS).contiguous(memory_format=torch.channels_last)
        return drawn if self._limits is None else torch.clamp(drawn, *self._limits)

    def keep(self) -> None:
        """Nothing: pictures are cut off as they are drawn."""


def _falling(size: tuple[int, int], power: float) -> Tensor:
    """(H, W // 2 + 1): frequency to the -power, of mean 1; the lowest frequency counts as the first above zero."""
    height, width = size
    down, across = torch.fft.fftfreq(height)[:, None], torch.fft.rfftfreq(width)[None]
    frequency = (down.square() + across.square()).sqrt().clamp(min=1 / max(size))
    weights: Tensor = frequency.pow(-power)
    return weights / weights.mean()

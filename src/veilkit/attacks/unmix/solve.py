"""Solving a ring of blended pictures, y_i = r x_i + (1 - r) x_(i+1), for its sources, its ratio and its direction.

Ratio and direction are those at which the sources have the sparsest steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dctn, idctn

Floats = NDArray[np.float32]

_WEAK = 0.05  # singular values below multiply the rounding to 8 bit twentyfold: the pictures say nothing there
_TRIED = 21  # brightnesses on each side
_FARTHEST = 0.5
_COARSE = tuple(round(0.5 + 0.03 * k, 2) for k in range(16))  # 0.5 to 0.95
_FINE = tuple(round(-0.02 + 0.01 * k, 2) for k in range(5))
_LARGEST = 0.98
_APART = 0.65  # from here on, rounding is multiplied at most threefold
_PAIR = 0.53  # two pictures at ratio 0.5 are one and the same: there is nothing to solve
_VALUES = 12_000  # steps of each picture that are looked at


def mixing(pictures: int, ratio: float, closed: bool) -> NDArray[np.float64]:
    """(pictures, sources): shares of the sources; an open chain has one source more than pictures."""
    sources = pictures if closed else pictures + 1
    shares = np.zeros((pictures, sources))
    at = np.arange(pictures)
    shares[at, at] += ratio
    shares[at, (at + 1) % sources] += 1.0 - ratio
    return shares


def unmixed(blended: Floats, ratio: float, closed: bool) -> Floats:
    """Sources (S, 3, H, W), in [0, 1], of blended pictures (n, 3, H, W) in the order of their ring.

    Least squares. A ring of even length at ratio 0.5, and any open chain, leaves one picture v undetermined: adding
    it, in alternating shares, to the sources changes nothing that was released. That v is taken which makes the
    sources' steps small in sum (L1): the steps of v are a weighted median, and v follows by a Poisson equation.
    """
    sources, free = least_squares(blended, ratio, closed, weak=_WEAK)
    if free is not None:
        sources += np.multiply.outer(free, _smoothest(sources, free))
    return np.clip(sources, 0, 1).astype(np.float32)


def least_squares(
    blended: Floats, ratio: float, closed: bool, *, weak: float
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Sources (S, ...) of least norm, and their shares (S,) of the picture that stays undetermined, or None.

    Undetermined are singular vectors whose value is below `weak`; of several, the least one is given.
    """
    shares = mixing(len(blended), ratio, closed)
    left, values, right = np.linalg.svd(shares, full_matrices=True)
    sure = values >= weak
    inverse = right[: len(values)][sure].T @ (left[:, sure] / values[sure]).T
    sources = (inverse @ blended.reshape(len(blended), -1)).reshape(-1, *blended.shape[1:])
    return sources, None if sure.all() and len(right) == len(values) else right[-1]


def _smoothest(sources: NDArray[np.float64], free: NDArray[np.float64]) -> NDArray[np.float64]:
    """The picture v (3, H, W) for which the steps of sources + free v are smallest in sum."""
    across = weighted_median(-np.diff(sources, axis=3), free)
    down = weighted_median(-np.diff(sources, axis=2), free)
    picture = _integrated(across, down)
    return picture + _brightness(sources, free, picture)


def weighted_median(steps: NDArray[np.float64], free: NDArray[np.float64]) -> NDArray[np.float64]:
    """argmin over d of sum_i |steps_i - free_i d|, (S, ...) -> (...): a weighted median of steps_i / free_i."""
    used = np.abs(free) > 1e-6
    weight = np.abs(free[used])
    candidates = steps[used] / free[used].reshape(-1, *[1] * (steps.ndim - 1))
    order = np.argsort(candidates, axis=0, kind="stable")
    ranked = np.take_along_axis(candidates, order, axis=0)
    reached = np.cumsum(weight[order], axis=0)
    half = weight.sum() / 2
    lower = (reached < half * (1 - 1e-9)).sum(axis=0)
    upper = np.minimum((reached < half * (1 + 1e-9)).sum(axis=0), len(weight) - 1)
    ends = [np.take_along_axis(ranked, at[None], axis=0)[0] for at in (lower, upper)]
    middle: NDArray[np.float64] = (ends[0] + ends[1]) / 2
    return middle


def _integrated(across: NDArray[np.float64], down: NDArray[np.float64]) -> NDArray[np.float64]:
    """The picture (3, H, W) of mean 0 whose steps come nearest (least squares) to those given; free borders."""
    channels, height, _ = across.shape
    width = down.shape[2]
    source = np.zeros((channels, height, width))
    source[:, :, :-1] += across
    source[:, :, 1:] -= across
    source[:, :-1] += down
    source[:, 1:] -= down
    waves = [2 * np.cos(np.pi * np.arange(side) / side) - 2 for side in (height, width)]
    scale = waves[0][:, None] + waves[1][None, :]
    scale[0, 0] = 1.0
    spectrum = dctn(source, axes=(1, 2)) / scale
    spectrum[:, 0, 0] = 0.0
    picture: NDArray[np.float64] = idctn(spectrum, axes=(1, 2))
    return picture


def _brightness(
    sources: NDArray[np.float64], free: NDArray[np.float64], picture: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(3, 1, 1): the brightness of v with which the sources leave [0, 1] the least, and the least one of those."""
    thin = (slice(None), slice(None), slice(None, None, 2), slice(None, None, 2))
    base = (sources + free[:, None, None, None] * picture[None])[thin]
    reach = _FARTHEST / float(np.abs(free).max())
    best = np.zeros((picture.shape[0], 1, 1))
    for channel in range(picture.shape[0]):
        lowest = np.inf
        for shift in sorted(np.linspace(-reach, reach, 2 * _TRIED + 1), key=abs):
            shifted = base[:, channel] + free[:, None, None] * shift
            outside = float((np.maximum(-shifted, 0) + np.maximum(shifted - 1, 0)).mean())
            if outside < lowest - 1e-6:
                lowest, best[channel] = outside, shift
    return best


def steps_of(pictures: Floats) -> Floats:
    """(n, K): steps across and down of pictures (n, 3, H, W), evenly thinned out where there are many."""
    across, down = (np.diff(pictures, axis=axis).reshape(len(pictures), -1) for axis in (3, 2))
    both = np.concatenate([across, down], axis=1)
    every = 1 + both.shape[1] // _VALUES
    every += every % 3 == 0 or every % 2 == 0  # no one colour or column only
    return np.ascontiguousarray(both[:, ::every])


def busyness(steps: NDArray[np.floating]) -> float:
    """The mean size of steps (n, K) by their root mean square, over n pictures: low where steps are few and strong.

    Blends of two scenes have more weak steps than either; so has a picture from which too much was taken away.
    """
    size, root = np.abs(steps).mean(axis=1), np.sqrt(np.square(steps).mean(axis=1))
    return float((size / np.maximum(root, 1e-6)).mean())


def busyness_at(steps: Floats, ratio: float, closed: bool, *, alternating: bool = True) -> float:
    """How busy the sources of a ring would be at a ratio, from the steps (n, K) of its pictures.

    In closed rings of even length the alternating direction is the least determined, and near 0.5 it multiplies the
    rounding to 8 bit, which would speak against the true ratio. Unless `alternating`, it counts as undetermined.
    """
    if len(steps) == 2:
        ratio = max(ratio, _PAIR)
    least = 1e-9 if alternating or not closed or len(steps) % 2 or len(steps) == 2 else 2 * ratio - 1 + 1e-9
    sources, free = least_squares(steps, ratio, closed, weak=least)
    if free is not None:
        sources += np.multiply.outer(free, weighted_median(-sources, free))
    return busyness(sources)


def find_ratio(rings: Sequence[tuple[Floats, bool]]) -> tuple[float, float]:
    """The ratio, from 0.5 to 0.98, at which the sources of rings are least busy; each ring is (steps, closed).

    Then by which share they are less busy than the pictures are: not above 0 where nothing was blended.
    """

    def total(ratio: float, *, alternating: bool) -> float:
        return sum(
            min(busyness_at(each, ratio, closed, alternating=alternating) for each in (steps, steps[::-1]))
            for steps, closed in rings
        )

    start = min(_COARSE, key=lambda ratio: total(ratio, alternating=False))
    sure = start >= _APART
    tried = [round(start + step, 2) for step in _FINE if 0.5 <= start + step <= _LARGEST + 1e-9]
    ratio = min(tried, key=lambda ratio: total(ratio, alternating=sure))
    before = sum(busyness(steps) for steps, _ in rings)
    return ratio, 1.0 - total(ratio, alternating=sure) / before


def goes_backwards(steps: Floats, ratio: float, closed: bool) -> bool:
    """Whether the ring (n, K) must be read from its end, for a picture's second source to be the next one's first."""
    sure = ratio >= _APART
    forth, back = (busyness_at(each, ratio, closed, alternating=sure) for each in (steps, steps[::-1]))
    return back < forth

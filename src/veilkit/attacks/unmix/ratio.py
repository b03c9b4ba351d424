"""At what ratio pictures were blended, and which way round a ring goes: as its sources have the sparsest steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.unmix.solve import Floats, least_squares, weighted_median

_COARSE = tuple(round(0.5 + 0.03 * k, 2) for k in range(16))  # 0.5 to 0.95
_FINE = tuple(round(-0.02 + 0.01 * k, 2) for k in range(5))
_LARGEST = 0.98
_APART = 0.65  # from here on, rounding is multiplied at most threefold
_PAIR = 0.53  # two pictures at ratio 0.5 are one and the same: there is nothing to solve
_VALUES = 12_000  # steps of each picture that are looked at


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

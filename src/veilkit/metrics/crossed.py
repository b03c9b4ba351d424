"""Two kinds of clusters at once: every participant answers for every person, and both are a sample.

A bootstrap that draws only participants takes the people in the pictures for all there are, and the other way round.
The pigeonhole bootstrap (Owen 2007) draws both, each by itself: an answer counts as often as its participant was
drawn times how often its person was. It errs on the wide side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import ConfigError, DataError
from veilkit.metrics.inputs import Values, whole_numbers

_FEWEST_DRAWS = 1000


def crossed_weights(
    first: Values, second: Values, *, generator: np.random.Generator, draws: int = 1000
) -> NDArray[np.float64]:
    """How often each of N answers counts in each draw, (draws, N). first, second: its two clusters, (N,).

    Where all answers share one cluster of a kind, that kind is not drawn. A statistic of an answer's values v in a
    draw w is that of the weighted answers, such as (w * v).sum() / w.sum() for a mean.

    >>> weights = crossed_weights([0, 0, 1, 1], [0, 1, 0, 1], generator=np.random.default_rng(0))
    >>> weights.shape, bool((weights.sum(axis=1) == 4).all())
    ((1000, 4), True)
    """
    if draws < _FEWEST_DRAWS:
        raise ConfigError(
            f"draws must be at least {_FEWEST_DRAWS}, for the interval's ends to settle, but got {draws}"
        )
    if not len(first):
        raise DataError("the bootstrap needs at least one answer, but got none")
    weights = np.ones((draws, len(first)))
    for clusters, name in ((first, "first"), (second, "second")):
        _, place = np.unique(whole_numbers(clusters, name, len(first)), return_inverse=True)
        count = int(place.max()) + 1
        if count > 1:
            weights *= generator.multinomial(count, np.full(count, 1.0 / count), size=draws)[:, place]
    return weights

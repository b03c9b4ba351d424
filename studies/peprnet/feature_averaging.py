"""Averaging of released features: several releases of one gallery, each with fresh noise, taken together.

What a ledger prevents, which gives a record the same vector again: without one, independent noise falls by the root
of the number of releases, and the privacy loss adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import ConfigError

Vectors = NDArray[np.float32]
COUNTS = (1, 4, 16, 64)


def averaged_releases(release: Callable[[], Vectors], counts: Sequence[int] = COUNTS) -> dict[int, Vectors]:
    """The mean (N, D) of the first so many releases, for each count; `release` is called as often as the largest."""
    if not counts or min(counts) < 1 or list(counts) != sorted(set(counts)):
        raise ConfigError(f"counts must be positive and rise, but got {tuple(counts)}")
    found: dict[int, Vectors] = {}
    total: NDArray[np.float64] | None = None
    for made in range(1, max(counts) + 1):
        vectors = release().astype(np.float64)
        total = vectors if total is None else total + vectors
        if made in counts:
            found[made] = (total / made).astype(np.float32)
    return found

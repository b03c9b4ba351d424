"""Which of several releases nobody beats: more use with no more leak, or less leak with no less use."""

from __future__ import annotations

from collections.abc import Sequence


def dominates(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether (utility, leak) of one is as good as the other's in both and better in one.

    >>> dominates((0.9, 0.1), (0.8, 0.1)), dominates((0.9, 0.1), (0.9, 0.1)), dominates((0.9, 0.2), (0.8, 0.1))
    (True, False, False)
    """
    return one[0] >= other[0] and one[1] <= other[1] and one != other


def pareto_front(points: Sequence[tuple[float, float]]) -> tuple[int, ...]:
    """Positions of the (utility, leak) points that no other dominates, by rising utility; equal points all stay.

    >>> pareto_front([(0.9, 0.5), (0.5, 0.1), (0.4, 0.2), (0.9, 0.6)])
    (1, 0)
    """
    kept = [place for place, point in enumerate(points) if not any(dominates(other, point) for other in points)]
    return tuple(sorted(kept, key=lambda place: points[place]))

"""Who matches whom: for each query the gallery entries of its identity, less those that its protocol removes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import DataError
from veilkit.metrics.inputs import Values, whole_numbers


@dataclass(frozen=True, slots=True)
class Pairs:
    """Query and gallery positions of equal identity, query by query; `removed` ones must not be found."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    removed_row: NDArray[np.int64]
    removed_column: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Matches:
    """Which gallery entries share a query's identity, and which are removed for it; gallery grouped by identity."""

    order: NDArray[np.int64]  # gallery indices, by identity and then by index
    starts: NDArray[np.int64]  # (Q,) where the query's identity begins in `order`
    counts: NDArray[np.int64]  # (Q,) how many entries it has there
    query_cameras: NDArray[np.int64] | None
    gallery_cameras: NDArray[np.int64] | None
    own_index: NDArray[np.int64] | None

    @classmethod
    def of(
        cls,
        queries: int,
        entries: int,
        query_identities: Values,
        gallery_identities: Values,
        query_cameras: Values | None,
        gallery_cameras: Values | None,
        own_index: Values | None,
    ) -> Matches:
        """Checked labels of `queries` queries and `entries` gallery entries; see `retrieval` for their meaning."""
        if (query_cameras is None) != (gallery_cameras is None):
            raise DataError("cameras are needed for the query and the gallery, or for neither, but got only one")
        wanted = whole_numbers(query_identities, "query_identities", queries)
        held = whole_numbers(gallery_identities, "gallery_identities", entries)
        own = _optional(own_index, "own_index", queries)
        if own is not None and own.size and (own.min() < -1 or own.max() >= entries):
            raise DataError(
                f"own_index must be gallery indices below {entries}, or -1 for none, "
                f"but got values from {own.min()} to {own.max()}"
            )
        order = np.argsort(held, kind="stable")
        starts = np.searchsorted(held[order], wanted, "left")
        return cls(
            order=order,
            starts=starts,
            counts=np.searchsorted(held[order], wanted, "right") - starts,
            query_cameras=_optional(query_cameras, "query_cameras", queries),
            gallery_cameras=_optional(gallery_cameras, "gallery_cameras", entries),
            own_index=own,
        )

    def of_queries(self, start: int, stop: int) -> Pairs:
        """The pairs of the queries from `start` to `stop`; rows count from `start`."""
        counts = self.counts[start:stop]
        row = np.repeat(np.arange(stop - start), counts)
        within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        column = self.order[self.starts[start:stop][row] + within]
        removed = np.zeros(len(row), dtype=np.bool_)
        if self.query_cameras is not None and self.gallery_cameras is not None:
            removed |= self.query_cameras[start:stop][row] == self.gallery_cameras[column]
        removed_row, removed_column = row[removed], column[removed]
        if self.own_index is not None:
            own = self.own_index[start:stop]
            removed |= own[row] == column
            # One's own entry goes whatever its identity says.
            removed_row = np.concatenate([removed_row, np.flatnonzero(own >= 0)])
            removed_column = np.concatenate([removed_column, own[own >= 0]])
        return Pairs(row[~removed], column[~removed], removed_row, removed_column)


def _optional(values: Values | None, name: str, count: int) -> NDArray[np.int64] | None:
    return None if values is None else whole_numbers(values, name, count)

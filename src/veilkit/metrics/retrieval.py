"""Retrieval: CMC rank-k, mAP and mINP, as in the Market-1501 protocol, without sorting the whole gallery.

Gallery entries are ordered by falling cosine similarity (rising cosine distance) and, where equal, by gallery index.
A query has few matches, so instead of the order of all G entries only the ranks of its matches are found: by binary
search among the sorted similarities that reach its worst match. Sorting values is several times quicker than sorting
indices stably. Ties, which make a rank depend on the index, are rare; a row with one is sorted the slow way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.errors import ConfigError, DataError
from veilkit.metrics.inputs import Values, finite_features, l2_normalised
from veilkit.metrics.matches import Matches, Pairs


@dataclass(frozen=True, slots=True, eq=False)
class RetrievalResult:
    """What each of Q queries found; the means are over the valid queries, those with at least one match.

    average_precision: (Q,) mean of the precisions at the matches' ranks; NaN where not valid.
    first_match_rank: (Q,) rank of the first match, from 1; 0 where not valid.
    inverse_negative_penalty: (Q,) number of matches divided by the last one's rank (Ye et al. 2021); NaN likewise.
    valid: (Q,) whether the query has any match left in the gallery.
    """

    average_precision: NDArray[np.float64]
    first_match_rank: NDArray[np.int64]
    inverse_negative_penalty: NDArray[np.float64]
    valid: NDArray[np.bool_]

    @property
    def valid_count(self) -> int:
        """How many queries the means are over."""
        return int(self.valid.sum())

    @property
    def mean_ap(self) -> float:
        """Mean average precision, in [0, 1]."""
        return float(self.average_precision[self.valid].mean())

    @property
    def minp(self) -> float:
        """Mean inverse negative penalty, in [0, 1]."""
        return float(self.inverse_negative_penalty[self.valid].mean())

    def hits(self, k: int) -> NDArray[np.float64]:
        """(Q,) 1 where a match is among the first `k`, else 0; NaN where the query is not valid."""
        if k < 1:
            raise ConfigError(f"k must be at least 1, but got {k}")
        return np.where(self.valid, self.first_match_rank <= k, np.nan)

    def rank(self, k: int) -> float:
        """CMC at `k`: the share of valid queries with a match among the first `k`, in [0, 1]."""
        return float(self.hits(k)[self.valid].mean())


def retrieval(
    query: Values,
    gallery: Values,
    query_identities: Values,
    gallery_identities: Values,
    query_cameras: Values | None = None,
    gallery_cameras: Values | None = None,
    *,
    own_index: Values | None = None,
    normalise: bool = True,
    chunk: int = 256,
) -> RetrievalResult:
    """Search each query in the gallery by cosine similarity.

    query, gallery: raw features (Q, D) and (G, D), L2-normalised here unless `normalise` is False.
    identities, cameras: whole numbers. With cameras, gallery entries of the query's identity *and* camera are removed
    for that query (Market-1501's rule). Junk boxes of a dataset must be left out of the gallery beforehand.
    own_index: (Q,) for each query one gallery entry to remove, usually the query's own image; -1 for none.
    chunk: queries at a time; the working memory is about 4 * chunk * G bytes. The last bit of a similarity, and so
    the order of entries closer together than that, may change with it.

    >>> found = retrieval([[1.0, 0.0]], [[0.9, 0.1], [0.8, 0.2], [0.0, 1.0]], [7], [5, 7, 7])
    >>> found.rank(1), found.rank(2), round(found.mean_ap, 4)
    (0.0, 1.0, 0.5833)
    """
    query, gallery = finite_features(query, "query"), finite_features(gallery, "gallery")
    if query.shape[1] != gallery.shape[1]:
        raise DataError(
            "query and gallery must come from one model, "
            f"but their features have {query.shape[1]} and {gallery.shape[1]} dimensions"
        )
    if chunk < 1:
        raise ConfigError(f"chunk must be at least 1, but got {chunk}")
    if normalise:
        query, gallery = l2_normalised(query), l2_normalised(gallery)
    matches = Matches.of(
        len(query), len(gallery), query_identities, gallery_identities, query_cameras, gallery_cameras, own_index
    )
    return _search_all(_similarities(query, gallery, chunk), matches)


def _similarities(
    query: NDArray[np.float32], gallery: NDArray[np.float32], chunk: int
) -> Iterator[NDArray[np.float32]]:
    """The products of `chunk` queries at a time with the gallery, each in the same memory as the last."""
    buffer = torch.empty(min(chunk, len(query)), len(gallery))
    columns = torch.from_numpy(gallery).T
    for start in range(0, len(query), chunk):
        rows = torch.from_numpy(query[start : start + chunk])
        # torch, not NumPy, multiplies: its number of threads is the one that callers set.
        yield torch.matmul(rows, columns, out=buffer[: len(rows)]).numpy()


def _search_all(chunks: Iterable[NDArray[np.float32]], matches: Matches) -> RetrievalResult:
    parts, start = [], 0
    for similarities in chunks:
        stop = start + len(similarities)
        parts.append(_search(similarities, matches.of_queries(start, stop)))
        start = stop
    return _result(np.concatenate(parts, axis=1))


def _search(similarities: NDArray[np.float32], pairs: Pairs) -> NDArray[np.float64]:
    """(3, C): average precision, first match's rank and inverse negative penalty of C queries; 0 without a match.

    similarities: (C, G), changed in place at the removed entries.
    """
    similarities[pairs.removed_row, pairs.removed_column] = -np.inf
    found = np.zeros((3, len(similarities)))
    if not len(pairs.row):
        return found
    queries, starts, counts = np.unique(pairs.row, return_index=True, return_counts=True)
    ranks = _ranks(similarities, pairs, queries, starts, counts)
    ranks = ranks[np.lexsort((ranks, pairs.row))]  # by query, then rising
    nth = np.arange(len(ranks)) - np.repeat(starts, counts) + 1
    found[0, queries] = np.add.reduceat(nth / ranks, starts) / counts
    found[1, queries] = ranks[starts]
    found[2, queries] = counts / ranks[starts + counts - 1]
    return found


def _ranks(
    similarities: NDArray[np.float32],
    pairs: Pairs,
    queries: NDArray[np.int64],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The rank, from 1, of each pair among its query's gallery."""
    scores = similarities[pairs.row, pairs.column]
    worst = np.minimum.reduceat(scores, starts)
    ranks = np.empty(len(scores), dtype=np.int64)
    for query, start, count, limit in zip(queries, starts, counts, worst, strict=True):
        row, part = similarities[query], slice(start, start + count)
        rivals = _sorted_from(row, limit)
        above = rivals.searchsorted(scores[part], "right")
        if (above - rivals.searchsorted(scores[part], "left") > 1).any():
            position = np.empty(len(row), dtype=np.int64)
            position[np.argsort(-row, kind="stable")] = np.arange(1, len(row) + 1)
            ranks[part] = position[pairs.column[part]]
        else:
            ranks[part] = len(rivals) - above + 1
    return ranks


def _sorted_from(row: NDArray[np.float32], limit: np.float32) -> NDArray[np.float32]:
    """The values of `row` in rising order; those below `limit` may be missing, for they are behind every match."""
    reached = row >= limit
    # Picking values out costs as much as sorting them all, unless few are picked.
    rivals = row[reached] if np.count_nonzero(reached) * 8 < len(row) else row.copy()
    rivals.sort()
    return rivals


def _result(found: NDArray[np.float64]) -> RetrievalResult:
    precision, first, penalty = found
    valid = first > 0
    if not valid.any():
        raise DataError(
            f"none of the {len(valid)} queries has a match in the gallery once entries of its own camera and its own "
            "image are removed: expected identities that occur in both; check that query and gallery number them "
            "alike, and leave the cameras out if each person was seen by one camera only"
        )
    return RetrievalResult(
        average_precision=np.where(valid, precision, np.nan),
        first_match_rank=first.astype(np.int64),
        inverse_negative_penalty=np.where(valid, penalty, np.nan),
        valid=valid,
    )

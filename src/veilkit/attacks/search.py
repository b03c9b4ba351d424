"""Who searches for whom: queries, gallery, what is removed for each query, and what blind guessing would find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.metrics import RetrievalResult, retrieval
from veilkit.metrics.matches import Matches
from veilkit.rng import Randomness

Indices = NDArray[np.int64]
_CHUNK = 256  # queries at a time, which bounds the memory where few people have many pictures


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """A search among N pictures by identity.

    query (Q,), gallery (G,): positions of pictures. identities (N,): codes; a picture of somebody unknown has a code
    of its own. cameras (N,): codes, or None where entries of the query's own camera are not removed. A query's own
    picture is always removed from its gallery.
    """

    query: Indices
    gallery: Indices
    identities: Indices
    cameras: Indices | None = None

    @property
    def people(self) -> Indices:
        """(Q,) the code of each query's person."""
        return self.identities[self.query]

    @property
    def own(self) -> Indices:
        """(Q,) for each query the place of its own picture in the gallery, or -1."""
        place = np.full(len(self.identities), -1, dtype=np.int64)
        place[self.gallery] = np.arange(len(self.gallery))
        return place[self.query]

    @property
    def _labels(self) -> tuple[Indices, Indices, Indices | None, Indices | None]:
        """Identities of the queries and of the gallery, then their cameras."""
        cameras = (None, None) if self.cameras is None else (self.cameras[self.query], self.cameras[self.gallery])
        return self.people, self.identities[self.gallery], *cameras

    def find(self, query: NDArray[np.float32], gallery: NDArray[np.float32]) -> RetrievalResult:
        """Search with features (N, D) of all pictures as queries among features (N, D) as gallery."""
        return retrieval(query[self.query], gallery[self.gallery], *self._labels, own_index=self.own)

    def candidates(self) -> tuple[Indices, Indices]:
        """(Q,) right entries and (Q,) all entries that are left in the gallery for each query."""
        matches = Matches.of(len(self.query), len(self.gallery), *self._labels, self.own)
        right, left = np.zeros(len(self.query), dtype=np.int64), np.zeros(len(self.query), dtype=np.int64)
        for start in range(0, len(self.query), _CHUNK):
            stop = min(start + _CHUNK, len(self.query))
            pairs = matches.of_queries(start, stop)
            right[start:stop] = np.bincount(pairs.row, minlength=stop - start)
            # An entry may be removed for its camera and for being the query itself, and counts once.
            removed = np.unique(pairs.removed_row * len(self.gallery) + pairs.removed_column) // len(self.gallery)
            left[start:stop] = len(self.gallery) - np.bincount(removed, minlength=stop - start)
        return right, left

    def chance(self, ranks: Sequence[int] = (1, 5, 10)) -> dict[str, float]:
        """What a random order of the gallery would score: rank-k and mAP, over the queries that have a match."""
        right, entries = self.candidates()
        right, entries = right[right > 0], entries[right > 0]
        scores = {f"rank-{k}": float((1.0 - _all_wrong(right, entries, k)).mean()) for k in ranks}
        scores["mAP"] = float(_expected_precision(right, entries).mean())
        return scores

    def only(self, indices: Indices) -> Search:
        """The same search among some of the pictures."""
        place = np.full(len(self.identities), -1, dtype=np.int64)
        place[indices] = np.arange(len(indices))
        query, gallery = place[self.query], place[self.gallery]
        cameras = None if self.cameras is None else self.cameras[indices]
        return Search(query[query >= 0], gallery[gallery >= 0], self.identities[indices], cameras)


def plan_search(
    identities: Sequence[str | None],
    cameras: Sequence[str | None],
    query: Sequence[int] | Indices,
    gallery: Sequence[int] | Indices,
) -> tuple[Search | None, tuple[str, ...]]:
    """The search that these labels allow, and what is to be said of it; None where people cannot be searched for.

    identities, cameras: of all N pictures. Pictures of unknown people do not query, but stay in the gallery.
    """
    known = np.array([identity is not None for identity in identities], dtype=np.bool_)
    if not known.any():
        return None, ("nobody knows who is in the pictures: people cannot be searched for (see --labels)",)
    if len({identity for identity in identities if identity is not None}) < 2:
        return None, ("the pictures show one person only: there is nobody to be taken for somebody else",)
    asking = np.asarray(query, dtype=np.int64)
    asking, held = asking[known[asking]], _mixed(np.asarray(gallery, dtype=np.int64))
    codes = _codes(identities)
    notes = []
    if unknown := int((~known).sum()):
        notes.append(f"{unknown} pictures of unknown people stay in the gallery and are not searched for")
    if all(camera is not None for camera in cameras):
        search = Search(asking, held, codes, _codes(cameras))
        if _has_matches(search):
            return search, tuple(notes)
        notes.append("nobody was seen by two cameras: pictures by the query's own camera count as well")
    else:
        some = any(camera is not None for camera in cameras)
        notes.append(
            f"{'the cameras of some pictures are' if some else 'cameras are'} not known: "
            "pictures of one person by one camera may be near duplicates, which makes recognition look easier"
        )
    search = Search(asking, held, codes)
    return (search, tuple(notes)) if _has_matches(search) else (None, (_NO_MATCHES,))


_NO_MATCHES = "there is one picture of each person only: no search can find the same person again"


def _has_matches(search: Search) -> bool:
    return len(search.query) > 0 and len(search.gallery) > 0 and bool(search.candidates()[0].any())


def _mixed(gallery: Indices) -> Indices:
    """The gallery in a random order that is always the same.

    Ties are broken by place: where many features are equal (a release of one colour), a gallery sorted by person
    would not score what blind guessing does.
    """
    return gallery[Randomness.from_seed(0).child("gallery order").permutation(len(gallery))]


def _codes(labels: Sequence[str | None]) -> Indices:
    """Whole numbers for labels; each unknown one gets a number of its own."""
    numbers = {label: code for code, label in enumerate(sorted({label for label in labels if label is not None}))}
    return np.array(
        [len(numbers) + place if label is None else numbers[label] for place, label in enumerate(labels)],
        dtype=np.int64,
    )


def _all_wrong(right: Indices, entries: Indices, k: int) -> NDArray[np.float64]:
    """Probability that the first k of a random order are all wrong: product of (wrong - i) / (entries - i), i < k."""
    share = np.ones(len(right))
    for i in range(k):
        left = np.maximum(entries - i, 1)
        share *= np.clip(entries - right - i, 0, None) / left
    return share


def _expected_precision(right: Indices, entries: Indices) -> NDArray[np.float64]:
    """Mean average precision of a random order of n entries, R of them right: (H_n + (R-1)/(n-1) (n - H_n)) / n.

    A place k holds a right entry with probability R/n; the precision there is then (1 + (k-1)(R-1)/(n-1)) / k on
    average. H_n is the n-th harmonic number.
    """
    harmonic = np.cumsum(1.0 / np.arange(1, int(entries.max()) + 1))[entries - 1]
    others = (right - 1) / np.maximum(entries - 1, 1)
    expected: NDArray[np.float64] = (harmonic + others * (entries - harmonic)) / entries
    return expected

"""Retrieval metrics at Market-1501's size: veilkit against the textbook loop that sorts the gallery for each query.

Both get the same L2-normalised features, compute the same similarities in chunks of 256 queries (included in both
times) and break ties alike, by gallery index, which makes the textbook's sort a stable one. CPU time on one thread,
best of three, taken in turns. Features are random: no match stands out, the worst case for veilkit, which looks only
as far down the gallery as the last match; made-up features that separate people well are timed too, for comparison.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from claims import record
from veilkit.metrics import RetrievalResult, retrieval

QUERIES, GALLERY, IDENTITIES, CAMERAS, DIMENSIONS, CHUNK = 3_368, 19_732, 751, 6, 128, 256
DISTRACTORS = 1 / 3  # share of Market-1501's gallery that belongs to none of the queried people
SEED, REPEATS = 0, 3


class Data(NamedTuple):
    query: NDArray[np.float32]
    gallery: NDArray[np.float32]
    query_identities: NDArray[np.int64]
    gallery_identities: NDArray[np.int64]
    query_cameras: NDArray[np.int64]
    gallery_cameras: NDArray[np.int64]


def made_up_data(separation: float) -> Data:
    """Features of `separation` times an identity's own direction plus noise; 0 is pure noise."""
    rng = np.random.default_rng(SEED)
    query_identities = rng.integers(0, IDENTITIES, QUERIES)
    gallery_identities = rng.integers(0, IDENTITIES, GALLERY)
    gallery_identities[rng.random(GALLERY) < DISTRACTORS] = IDENTITIES
    centres = separation * rng.normal(size=(IDENTITIES + 1, DIMENSIONS))
    centres[IDENTITIES] = 0.0

    def features(identities: NDArray[np.int64]) -> NDArray[np.float32]:
        drawn = (centres[identities] + rng.normal(size=(len(identities), DIMENSIONS))).astype(np.float32)
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    return Data(
        features(query_identities),
        features(gallery_identities),
        query_identities,
        gallery_identities,
        rng.integers(0, CAMERAS, QUERIES),
        rng.integers(0, CAMERAS, GALLERY),
    )


def similarity_rows(data: Data) -> Iterator[NDArray[np.float32]]:
    gallery = torch.from_numpy(data.gallery).T
    for start in range(0, QUERIES, CHUNK):
        yield from (torch.from_numpy(data.query[start : start + CHUNK]) @ gallery).numpy()


def textbook(data: Data, kind: str = "stable") -> NDArray[np.float64]:
    """(Q, 3): average precision, rank of the first match, inverse negative penalty; zeros without a match."""
    found = np.zeros((QUERIES, 3))
    positions = np.arange(1, GALLERY + 1)
    for index, row in enumerate(similarity_rows(data)):
        order = np.argsort(-row, kind=kind)  # type: ignore[call-overload]
        same = data.gallery_identities[order] == data.query_identities[index]
        here = data.gallery_cameras[order] == data.query_cameras[index]
        hits = same[~(same & here)]
        matches = int(hits.sum())
        if matches == 0:
            continue
        precision = hits.cumsum() / positions[: len(hits)]
        where = np.flatnonzero(hits)
        found[index] = precision[where].sum() / matches, where[0] + 1, matches / (where[-1] + 1)
    return found


def ours(data: Data) -> RetrievalResult:
    return retrieval(*data, normalise=False, chunk=CHUNK)


def seconds(action: Callable[[], object]) -> float:
    """CPU time, which on one thread is the time taken, less what other programs took."""
    begun = time.process_time()
    action()
    return time.process_time() - begun


def equal(result: RetrievalResult, reference: NDArray[np.float64]) -> bool:
    """Ranks to the integer; the means of fractions up to the rounding of a sum."""
    precision, penalty = np.nan_to_num(result.average_precision), np.nan_to_num(result.inverse_negative_penalty)
    return (
        bool((result.first_match_rank == reference[:, 1]).all())
        and bool((penalty == reference[:, 2]).all())
        and float(np.abs(precision - reference[:, 0]).max()) < 1e-12
    )


def peak_megabytes(data: Data) -> tuple[float, float]:
    """Peak of NumPy's allocations during ours, and the one torch buffer of similarities, in MB."""
    tracemalloc.start()
    ours(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6, CHUNK * GALLERY * 4 / 1e6


def main() -> None:
    torch.set_num_threads(1)
    data, trained = made_up_data(0.0), made_up_data(1.0)
    same = equal(ours(data), textbook(data)) and equal(ours(trained), textbook(trained))
    if not same:
        raise SystemExit("the results differ from the textbook's: no speed to claim")
    slow, unstable, fast, easy, product = [], [], [], [], []
    for _ in range(REPEATS):
        slow.append(seconds(lambda: textbook(data)))
        fast.append(seconds(lambda: ours(data)))
        unstable.append(seconds(lambda: textbook(data, "quicksort")))
        easy.append(seconds(lambda: ours(trained)))
        product.append(seconds(lambda: sum(1 for _ in similarity_rows(data))))
    ratio = min(slow) / min(fast)
    working, buffer = peak_megabytes(data)
    print(f"{QUERIES:,} queries x {GALLERY:,} gallery, D={DIMENSIONS}, CPU seconds on one thread, best of {REPEATS}")
    print(f"textbook loop, stable sort:       {min(slow):7.3f} s")
    print(f"textbook loop, unstable sort:     {min(unstable):7.3f} s (ties in any order; not equal by rule)")
    print(f"veilkit, random features:         {min(fast):7.3f} s")
    print(f"veilkit, well separated features: {min(easy):7.3f} s")
    print(f"similarities alone, in all above: {min(product):7.3f} s")
    print(f"equal results; ratio {ratio:.1f}x (against the unstable sort {min(unstable) / min(fast):.1f}x)")
    print(f"peak extra memory of veilkit: {working + buffer:.1f} MB, of which the similarities {buffer:.1f} MB")
    record(
        id="retrieval-speed",
        claim="Retrieval metrics at Market-1501's size against the textbook per-query loop, equal results",
        figure=round(ratio, 1),
        bar=">= 10",
        unit="x",
        data="random features, 751 identities, 6 cameras, a third distractors",
        scale=f"{QUERIES} x {GALLERY}, D={DIMENSIONS}, one thread",
        seed=SEED,
        command="python benchmarks/retrieval_speed.py",
        note=f"similarities included in both times; {min(slow):.2f} s against {min(fast):.2f} s, "
        f"{working + buffer:.0f} MB extra; against a loop with an unstable sort {min(unstable) / min(fast):.1f}x",
    )


if __name__ == "__main__":
    main()

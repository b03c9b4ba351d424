from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from veilkit.errors import ConfigError, DataError
from veilkit.metrics import RetrievalResult, retrieval


def textbook(similarities, query_ids, gallery_ids, query_cams=None, gallery_cams=None, own=None):
    """One query at a time, over a sorted list of plain numbers."""
    found = []
    for q, row in enumerate(similarities):
        entries = [
            (-float(s), g)
            for g, s in enumerate(row)
            if not (query_cams is not None and gallery_ids[g] == query_ids[q] and gallery_cams[g] == query_cams[q])
            and not (own is not None and g == own[q])
        ]
        hits = [gallery_ids[g] == query_ids[q] for _, g in sorted(entries)]
        ranks = [place for place, hit in enumerate(hits, start=1) if hit]
        precisions = [nth / rank for nth, rank in enumerate(ranks, start=1)]
        if ranks:
            found.append((sum(precisions) / len(ranks), ranks[0], len(ranks) / ranks[-1]))
        else:
            found.append(None)
    return found


def assert_equal(result: RetrievalResult, expected) -> None:
    assert result.valid.tolist() == [e is not None for e in expected]
    kept = [e for e in expected if e is not None]
    assert result.valid_count == len(kept)
    assert result.first_match_rank[result.valid].tolist() == [e[1] for e in kept]
    np.testing.assert_allclose(result.average_precision[result.valid], [e[0] for e in kept], rtol=1e-12)
    np.testing.assert_allclose(result.inverse_negative_penalty[result.valid], [e[2] for e in kept], rtol=1e-12)
    assert result.mean_ap == pytest.approx(np.mean([e[0] for e in kept]), rel=1e-12)
    assert result.minp == pytest.approx(np.mean([e[2] for e in kept]), rel=1e-12)
    for k in (1, 2, 5):
        assert result.rank(k) == pytest.approx(np.mean([e[1] <= k for e in kept]), rel=1e-12)
    assert np.isnan(result.average_precision[~result.valid]).all()
    assert np.isnan(result.hits(1)[~result.valid]).all()


@given(
    seed=st.integers(0, 2**32 - 1),
    queries=st.integers(1, 6),
    entries=st.integers(1, 40),
    levels=st.sampled_from([1, 2, 5, 1000]),
    people=st.integers(1, 5),
    cameras=st.sampled_from([None, 1, 3]),
    with_own=st.booleans(),
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_equals_the_textbook_loop_with_ties(seed, queries, entries, levels, people, cameras, with_own):
    rng = np.random.default_rng(seed)
    similarities = rng.integers(0, levels, (queries, entries)).astype(np.float32)
    query_ids, gallery_ids = rng.integers(0, people, queries), rng.integers(0, people, entries)
    cams = (None, None) if cameras is None else (rng.integers(0, cameras, queries), rng.integers(0, cameras, entries))
    own = rng.integers(-1, entries, queries) if with_own else None
    expected = textbook(similarities, query_ids, gallery_ids, *cams, own)
    gallery = similarities.T.copy()  # one axis for each query: products with the unit vectors are the similarities
    search = (np.eye(queries), gallery, query_ids, gallery_ids, *cams)
    if any(e is not None for e in expected):
        assert_equal(retrieval(*search, own_index=own, normalise=False), expected)
    else:
        with pytest.raises(DataError, match="queries has a match"):
            retrieval(*search, own_index=own, normalise=False)
    assert (gallery == similarities.T).all()


@pytest.mark.parametrize("chunk", [1, 7, 30, 1000])
def test_features_in_chunks_equal_the_textbook_loop(chunk):
    # Small whole numbers multiply exactly in float32, so that ties are real and no chunk can change a bit.
    rng = np.random.default_rng(3)
    query, gallery = rng.integers(-3, 4, (30, 8)), rng.integers(-3, 4, (200, 8))
    labels = (rng.integers(0, 12, 30), rng.integers(0, 12, 200), rng.integers(0, 3, 30), rng.integers(0, 3, 200))
    result = retrieval(query, gallery, *labels, normalise=False, chunk=chunk)
    assert_equal(result, textbook(query @ gallery.T, *labels))


@pytest.mark.parametrize("separation", [0.0, 0.3, 2.0])
def test_average_precision_is_that_of_sklearn(separation):
    # From hopeless to perfect features: both ways of picking rivals are used.
    rng = np.random.default_rng(5)
    centres = separation * rng.normal(size=(20, 32))
    query_ids, gallery_ids = np.arange(20), rng.integers(0, 20, 600)
    query, gallery = (centres[ids] + rng.normal(size=(len(ids), 32)) for ids in (query_ids, gallery_ids))
    result = retrieval(query, gallery, query_ids, gallery_ids)
    cosine = (query / np.linalg.norm(query, axis=1)[:, None]) @ (gallery / np.linalg.norm(gallery, axis=1)[:, None]).T
    expected = [average_precision_score(gallery_ids == q, row) for q, row in zip(query_ids, cosine, strict=True)]
    np.testing.assert_allclose(result.average_precision, expected, rtol=1e-6)


def test_lengths_of_features_do_not_matter_unless_asked():
    rng = np.random.default_rng(6)
    query, gallery = rng.normal(size=(10, 6)).astype(np.float32), rng.normal(size=(50, 6)).astype(np.float32)
    ids = (rng.integers(0, 4, 10), rng.integers(0, 4, 50))
    powers = 2.0 ** rng.integers(-60, 60, (50, 1))  # exact in float32, beyond the range of its squares
    plain, scaled = retrieval(query, gallery, *ids), retrieval(query, gallery * powers, *ids)
    assert plain.mean_ap == scaled.mean_ap
    assert plain.mean_ap != retrieval(query, gallery * powers, *ids, normalise=False).mean_ap


def test_plain_folder_where_each_image_queries_the_rest():
    rng = np.random.default_rng(7)
    ids = np.repeat(np.arange(8), 4)
    features = np.eye(8)[ids] + 0.01 * rng.normal(size=(32, 8))
    own = np.arange(32)
    alone = retrieval(features, features, ids, ids, own_index=own)
    assert alone.mean_ap == alone.rank(1) == alone.minp == 1.0
    # Without the exclusion an image finds itself even where nothing else of its person is near.
    noise = rng.normal(size=(32, 8))
    assert retrieval(noise, noise, ids, ids).rank(1) == 1.0
    assert retrieval(noise, noise, ids, ids, own_index=own).rank(1) < 0.5


def test_a_protection_that_rotates_features_serves_itself_and_links_nothing():
    rng = np.random.default_rng(1)
    ids, own = np.repeat(np.arange(30), 4), np.arange(120)
    raw = rng.normal(size=(30, 64))[ids] + 0.1 * rng.normal(size=(120, 64))
    rotated = raw @ np.linalg.qr(rng.normal(size=(64, 64)))[0]
    for query, gallery, low, high in (
        (raw, raw, 1, 1),
        (rotated, rotated, 1, 1),
        (raw, rotated, 0, 0.2),
        (rotated, raw, 0, 0.2),
    ):
        assert low <= retrieval(query, gallery, ids, ids, own_index=own).rank(1) <= high


def test_tensors_and_read_only_arrays_are_taken():
    query, gallery = torch.eye(3, requires_grad=True), np.eye(3, dtype=np.float32)
    gallery.flags.writeable = False
    assert retrieval(query, gallery, torch.arange(3), np.arange(3), normalise=False).rank(1) == 1.0
    assert retrieval(torch.eye(3, dtype=torch.bfloat16), gallery, torch.arange(3), np.arange(3)).rank(1) == 1.0


def test_all_zero_features_give_a_defined_result():
    found = retrieval(np.zeros((1, 2)), np.ones((3, 2)), [1], [0, 1, 0])
    assert found.first_match_rank.tolist() == [2]  # all tie, the gallery's order decides


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": np.ones((2, 3))}, "one model"),
        ({"query": np.ones(2)}, "two dimensions"),
        ({"gallery": np.full((3, 2), np.nan)}, "NaN"),
        ({"query_identities": [0]}, r"shape \(2,\)"),
        ({"gallery_identities": [0.5, 1.0, 2.0]}, "whole numbers"),
        ({"query_cameras": [0, 1]}, "or for neither"),
        ({"own_index": [0, 3]}, "below 3"),
        ({"own_index": [-2, 0]}, "-1 for none"),
        ({"gallery_identities": [7, 8, 9]}, "number them alike"),
    ],
)
def test_bad_data_is_explained(change, message):
    good = {
        "query": np.ones((2, 2)),
        "gallery": np.ones((3, 2)),
        "query_identities": [0, 1],
        "gallery_identities": [0, 1, 1],
    }
    with pytest.raises(DataError, match=message):
        retrieval(**(good | change))


def test_bad_parameters_are_explained():
    with pytest.raises(ConfigError, match="chunk"):
        retrieval(np.ones((1, 2)), np.ones((1, 2)), [0], [0], chunk=0)
    with pytest.raises(ConfigError, match="k must"):
        retrieval(np.ones((1, 2)), np.ones((1, 2)), [0], [0]).rank(0)

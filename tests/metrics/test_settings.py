from __future__ import annotations

import numpy as np

from veilkit.metrics import four_settings, retrieval


def test_names_say_query_then_gallery():
    rng = np.random.default_rng(0)
    raw_query, protected_query, raw_gallery, protected_gallery = (rng.normal(size=(n, 16)) for n in (20, 20, 90, 90))
    labels = (rng.integers(0, 6, 20), rng.integers(0, 6, 90), rng.integers(0, 2, 20), rng.integers(0, 2, 90))
    found = four_settings(raw_query, protected_query, raw_gallery, protected_gallery, *labels)
    expected = {
        "raw-raw": (raw_query, raw_gallery),
        "raw-protected": (raw_query, protected_gallery),
        "protected-raw": (protected_query, raw_gallery),
        "protected-protected": (protected_query, protected_gallery),
    }
    assert list(found) == list(expected)
    assert len({result.mean_ap for result in found.values()}) == 4
    for name, (query, gallery) in expected.items():
        assert found[name].mean_ap == retrieval(query, gallery, *labels).mean_ap


def test_a_protection_that_rotates_features_serves_itself_and_links_nothing():
    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(30), 4)
    raw = rng.normal(size=(30, 64))[ids] + 0.1 * rng.normal(size=(120, 64))
    rotation = np.linalg.qr(rng.normal(size=(64, 64)))[0]
    protected = raw @ rotation
    own = np.arange(120)
    found = four_settings(raw, protected, raw, protected, ids, ids, own_index=own)
    assert found["raw-raw"].rank(1) == found["protected-protected"].rank(1) == 1.0
    assert max(found["raw-protected"].rank(1), found["protected-raw"].rank(1)) < 0.2

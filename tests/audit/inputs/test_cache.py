from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from veilkit.audit.inputs.cache import Cache
from veilkit.errors import DestinationError


def test_vectors_come_back_by_kind_and_subject(tmp_path: Path) -> None:
    rows = [(f"s{index}", np.full(3, index, dtype=np.float32)) for index in range(1200)]
    with Cache(tmp_path / "deep" / "cache.sqlite") as cache:
        cache.put("a", rows)
        cache.put("b", [("s0", np.array([9.0], dtype=np.float32))])
    with Cache(tmp_path / "deep" / "cache.sqlite") as cache:
        found = cache.get("a", [subject for subject, _ in rows] + ["unknown"])
        assert len(found) == 1200
        assert all(np.array_equal(found[subject], vector) for subject, vector in rows)
        assert cache.get("b", ["s0"])["s0"][0] == 9.0
        assert cache.get("c", ["s0"]) == {}


def test_a_file_that_is_no_cache_is_told(tmp_path: Path) -> None:
    (tmp_path / "cache.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(DestinationError, match="cannot be used"), Cache(tmp_path / "cache.sqlite"):
        pass

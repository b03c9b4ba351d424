"""Killed at any moment, an add neither loses nor charges twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.gallery import killed_adds as script
from veilkit.gallery import Gallery


@pytest.fixture
def folder(tmp_path: Path, url: str | None) -> Path:
    subprocess.run([sys.executable, script.__file__, str(tmp_path), *([url] if url else [])], check=True, timeout=400)
    return tmp_path


# What was paid for and what was stored when the process died, in batches.
LEFT = {"charging": (2.0, 2.0), "charged": (3.0, 2.0), "storing": (3.0, 2.35), "stored": (3.0, 3.0)}


def test_a_killed_add_loses_nothing_and_charges_nothing_twice(folder: Path) -> None:
    assert tuple(LEFT) == script.POINTS
    for point, (charged, stored) in LEFT.items():
        with Gallery.open(folder / point) as gallery:
            before = gallery.budget()
            assert (before.in_ledger, before.in_store) == (charged * script.BATCH, stored * script.BATCH), point
            done = gallery.add(script.features(), records=script.RECORDS, cameras=["c1"] * script.COUNT)
            assert done.resumed == before.missing, point
            assert done.kept == before.in_ledger, point
            after = gallery.budget()
            assert after.agree, point
            assert after.in_store == script.COUNT, point
            assert [(level.releases, level.count) for level in after.levels] == [(1, script.COUNT)], point
            (hits,) = gallery.search(script.features()[:1], limit=script.COUNT, cameras=["c1"])
            assert len(hits) == script.COUNT, f"{point}: all have their camera"
            gallery._store.drop()
    kills = [int(line) for line in (folder / "kills").read_text().split()]
    assert len(kills) == script.KILLS
    assert kills[0] < script.COUNT, "killed before all was there"
    with Gallery.open(folder / "often") as gallery:
        told = gallery.budget()
        assert (told.agree, told.in_store, told.spent) == (True, script.COUNT, script.EPSILON)
        assert [(level.releases, level.count) for level in told.levels] == [(1, script.COUNT)]
        gallery._store.drop()

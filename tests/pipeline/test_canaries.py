"""Nothing of an original but its visible pixels reaches a release (benchmarks/canaries.py on fewer pictures)."""

from __future__ import annotations

from pathlib import Path

import canaries


def test_no_canary_is_found_by_a_search_that_finds_them_all_in_a_copy(tmp_path: Path) -> None:
    planted = canaries.plant(tmp_path / "source", 15, refused=3)
    assert canaries.detector_misses(tmp_path / "source", planted, tmp_path) == []
    method, settings = canaries.METHODS[0]
    search = canaries.measure(tmp_path / "source", planted, tmp_path / "work", method, settings, workers=1)
    assert search.found == set()
    assert search.leftovers == []
    assert search.protected == 15
    assert "3 pictures refused" in search.output
    # Words in plain sight pass through this method: had hidden pixels survived, they would have been found too.
    assert search.visible == len(planted.visible) == 12


def test_the_search_knows_every_encoding() -> None:
    word = "Zx81qPfm20LwEk7T"
    for number, pattern in enumerate(canaries.encodings(word)):
        assert canaries.hits(iter([("here", b"..." + pattern + b"...")]), [word]) == {("here", word)}, number
    assert canaries.hits(iter([("here", b"Zx81qPfm20LwEk7" * 3)]), [word]) == set()

"""The same key, the same bytes (benchmarks/determinism.py on fewer pictures)."""

from __future__ import annotations

from pathlib import Path

import pytest

import determinism
from pictures import write_folder
from veilkit.methods import METHODS

PAIRED = {name: METHODS[name] for name in determinism.quick_methods()}  # the others: tests/conformance


@pytest.mark.parametrize("method", PAIRED)
def test_order_and_place_do_not_matter(tmp_path: Path, method: str) -> None:
    write_folder(tmp_path / "source", 18, height=32, width=16)
    assert determinism.differing(tmp_path / "source", tmp_path / "work", method, workers=()) == set()


@pytest.mark.parametrize("method", ["noise", "patches"])
def test_the_number_of_workers_does_not_matter(tmp_path: Path, method: str) -> None:
    write_folder(tmp_path / "source", 18, height=32, width=16)
    assert determinism.differing(tmp_path / "source", tmp_path / "work", method, workers=(2,)) == set()


# k-same draws among faces, of which these pictures have none: tests/conformance has its releases.
DRAWS = [name for name, method in PAIRED.items() if method.random and name != "ksame"]


@pytest.mark.parametrize("method", DRAWS)
def test_another_key_changes_the_pictures(tmp_path: Path, method: str) -> None:
    """All of them, but for mix-up, which draws only partners: some of 40 may get the same one again."""
    write_folder(tmp_path / "source", 40, height=32, width=16)
    share = determinism.changed_by_key(tmp_path / "source", tmp_path / "work", method)
    assert share >= 0.7 if method == "mixup" else share == 1


@pytest.mark.parametrize("method", [name for name, method in PAIRED.items() if not method.random])
def test_a_method_that_draws_nothing_does_not_depend_on_the_key(tmp_path: Path, method: str) -> None:
    write_folder(tmp_path / "source", 6, height=32, width=16)
    assert determinism.changed_by_key(tmp_path / "source", tmp_path / "work", method) == 0

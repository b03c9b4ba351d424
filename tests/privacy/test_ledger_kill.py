"""A crash at any moment neither loses a charge nor charges twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.privacy import killed_releases as script
from veilkit.privacy import Ledger


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    subprocess.run([sys.executable, script.__file__, str(folder)], check=True, timeout=300)
    return folder


def published(folder: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in (folder / "published").read_text().splitlines():
        record, vector = line.split()
        if len(vector) == script.DIGITS:  # else it was killed in the middle of the line
            found.setdefault(record, set()).add(vector)
    return found


def test_killed_while_noise_is_drawn_nothing_is_charged_and_nothing_was_handed_out(folder: Path) -> None:
    assert not (folder / "before" / "published").exists()
    with Ledger(folder / "before" / "ledger") as ledger:
        assert len(ledger) == 0
        assert ledger.spent("0").epsilon == 0.0


def test_killed_after_the_charge_the_same_vectors_are_given_later_and_cost_nothing_more(folder: Path) -> None:
    assert not (folder / "after" / "published").exists()
    with Ledger(folder / "after" / "ledger") as ledger:
        assert ledger.spent("0").epsilon == script.EACH * script.EPSILON
        assert len(ledger) == script.EACH
    script.publish(folder / "after")
    assert len(published(folder / "after")) == script.PEOPLE * script.EACH
    with Ledger(folder / "after" / "ledger") as ledger:
        assert ledger.spent("0").releases == script.EACH


def test_killed_many_times_every_record_was_charged_once_and_published_as_one_vector(folder: Path) -> None:
    kills = [int(line) for line in (folder / "often" / "kills").read_text().split()]
    assert len(kills) == script.KILLS
    assert kills[0] < script.PEOPLE * script.EACH, "killed before all was published"
    found = published(folder / "often")
    assert len(found) == script.PEOPLE * script.EACH
    assert all(len(vectors) == 1 for vectors in found.values())
    with Ledger(folder / "often" / "ledger") as ledger:
        assert len(ledger) == script.PEOPLE * script.EACH
        worst = ledger.worst()
        assert worst is not None
        assert worst.epsilon == script.EACH * script.EPSILON

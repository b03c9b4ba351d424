"""Protected minus raw, search by search."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.audit.folders import changed, noise, plain, same
from veilkit.audit import read_audit, run_audit
from veilkit.audit.cells.differences import all_alike, paired_differences
from veilkit.audit.result import DIFFERENCE
from veilkit.audit.verdicts.findings import points
from veilkit.metrics import RetrievalResult, clopper_pearson
from veilkit.rng import Randomness
from veilkit.types import Role

RNG = Randomness.from_seed(0)
PEOPLE = np.repeat(np.arange(60), np.random.default_rng(0).integers(1, 5, 60))


def found(precision: np.ndarray, first: np.ndarray) -> RetrievalResult:
    valid = first > 0
    return RetrievalResult(np.where(valid, precision, np.nan), first, np.where(valid, precision, np.nan), valid)


def two_searches() -> tuple[RetrievalResult, RetrievalResult]:
    """Protected and raw: hard queries are hard in both, and protection moves some right answers to second place."""
    random = np.random.default_rng(1)
    raw = random.integers(1, 4, len(PEOPLE))
    protected = raw + (random.random(len(PEOPLE)) < 0.4)
    raw[:3] = protected[:3] = 0
    return found(1 / np.maximum(protected, 1), protected), found(1 / np.maximum(raw, 1), raw)


def test_the_interval_is_that_of_a_bootstrap_of_people_done_by_hand() -> None:
    protected, raw = two_searches()
    measured = paired_differences("expert", protected, raw, PEOPLE, role=Role.UTILITY, rng=RNG)
    valid = raw.valid
    rows = {
        "rank-1": protected.hits(1)[valid] - raw.hits(1)[valid],
        "mAP": protected.average_precision[valid] - raw.average_precision[valid],
    }
    assert [m.score.metric for m in measured] == list(rows)
    random = np.random.default_rng(5)
    members = [np.flatnonzero(PEOPLE[valid] == person) for person in np.unique(PEOPLE[valid])]
    for measurement in measured:
        change, score = rows[measurement.score.metric], measurement.score
        drawn = [
            change[np.concatenate([members[i] for i in random.integers(0, len(members), len(members))])].mean()
            for _ in range(4000)
        ]
        assert score.value == pytest.approx(change.mean())
        assert score.low == pytest.approx(np.quantile(drawn, 0.025), abs=0.02)
        assert score.high == pytest.approx(np.quantile(drawn, 0.975), abs=0.02)
        assert score.low < score.value < score.high < 0
        assert (measurement.by, measurement.setting, measurement.chance) == ("expert", DIFFERENCE, None)


def test_a_loss_is_bad_for_utility_and_good_for_privacy() -> None:
    scores = {
        by: paired_differences(by, *two_searches(), PEOPLE, role=role, rng=RNG)[0].score
        for by, role in (("expert", Role.UTILITY), ("judge", Role.PRIVACY))
    }
    assert scores["expert"].higher_is_better
    assert not scores["judge"].higher_is_better
    assert scores["expert"].value == scores["judge"].value


def test_the_same_change_for_everybody_still_has_an_interval() -> None:
    share = clopper_pearson(0, 60).high
    assert all_alike(0.0, 60) == (pytest.approx(-share), pytest.approx(share))
    assert all_alike(-1.0, 60) == (pytest.approx(-1.0), pytest.approx(2 * share - 1))
    assert all_alike(1.0, 60) == (pytest.approx(1 - 2 * share), pytest.approx(1.0))
    protected, _ = two_searches()
    score = paired_differences("judge", protected, protected, PEOPLE, role=Role.PRIVACY, rng=RNG)[0].score
    assert score.value == 0.0
    assert score.low < 0.0 < score.high


def test_queries_of_one_person_have_no_interval() -> None:
    protected, raw = two_searches()
    score = paired_differences("judge", protected, raw, np.zeros_like(PEOPLE), role=Role.PRIVACY, rng=RNG)[0].score
    assert (score.low, score.high) == (None, None)
    assert "one person only" in score.note


def test_an_audit_holds_and_shows_the_difference(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=12)
    run_audit(originals, changed(originals, tmp_path / "p", noise), expert="histogram", judge="histogram")
    result = read_audit(tmp_path / "p.audit" / "audit.json")
    report = (tmp_path / "p.audit" / "report.html").read_text()
    rows = re.findall(r'<th scope="row">protected minus raw.*?</tr>', report, re.S)
    assert len(rows) == 2
    for by, role, row in (("expert", Role.UTILITY, rows[0]), ("judge", Role.PRIVACY, rows[1])):
        for metric in ("rank-1", "mAP"):
            change, protected, raw = (
                result.score(by, setting, metric) for setting in (DIFFERENCE, "protected-protected", "raw-raw")
            )
            assert change.value == pytest.approx(protected.value - raw.value)
            assert change.role is role
            assert change.low <= change.value <= change.high
            assert f"<strong>{points(change.value)}</strong>" in row
            assert f"{points(change.low)} to {points(change.high)}" in row
        assert ("utility lost" in row) == (role is Role.UTILITY)
    change = result.score("expert", DIFFERENCE, "rank-1")
    assert change.value < 0
    (finding,) = [each for each in result.summary if each.role is Role.UTILITY]
    assert f"a change of {points(change.value)} points" in finding.text


def test_without_protection_nothing_changes_and_without_pairs_nothing_is_compared(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=6)
    result = run_audit(originals, changed(originals, tmp_path / "p", same), expert="histogram", judge="histogram")
    for metric in ("rank-1", "mAP"):
        change = result.score("judge", DIFFERENCE, metric)
        assert change.value == 0.0
        assert change.low < 0.0 < change.high
    others = plain(tmp_path / "others", people=6)
    for file in sorted(others.rglob("*.png")):
        file.rename(file.with_name(f"new{file.name}"))
    others = others.rename(tmp_path / "unpaired")
    for folder in sorted(others.iterdir()):
        folder.rename(folder.with_name(f"q{folder.name}"))
    unpaired = run_audit(originals, others, expert="histogram", judge="histogram")
    assert unpaired.score("judge", "protected-protected", "rank-1") is not None
    assert unpaired.score("judge", DIFFERENCE, "rank-1") is None
    assert "protected minus raw" not in (tmp_path / "unpaired.audit" / "report.html").read_text()

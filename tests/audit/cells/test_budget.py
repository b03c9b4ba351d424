"""From a time to a budget, by a rule that can be worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.audit.folders import blur, changed, plain
from veilkit.audit import run_audit
from veilkit.audit.cells.budget import Costs, choose, dear_among, learners_among
from veilkit.audit.cells.prepared import SMALL_BUDGET
from veilkit.audit.options import seconds_of
from veilkit.audit.report.model import rests_on
from veilkit.audit.verdicts.remedies import needed
from veilkit.errors import UsageError


def test_times_are_read() -> None:
    assert [seconds_of(text) for text in ("90s", "10m", "2h", "1h30m", "0.5h")] == [90, 600, 7200, 5400, 1800]
    for wrong in ("10", "ten", "10m!", "", "0m", "-5m"):
        with pytest.raises(UsageError, match="budget"):
            seconds_of(wrong)


def test_everything_is_measured_where_there_is_time() -> None:
    found = choose(600, Costs(0.01, 0.1), pictures=1000, people=100, learners=4)
    assert found.people is None
    assert found.pictures == 1000
    assert found.updates == 300  # 0.6 x 600 s, of 4 x 3 trainings, at 0.1 s
    assert "all 1000 pictures" in found.why
    assert "300 updates" in found.why


def test_who_trains_a_whole_recogniser_pays_for_it_alone() -> None:
    found = choose(600, Costs(0.01, 0.1, 0.4), pictures=1000, people=100, learners=4, dear=1)
    assert found.updates == 171  # 0.6 x 600 s, of 3 trainings, at 3 x 0.1 + 0.4 s
    assert "0.4 s where it goes through a whole recogniser" in found.why
    assert choose(600, Costs(0.01, 0.1, 0.4), pictures=1000, people=100, learners=4).updates == 300
    few = choose(60, Costs(0.01, 0.1, 0.4), pictures=100, people=10, learners=4, dear=1)
    assert few.updates == 0
    assert "about 6m would be enough" in few.why  # 100 x 0.7 s x 3 / 0.6 are 350 s
    assert dear_among(frozenset({"recovery", "retrained", "feature_matching"})) == 2
    assert dear_among(frozenset({"recovery", "feature_matching"}), paired=False) == 0


def test_fewer_people_and_nobody_who_learns_where_there_is_not() -> None:
    found = choose(60, Costs(0.1, 0.5), pictures=1000, people=100, learners=4)
    assert found.people == 8  # 0.3 x 60 s pay for 45 pictures seen four times, 4 people; at least 8 are needed
    assert found.updates == 0
    assert found.budget(0) is None
    assert "left out" in found.why
    assert choose(600, Costs(0.1, 0.5), pictures=1000, people=100, learners=4).people == 45
    assert choose(1e9, Costs(0.1, 0.5), pictures=10, people=5, learners=4).updates == 20_000
    assert choose(1e-6, Costs(0.1, 0.5), pictures=10, people=None, learners=0).people is None


def test_attackers_who_learn_are_counted_as_asked_for() -> None:
    assert learners_among(frozenset({"linkage", "recovery", "averaging"})) == 1
    asked = frozenset({"linkage", "recovery", "identification"})
    assert learners_among(frozenset({"averaging"}), runs_again=True) == 1
    assert learners_among(frozenset({"averaging", "identity_inversion"}), runs_again=True) == 1
    assert learners_among(frozenset({"averaging", "identity_inversion"}), runs_again=True, identity=True) == 2
    assert learners_among(asked) == 2
    assert learners_among(asked, paired=False) == 1  # who names people by examples needs no originals


def test_the_choice_is_told_kept_and_taken_up_again(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=10)
    release = changed(originals, tmp_path / "p", blur)
    options = {"expert": "histogram", "judge": "histogram", "attacks": ["linkage", "identification"]}
    first = run_audit(originals, release, out=tmp_path / "a", budget="1h", **options)
    chosen = first.config["budget"]
    assert chosen["seconds"] == 3600
    assert chosen["costs"]["update"] > 0
    assert "updates" in chosen["why"]
    evidence = first.evidence("identification")
    assert evidence is not None
    assert evidence.applicable
    assert rests_on(first)["Attacks"].endswith(f"; learners had {chosen['updates']:,} updates")
    kept = json.loads((tmp_path / "a" / "cells" / "budget.json").read_text())
    assert kept["result"] == chosen
    assert run_audit(originals, release, out=tmp_path / "a", budget="1h", **options) == first  # not measured again


def test_a_budget_lets_attackers_learn_who_need_no_originals(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=10)
    release = changed(originals, tmp_path / "p", blur)
    for place, file in enumerate(sorted(release.rglob("*.png"))):
        file.rename(file.with_name(f"{place}x.png"))
    options = {"expert": "histogram", "judge": "histogram", "attacks": ["identification"]}
    result = run_audit(originals, release, out=tmp_path / "a", budget="1h", **options)
    assert result.paired_by == "not at all"
    evidence = result.evidence("identification")
    assert evidence is not None
    assert evidence.applicable


def test_a_small_budget_measures_fewer_people_and_says_so(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=12)
    release = changed(originals, tmp_path / "p", blur)
    result = run_audit(originals, release, expert="histogram", judge="histogram", budget="0.001s", out=tmp_path / "a")
    assert (result.people, result.pictures) == (8, 24)
    assert any("8 of 12 people, drawn at random, are measured: 24 of 36 pictures" in note for note in result.notes)
    missing = next(each for each in result.unmeasured if each.what.startswith("attackers who learn"))
    assert "the budget is too small for them" in missing.why
    assert "averaging" not in missing.what  # no budget would let it be made
    assert any(each.what == "attack averaging" and "run again" in each.why for each in result.unmeasured)
    said = [each.why_missing for each in result.attacks] + [each.text for each in result.verdicts]
    assert not any("no budget" in each for each in said)
    assert "the budget is too small" in result.verdicts[2].not_attacked["retrained"]
    assert "a longer --budget" in needed(result.verdicts)
    decoder = result.evidence("feature_decoder")
    assert decoder is not None
    assert decoder.missing == (SMALL_BUDGET,)  # the authorised recogniser is at hand
    assert rests_on(result)["Attacks"].endswith("; no attacker learned")
    assert "is measured anew" in (tmp_path / "a" / "report.html").read_text()
    with pytest.raises(UsageError, match="not both"):
        run_audit(originals, release, expert="histogram", budget="1m", learn=3, out=tmp_path / "a")

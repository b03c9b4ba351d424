"""Comparisons whose outcome is known."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.audit.folders import blur, changed, plain, same
from tests.audit.pages import check_page
from tests.audit.results import attacked, result_of
from veilkit.audit import run_audit
from veilkit.audit.report.compare_report import as_html, as_json, as_markdown, leak, write_comparison
from veilkit.audit.report.comparison import compare, read_audits
from veilkit.audit.report.plane import pareto_front
from veilkit.audit.verdicts.verdict import Grade, Thresholds
from veilkit.cli import app
from veilkit.errors import DataError, DestinationError, UsageError
from veilkit.types import Level, Reason, ReasonCode


def test_the_front_of_a_hand_worked_case() -> None:
    points = [(0.9, 0.8), (0.7, 0.3), (0.7, 0.4), (0.5, 0.3), (0.2, 0.0), (0.9, 0.9), (0.7, 0.3)]
    assert pareto_front(points) == (4, 1, 6, 0)  # equal points both stay
    assert pareto_front([]) == ()
    assert pareto_front([(0.1, 0.9)]) == (0,)


def test_the_front_beats_all_else_and_none_of_its_own() -> None:
    points = [tuple(map(float, row)) for row in np.random.default_rng(0).integers(0, 6, (40, 2))]
    front = set(pareto_front(points))  # type: ignore[arg-type]
    for one, other in itertools.permutations(range(len(points)), 2):
        better = points[other][0] >= points[one][0] and points[other][1] <= points[one][1]
        if one in front:
            assert not better or points[other] == points[one]
    for beaten in set(range(len(points))) - front:
        assert any(points[f][0] >= points[beaten][0] and points[f][1] <= points[beaten][1] for f in front)


def three() -> list:
    return [
        ("raw", result_of(attacked("own_original", Level.L0, 0.9, 0.8, 1.0), utility=0.8, hits=(2, 1, 3))),
        ("good", result_of(attacked("own_original", Level.L0, 0.1, 0.06, 0.2), utility=0.7, hits=(1, 1, 3))),
        (
            "bad",
            result_of(
                attacked("own_original", Level.L0, 0.5, 0.4, 0.6),
                attacked("recovery", Level.L1, 0.9, 0.8, 1.0),
                utility=0.6,
                hits=(0, 1, 3),
            ),
        ),
    ]


def test_releases_are_compared_by_what_all_were_attacked_with() -> None:
    found = compare(three())
    l0, l1, *_ = found.levels
    assert l0.attacks == ("own_original",)
    assert l0.front == ("2", "1")
    assert l1.attacks == ()
    assert l1.left_out == ("recovery",)
    assert l1.worst == {}
    assert found.audits[1].differences["utility"].value == pytest.approx(-1 / 6)
    assert found.audits[2].differences["utility"].value == pytest.approx(-2 / 6)
    assert [each.verdicts[0].grade for each in found.audits] == [Grade.BROKEN, Grade.SLIGHT, Grade.SERIOUS]
    harder = compare(three(), Thresholds(serious=0.01, broken=0.04))
    assert [each.verdicts[0].grade for each in harder.audits] == [Grade.BROKEN] * 3


def test_other_originals_or_another_judge_are_not_comparable() -> None:
    own = attacked("own_original", Level.L0, 0.1, 0.06, 0.2)
    found = compare([
        ("a", result_of(own)), ("b", result_of(own, originals="9" * 64)), ("c", result_of(own, judge="8" * 64)),
        ("d", result_of(own, tallies=None)),
    ])  # fmt: skip
    assert [each.apart for each in found.audits] == [(), ("other originals",), ("another judge",), ()]
    assert not found.audits[1].differences
    assert set(found.levels[0].worst) == {"1", "4"}
    for told in ("b is not comparable with a: other originals", "c is not comparable with a: another judge"):
        assert told in found.notes
        assert told in as_markdown(found)
    assert any(note.startswith("d is not compared search by search") for note in found.notes)


def test_where_pictures_are_missing_their_numbers_are_told() -> None:
    own = attacked("own_original", Level.L0, 0.1, 0.06, 0.2)
    whole, part = result_of(own), result_of(own, originals="9" * 64)
    part = dataclasses.replace(
        part, originals=dataclasses.replace(part.originals, pictures=whole.originals.pictures - 1)
    )
    (told,) = compare([("a", whole), ("b", part)]).audits[1].apart
    count = whole.originals.pictures
    assert told == f"other originals, or not all of them ({count} and {count - 1} pictures)"


def test_other_updates_are_told_however_they_were_chosen() -> None:
    own = attacked("own_original", Level.L0, 0.1, 0.06, 0.2)
    plain_config = result_of(own).config
    found = compare([
        ("a", result_of(own)),
        ("b", result_of(own, config={**plain_config, "budget": {"updates": 300}})),
        ("c", result_of(own, config={**plain_config, "budget": {"updates": 0}})),
    ])  # fmt: skip
    assert found.notes == ("b and a differ in the updates of attackers who learn: 300 and none",)
    later = compare([("b", found.audits[1].result), ("d", result_of(own, config={**plain_config, "learn": 300}))])
    assert later.notes == ()


def test_an_attack_without_a_known_chance_is_shown_all_the_same() -> None:
    odd = dataclasses.replace(attacked("averaging", Level.L1, 0.5, 0.4, 0.6), details={})
    page = as_html(compare([("a", result_of(odd)), ("b", result_of(odd))]))
    assert "averaging: 50.0\u00a0% (40.0–60.0)</span>" in page


def test_its_files_hold_the_same_and_stand_alone() -> None:
    found = compare(three())
    page = as_html(found)
    check_page(page)
    values = json.loads(as_json(found))
    assert [each["name"] for each in values["audits"]] == ["raw", "good", "bad"]
    assert values["levels"][0]["front"] == ["2", "1"]
    for text in (page.replace("\u00a0", " "), as_markdown(found)):
        assert "−16.7" in text  # of the searches that the second release still answers
        assert "on the front" in text
        assert "the exact (Clopper-Pearson) one" in text  # of few hits, as an audit's own table does not show
        assert "beaten" in text


def test_what_is_no_audit_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least two audits"):
        read_audits([tmp_path])
    with pytest.raises(DataError, match="there is no audit"):
        read_audits([tmp_path, tmp_path])
    broken = tmp_path / "broken.audit"
    broken.mkdir()
    (broken / "audit.json").write_text("{")
    with pytest.raises(DataError, match=r"broken\.audit/audit\.json is not an audit.*\(1 wrong field\)"):
        read_audits([broken, broken])


def test_a_comparison_that_cannot_be_written_is_told_plainly(tmp_path: Path) -> None:
    for name, result in three()[:2]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "audit.json").write_text(result.to_json())
    (tmp_path / "taken").write_text("")
    with pytest.raises(DestinationError, match=r"cannot be written to .*taken: File exists$"):
        write_comparison([tmp_path / "raw", tmp_path / "good"], tmp_path / "taken")


def test_its_help_says_whose_thresholds_are_used() -> None:
    shown = " ".join(CliRunner().invoke(app, ["audit", "compare", "--help"]).stdout.replace("│", " ").split())
    assert "[default: (those of the first audit)]" in shown
    assert "serious 0.1" not in shown


def test_the_command_by_both_of_its_names(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=5)
    for name, change in (("p", same), ("q", blur)):
        run_audit(originals, changed(originals, tmp_path / name, change), expert="histogram", judge="histogram")
    folders = [str(tmp_path / "p.audit"), str(tmp_path / "q.audit" / "audit.json")]
    outputs = []
    for number, words in enumerate((["audit", "compare"], ["compare"])):
        out = tmp_path / f"c{number}"
        done = CliRunner().invoke(app, [*words, *folders, "--out", str(out)])
        assert done.exit_code == 0, done.output
        assert "1. p (not stated): utility" in done.stdout
        assert "points" in done.stdout
        assert {file.name for file in out.iterdir()} == {"compare.html", "compare.json", "compare.md"}
        assert str(tmp_path) not in (out / "compare.html").read_text() + (out / "compare.json").read_text()
        outputs.append((out / "compare.json").read_text())
    assert outputs[0] == outputs[1]
    assert CliRunner().invoke(app, ["audit", "compare", folders[0]]).exit_code == 2


def test_audit_is_a_plain_command_as_before(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["audit", "--help"], env={"COLUMNS": "200"}).stdout
    assert "ORIGINALS" in shown
    assert "veilkit audit compare" in shown
    assert "audit compare" in CliRunner().invoke(app, ["audit", "compare", "--help"]).stdout
    originals = plain(tmp_path / "compare", people=4)  # a folder of that name is reached by a path
    release = changed(originals, tmp_path / "p", same)
    done = CliRunner().invoke(
        app,
        [
            "audit",
            str(originals),
            str(release),
            *["--expert", "histogram", "--judge", "histogram", "--budget", "none"],
        ],
    )
    assert done.exit_code == 0, done.output
    first, second, columns, worst = done.stdout.splitlines()[:4]
    assert first.startswith("ALARM (unchanged): 12 of 12")  # what no verdict says better comes before all of them
    assert second.endswith("12 pictures, 4 people; judge histogram, finds 100 % of the originals")
    assert columns.split()[:2] == ["level", "verdict"]
    assert worst.split()[:2] == ["L0", "BROKEN"]


def test_what_a_weak_attacker_found_is_shown_and_not_compared() -> None:
    gates = {"gates": {"metric": "rank-1", "on originals": 0.4}}
    weak = attacked(
        "recovery",
        Level.L1,
        0.3,
        0.2,
        0.4,
        invalid=(Reason(ReasonCode.NOT_TRAINED, "its training was stopped early"),),
    )
    weak = dataclasses.replace(weak, details={**weak.details, **gates})
    found = compare([("a", result_of(weak)), ("b", result_of(attacked("recovery", Level.L1, 0.1, 0.06, 0.2)))])
    assert leak(found.audits[0].attack("recovery")) == "at least 30.0 % (20.0–40.0)"
    assert found.levels[1].left_out == ("recovery",)


def test_releases_of_one_method_with_other_settings_are_told_apart_by_them() -> None:
    first, other, same_again = (
        (name, dataclasses.replace(result, release={"method": "blur", "config": {"sigma": sigma, "edge": 1}}))
        for (name, result), sigma in zip(three(), (4.0, 8.0, 4.0), strict=True)
    )
    notes = compare([first, other, same_again]).notes
    told = [note for note in notes if "with other settings" in note]
    assert told == [f"{other[0]} and {first[0]} were made by blur with other settings: sigma 8.0 and 4.0"]
    odd = (other[0], dataclasses.replace(other[1], release={"config": "none"}))
    assert not any("with other settings" in note for note in compare([first, odd]).notes)

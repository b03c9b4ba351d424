"""Folders to a study: who belongs to whom, where things are written, and the commands as a user gives them."""

from __future__ import annotations

import json
import shutil
import stat
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.audit.folders import blur, changed, market, plain, same
from tests.methods.tiny import tiny_fro
from tests.perception.studies import folders, make, page_data, sheet, truth
from veilkit.cli import app
from veilkit.errors import ConfigError, DataError, DestinationError, UsageError
from veilkit.perception import make_study
from veilkit.perception.key import read_study_key
from veilkit.perception.material import CONTROL, load_material
from veilkit.perception.plan import CHECK, Design
from veilkit.pipeline.protect import protect

SMALL = Design(questions=4, checks=2)


def test_page_and_key_lie_apart_and_the_key_is_its_owners_alone(tmp_path: Path) -> None:
    folders(tmp_path)
    made = make(tmp_path, design=SMALL, participants=3)
    assert made.page == tmp_path / "study" / "study.html"
    assert [file.name for file in made.page.parent.iterdir()] == ["study.html"]
    assert made.key == tmp_path / "study.private" / "key.json"
    assert stat.S_IMODE(made.key.stat().st_mode) == 0o600
    key = read_study_key(made.key)
    assert [condition.name for condition in key.conditions] == ["blurred", "noisy", CONTROL]
    assert Counter(q.condition for q in key.questions.values()) == {"blurred": 4, "noisy": 4, CONTROL: 4, CHECK: 2}
    assert made.questions == 12
    assert {q["code"] for q in page_data(made)["questions"]} == set(key.questions)
    assert made.codes is not None
    assert tuple(made.codes.read_text().split()) == key.participants
    assert len(set(key.participants or ())) == 3
    assert not any(code in made.page.read_text() for code in key.participants or ())


def test_nothing_is_overwritten_and_nothing_is_written_among_pictures(tmp_path: Path) -> None:
    folders(tmp_path)
    made = make(tmp_path, design=SMALL)
    before = made.page.read_bytes(), made.key.read_bytes()
    with pytest.raises(DestinationError, match="never overwritten"):
        make(tmp_path, design=SMALL)
    made.page.unlink()
    with pytest.raises(DestinationError, match=r"key\.json is already there"):
        make(tmp_path, design=SMALL)
    assert made.key.read_bytes() == before[1]
    with pytest.raises(UsageError, match="must lie apart"):
        make(tmp_path, "originals/study", design=SMALL)


def test_pseudonyms_are_resolved_by_the_key(tmp_path: Path) -> None:
    originals = plain(tmp_path / "originals", people=6)
    for name in ("one", "two"):
        protect(originals, tmp_path / name, "pixelate", key=tmp_path / f"{name}.key" / "key")
    places, keys = [tmp_path / "one", tmp_path / "two"], [tmp_path / f"{name}.key" / "key" for name in ("one", "two")]
    material = load_material(originals, places, keys=keys, labels="auto", control=True)
    for condition in material.conditions[:2]:
        assert condition.method == "pixelate"
        assert len(condition.pictures) == 18
        assert all(picture.own and picture.own.startswith(f"{picture.person}/") for picture in condition.pictures)
    with pytest.raises(DataError, match="no key was given"):
        make_study(originals, places, tmp_path / "s", design=SMALL)
    with pytest.raises(DataError, match="is not the one that this release was made with"):
        make_study(originals, places, tmp_path / "s", design=SMALL, keys=keys[:1])
    with pytest.raises(UsageError, match="one for each of the 2"):
        make_study(originals, places, tmp_path / "s", design=SMALL, keys=[*keys, *keys])
    assert make_study(originals, places, tmp_path / "s", design=SMALL, keys=keys).questions == 12


def test_classes_of_a_synthetic_release_are_people(tmp_path: Path) -> None:
    originals = plain(tmp_path / "originals", people=6, shots=2)
    tiny_fro([f"p{number}" for number in range(4)]).save(tmp_path / "pool.safetensors")
    protect(
        originals, tmp_path / "release", "fro", model=tmp_path / "pool.safetensors",
        settings={"group": 64, "assembly.steps": 1},
    )  # fmt: skip
    material = load_material(originals, [tmp_path / "release"], keys=[None], labels="auto", control=True)
    made = material.conditions[0]
    assert {picture.person for picture in made.pictures} == {"p0", "p1", "p2", "p3"}
    assert all(picture.own is None for picture in made.pictures)
    assert {picture.person for picture in material.originals} == {"p0", "p1", "p2", "p3"}
    shutil.rmtree(tmp_path / "release.private")
    with pytest.raises(DataError, match="whom the classes of release stand for"):
        load_material(originals, [tmp_path / "release"], keys=[None], labels="auto", control=True)


def test_a_foreign_release_by_person_is_told_by_its_labels(tmp_path: Path) -> None:
    originals = plain(tmp_path / "originals", people=4)
    release = changed(originals, tmp_path / "release", same)
    for number, file in enumerate(sorted(release.rglob("*.png"))):
        file.rename(file.with_name(f"made{number}.png"))
    made = make_study(originals, [release], tmp_path / "study", design=SMALL)
    assert any("labels of both folders" in note for note in made.notes)
    with pytest.raises(DataError, match="nothing in other could be paired"):
        make_study(originals, [_flat(release, tmp_path / "other")], tmp_path / "no", design=SMALL)


def test_the_manifest_of_another_tool_is_no_obstacle(tmp_path: Path) -> None:
    originals = plain(tmp_path / "originals", people=5)
    release = changed(originals, tmp_path / "release", blur)
    (release / "manifest.json").write_text("[]")
    made = make_study(originals, [release], tmp_path / "study", design=SMALL)
    assert any("manifest.json is not one that this version reads" in note for note in made.notes)


def _flat(source: Path, target: Path) -> Path:
    target.mkdir()
    for file in source.rglob("*.png"):
        shutil.copy(file, target / file.name)
    return target


def test_originals_without_labels_are_asked_for_themselves_without_a_control(tmp_path: Path) -> None:
    originals = _flat(plain(tmp_path / "people", people=5), tmp_path / "originals")
    made = make_study(originals, [changed(originals, tmp_path / "release", blur)], tmp_path / "study", design=SMALL)
    key = read_study_key(made.key)
    assert [condition.name for condition in key.conditions] == ["release"]
    notes = " ".join(made.notes)
    assert "each is taken for another person" in notes
    assert "no control" in notes
    assert "very own original" in notes


def test_market_cameras_count_and_distractors_do_not(tmp_path: Path) -> None:
    originals = market(tmp_path / "originals")
    extra = originals / "bounding_box_test"
    for name in ("0000_c1_9.png", "-1_c1_9.png", "0999_c1_9.png"):
        shutil.copy(extra / "0000_c2_1.png", extra / name)
    shutil.move(originals / "query" / "0000_c1_0.png", tmp_path)  # 0000 is now a distractor
    material = load_material(
        originals, [changed(originals, tmp_path / "release", blur)], keys=[None], labels="auto", control=True
    )
    people = {picture.person for picture in material.originals}
    assert not people & {"0000", "-1", "0999"}
    assert {"0001", "0009"} <= people  # searched for, and of the training part
    assert {picture.camera for picture in material.originals} == {"1", "2"}


def test_folders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    originals, blurred, _ = folders(tmp_path, people=4)
    other = changed(originals, tmp_path / "elsewhere" / "blurred", same)
    named = changed(originals, tmp_path / "elsewhere" / "originals", same)
    material = load_material(originals, [blurred, other, named], keys=[None] * 3, labels="auto", control=True)
    names = [condition.name for condition in material.conditions]
    assert names == ["blurred", "blurred (2)", "originals (2)", CONTROL]


def test_pictures_that_cannot_be_read_are_passed_over_and_counted(tmp_path: Path) -> None:
    originals, *_ = folders(tmp_path, people=6)
    for file in list(originals.rglob("*-0.png")):
        file.write_bytes(b"no picture")
    assert any("could not be read" in note for note in make(tmp_path, seed=1).notes)


def test_designs_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    folders(tmp_path, people=4)
    for design, what in (
        (Design(questions=1), "questions must be at least 2"),
        (Design(choices=1), "choices must be at least 2"),
        (Design(choices=10), "choices must be at most 9"),
    ):
        with pytest.raises(ConfigError, match=what):
            make(tmp_path, design=design)
    with pytest.raises(ConfigError, match="participants must be at least 1"):
        make(tmp_path, participants=0)
    assert not (tmp_path / "study").exists()
    assert not (tmp_path / "study.private").exists()


def run(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_study_is_made_and_scored(tmp_path: Path) -> None:
    originals, blurred, noisy = folders(tmp_path)
    made = run("study", "make", originals, blurred, noisy, tmp_path / "s", "--questions", 4, "--participants", 2)
    assert made.exit_code == 0, made.output
    assert "12 questions, 6 attention checks" in made.stdout
    assert "as private as they are" in made.stdout
    assert f"Keep {tmp_path / 's.private' / 'key.json'}" in made.stdout
    key = read_study_key(tmp_path / "s.private" / "key.json")
    files = []
    for number, code in enumerate(key.participants or ()):
        files.append(tmp_path / f"{code}.json")
        files[-1].write_text(json.dumps(sheet(key, code, truth, 100 * number)))
    scored = run("study", "score", *files, "--key", tmp_path / "s.private" / "key.json")
    assert scored.exit_code == 0, scored.output
    assert "| blurred " in scored.stdout
    assert "2 participants count, 0 do not" in scored.stdout
    printed = run("study", "score", *files, "--key", tmp_path / "s.private" / "key.json", "--json")
    assert len(json.loads(printed.stdout)["rows"]) == 6
    twice = run("study", "score", *files, files[0], "--key", tmp_path / "s.private" / "key.json")
    assert twice.exit_code == 2
    assert "are both of participant" in twice.stderr


def test_kinds_and_a_seed(tmp_path: Path) -> None:
    originals, blurred, _ = folders(tmp_path)
    words = ("--kind", "choice", "--choices", 3, "--questions", 3, "--checks", 0, "--no-control", "--seed", 4)
    made = run("study", "make", originals, blurred, tmp_path / "s", *words)
    assert made.exit_code == 0, made.output
    assert "drawn from a seed" in made.stdout
    key = read_study_key(tmp_path / "s.private" / "key.json")
    assert {(q.kind, len(q.options)) for q in key.questions.values()} == {("choice", 3)}


def test_a_large_page_is_warned_of(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("veilkit.perception.make.LARGE", 1000)
    originals, blurred, _ = folders(tmp_path)
    made = run("study", "make", originals, blurred, tmp_path / "s", "--questions", 4)
    assert made.exit_code == 0
    assert "ask fewer --questions" in made.stderr


def test_a_file_in_place_of_the_folder_is_told_and_no_key_is_left(tmp_path: Path) -> None:
    originals, blurred, noisy = folders(tmp_path)
    (tmp_path / "s").write_text("kept")
    made = run("study", "make", originals, blurred, noisy, tmp_path / "s", "--questions", 4)
    assert made.exit_code == 2
    assert "which is a file" in made.stderr
    assert (tmp_path / "s").read_text() == "kept"
    assert not (tmp_path / "s.private").exists()

"""Audits of synthetic releases, whose pictures belong to no original: real ones, and one that copies originals."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from tests.audit.folders import changed, market, person, plain, same
from tests.methods.tiny import tiny_fro
from veilkit.attacks import ATTACKS, UNPAIRED_ATTACKS
from veilkit.audit import AuditResult, read_audit, run_audit
from veilkit.audit.result import OTHER_CLASS, SAME_CLASS
from veilkit.cli import app
from veilkit.datasets.soft_labels import SOFT_LABELS, SoftLabels, read_soft_labels
from veilkit.errors import CheckpointError, DataError, UsageError
from veilkit.key import read_key
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, save_reid
from veilkit.pipeline.protect import protect

INSIDE, OUTSIDE = range(12), range(12, 24)  # of the originals; the pool knows the first twelve
QUICK = {"group": 64, "assembly.steps": 1}
WITHOUT_STUDENT = ("class_linkage", "memorisation", "membership_set_picture", "membership_labels_picture")
OF_PEOPLE = ("membership_set_person", "membership_labels_person")
OF_STUDENTS = ("membership_student_person", "membership_student_picture")
SHADOWS = ("membership_shadows_person", "membership_shadows_picture")


def audit(originals: Path, protected: Path, **options: object) -> AuditResult:
    return run_audit(originals, protected, expert="histogram", judge="histogram", **options)  # type: ignore[arg-type]


def synthesised(originals: Path, target: Path, people: list[str], **options: object) -> Path:
    model = target.with_name(f"{target.name}.pool.safetensors")
    tiny_fro(people).save(model)
    protect(originals, target, "fro", model=model, settings=QUICK, **options)  # type: ignore[arg-type]
    return target


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """originals: 24 people, two pictures each; release: of the first twelve, under a key; more: others of these."""
    root = tmp_path_factory.mktemp("synthetic")
    originals = plain(root / "originals", people=24, shots=2)
    for folder in originals.iterdir():
        folder.rename(originals / f"canary{folder.name[1:]}")
    synthesised(originals, root / "release", [f"canary{number}" for number in INSIDE])
    for number in INSIDE:
        (root / "more" / f"canary{number}").mkdir(parents=True)
        for shot in (5, 6):
            Image.fromarray(person(number, shot)).save(root / "more" / f"canary{number}" / f"{shot}.png")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        save_reid(root / "student.safetensors", ReidNetwork(ReidNetworkConfig("osnet-x0.25", size=(32, 16))))
    return root


@pytest.fixture
def here(made: Path, tmp_path: Path) -> Path:
    """The same, to change."""
    return Path(shutil.copytree(made, tmp_path / "here"))


@pytest.fixture(scope="module")
def whole(made: Path) -> AuditResult:
    """Its audit with all that can be given."""
    return audit(made / "originals", made / "release", unseen=made / "more", student=made / "student.safetensors")


def copying(root: Path) -> None:
    """Puts the training pictures themselves into the classes' folders, in the place of the synthetic ones."""
    key = read_key(root / "release.private" / "key")
    for number in INSIDE:
        files = sorted((root / "release" / key.pseudonym(f"person canary{number}")).glob("*.png"))
        for file, original in zip(files, sorted((root / "originals" / f"canary{number}").glob("*.png")), strict=True):
            shutil.copyfile(original, file)


def test_with_all_that_can_be_given_every_attack_but_the_shadows_is_made(whole: AuditResult, made: Path) -> None:
    assert whole.not_applicable.keys() == {*SHADOWS, *ATTACKS}
    assert {e.attack for e in whole.attacks} == {*UNPAIRED_ATTACKS, *ATTACKS}
    assert whole.people == len(INSIDE)
    assert whole.originals.pictures == 48
    (counted,) = [note for note in whole.notes if "were trained on" in note]
    assert "24 originals of 12 people" in counted
    assert "24 other pictures of 12 of them and 24 pictures of 12 other people" in counted
    titles = [finding.title for finding in whole.summary]
    assert titles == [
        "Classes linked to people", "Training pictures memorised", "Training people told from others",
        "Training pictures told from others", "What the eye still sees",
    ]  # fmt: skip
    assert all("lind guessing" in f.text or "memorised that is" in f.text for f in whole.summary[:-1])
    assert any("a saved student has no classifier" in note for note in whole.notes)


def test_the_files_hold_the_attacks_and_name_nobody(whole: AuditResult, made: Path) -> None:
    folder = made / "release.audit"
    assert read_audit(folder / "audit.json") == whole
    report = (folder / "report.html").read_text()
    for name in UNPAIRED_ATTACKS:
        assert name in report
    for text in (report, (folder / "audit.json").read_text()):
        assert "canary" not in text
        assert str(made) not in text
    assert "--unseen UNSEEN --student STUDENT" in report


def test_a_release_that_copies_its_originals_is_found_out(here: Path) -> None:
    copying(here)
    result = audit(here / "originals", here / "release", unseen=here / "more")
    for name in ("class_linkage", "memorisation", "membership_set_person", "membership_set_picture"):
        evidence = result.evidence(name)
        assert evidence is not None
        assert evidence.invalid == ()
        assert evidence.scores[0].value == 1.0
        assert evidence.scores[0].low > evidence.details["chance"][evidence.scores[0].metric]
    own, other = (result.score("images", setting, "SSIM") for setting in (SAME_CLASS, OTHER_CLASS))
    assert own is not None
    assert other is not None
    assert other.high < 0.5 < own.low <= own.value < 1.0  # copies, but each compared with either of two originals
    assert "Pseudonyms of classes do not hide who they are" in result.summary[0].text


def test_what_is_not_given_is_told_and_the_rest_is_measured(made: Path, tmp_path: Path) -> None:
    result = audit(made / "originals", made / "release", out=tmp_path / "a")
    applied = {e.attack for e in result.attacks if e.applicable}
    assert applied == set(WITHOUT_STUDENT)
    told = {each.what: each.why for each in result.unmeasured}
    assert told[f"attacks {', '.join(OF_PEOPLE)}"].endswith("(see --unseen)")
    assert told["attack membership_student_picture"].endswith("(see --student)")
    assert any("may be the person who was found" in finding.text for finding in result.summary)


@pytest.mark.parametrize("key", ["none", "wrong"])
def test_without_its_key_nobody_knows_whom_classes_stand_for(here: Path, key: str) -> None:
    (here / "release.private" / "key").rename(here / "away")
    options: dict[str, object] = {}
    if key == "wrong":
        (here / "other").touch(mode=0o600)
        (here / "other").write_text(f"veilkit-key-1 {'ab' * 32}\n")
        options["key"] = here / "other"
    result = audit(here / "originals", here / "release", **options)
    assert result.not_applicable.keys() == {*UNPAIRED_ATTACKS, *ATTACKS}
    why = result.not_applicable["class_linkage"]
    assert ("is not the one that this release was made with" if key == "wrong" else "no key was given") in why
    assert result.summary == ()
    assert result.score("judge", "protected-protected", "rank-1") is not None
    assert any(each.what.startswith("SSIM") and each.why == why for each in result.unmeasured)


def test_originals_of_other_people_are_told(made: Path, tmp_path: Path) -> None:
    result = audit(plain(tmp_path / "others", people=3), made / "release", out=tmp_path / "a")
    assert "none of its classes stands for anybody" in result.not_applicable["class_linkage"]
    assert [alarm.name for alarm in result.alarms][:1] == ["no pairs"]


def test_soft_labels_that_are_gone_damaged_or_anothers_are_told(here: Path) -> None:
    file = here / "release" / SOFT_LABELS
    held = read_soft_labels(here / "release")
    assert held is not None
    renamed = SoftLabels(tuple(f"x{name}" for name in held.files), held.classes, held.logits)
    infinite = SoftLabels(held.files, held.classes, np.full_like(held.logits, np.inf))
    for data, words in (
        (None, "no soft labels"),
        (b"not a file of numpy", "is damaged"),
        (renamed.encode(), "has no labels for 24 of 24 pictures"),
        (infinite.encode(), "must be finite"),
    ):
        file.unlink() if data is None else file.write_bytes(data)
        result = audit(here / "originals", here / "release")
        assert {e.attack for e in result.attacks if e.applicable} == {*WITHOUT_STUDENT} - {
            "membership_labels_picture"
        }
        assert any(words in text for text in (*result.notes, result.not_applicable["membership_labels_picture"]))


@pytest.mark.parametrize("names", ["kept", "pseudonyms"])
def test_the_market_layout_holds_out_its_test_people(tmp_path: Path, names: str) -> None:
    originals = market(tmp_path / "o")
    for number in range(3):  # pictures of strangers, all under one name
        Image.fromarray(person(50 + number, 0)).save(originals / "bounding_box_test" / f"9000_c1_{number}.png")
    trained = [f"{number:04}" for number in range(8, 14)]  # of eight in the training part
    release = synthesised(originals, tmp_path / "p", trained, names=names, seed=3)
    result = audit(originals, release)
    (counted,) = [note for note in result.notes if "were trained on" in note]
    assert "6 originals of 6 people" in counted
    assert "no other pictures of them and 26 pictures of 10 other people" in counted
    assert any("3 originals of the test part show training people or distractors" in note for note in result.notes)
    assert result.evidence("class_linkage").details["candidates"] == 6  # type: ignore[union-attr]


def test_people_are_held_out_from_a_folder_of_their_own(made: Path, tmp_path: Path) -> None:
    others = plain(tmp_path / "others", people=34)
    for number in range(30):
        shutil.rmtree(others / f"p{number}")
    (others / "p30").rename(others / "canary0")
    result = audit(made / "originals", made / "release", held_out=others, out=tmp_path / "a")
    assert any("9 pictures of 3 other people" in note for note in result.notes)
    assert any("3 of the held-out pictures have a training person's name" in note for note in result.notes)


def test_unseen_pictures_that_were_trained_on_are_left_out(made: Path, tmp_path: Path) -> None:
    result = audit(made / "originals", made / "release", unseen=made / "originals", out=tmp_path / "a")
    assert any("24 of the unseen pictures show nobody who was trained on" in note for note in result.notes)
    assert any("24 of the unseen pictures are training pictures" in note for note in result.notes)
    assert {*OF_PEOPLE} <= result.not_applicable.keys()


def test_one_class_alone_is_told(tmp_path: Path, made: Path) -> None:
    originals = plain(tmp_path / "o", people=1)
    release = synthesised(originals, tmp_path / "p", ["p0", "somebody else"])
    result = audit(originals, release, student=made / "student.safetensors")
    assert "one candidate only" in result.not_applicable["class_linkage"]
    assert any("with one class" in note for note in result.notes)
    assert {*WITHOUT_STUDENT, *OF_STUDENTS} <= result.not_applicable.keys()


def test_the_options_are_refused_for_other_releases_and_missing_files(made: Path, tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=2)
    with pytest.raises(UsageError, match="--unseen"):
        audit(originals, changed(originals, tmp_path / "p", same), unseen=originals)
    with pytest.raises(DataError, match="not there"):
        audit(made / "originals", made / "release", held_out=tmp_path / "nowhere")
    (tmp_path / "broken.safetensors").write_bytes(b"x" * 64)
    with pytest.raises(CheckpointError):
        audit(made / "originals", made / "release", student=tmp_path / "broken.safetensors")


def test_the_command_tells_the_findings_and_the_gaps(here: Path, tmp_path: Path) -> None:
    copying(here)
    words = [
        "audit", here / "originals", here / "release", "--expert", "histogram", "--judge", "histogram", "--unseen",
        here / "more", "--held-out", plain(tmp_path / "others", people=3), "--student", here / "student.safetensors",
        "--out", tmp_path / "a", "--verbose", "--budget", "none",
    ]  # fmt: skip
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0
    assert "privacy: The authorised recogniser itself (histogram) that holds pictures of all training people" in (
        done.stdout
    )
    assert "100 % of the time" in done.stdout
    assert "(INVALID: " in done.stdout  # three people outside are too few for the memorisation gate
    assert "Not measured: attacks membership_shadows_person, membership_shadows_picture" in done.stdout
    assert len(read_audit(tmp_path / "a" / "audit.json").attacks) == len(UNPAIRED_ATTACKS) + len(ATTACKS)

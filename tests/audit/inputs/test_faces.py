from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from typer.testing import CliRunner

from tests.conftest import random_picture
from veilkit.audit import read_audit, run_audit
from veilkit.audit.inputs import faces, judges
from veilkit.audit.inputs.faces import SIDE, Face, FacePart, SurroundingsPart
from veilkit.audit.result import AuditResult
from veilkit.audit.verdicts.verdict import Grade
from veilkit.cli import app
from veilkit.errors import DataError, MissingExtraError, UsageError
from veilkit.experts.alignment import WIDE
from veilkit.experts.base import Detections, Detector, ExpertInfo
from veilkit.types import Level

HERE = (30, 20, 94, 84)  # where the faces of these pictures are: left, top, right, bottom
SIZE = (100, 120)


def points() -> list[tuple[float, float]]:
    """Five points of a face in HERE, as they lie in a wide crop."""
    scale = (HERE[2] - HERE[0]) / WIDE["five"].side
    return [(HERE[0] + x * scale, HERE[1] + y * scale) for x, y in WIDE["five"].points]


def face() -> Face:
    return Face(tuple(map(float, HERE)), tuple(points()), "five")  # type: ignore[arg-type]


class Finder(Detector):
    """Finds a face in HERE of every picture of SIZE that is not black there, and none in others."""

    info = ExpertInfo("here", "detector", 0, "5" * 64, False)

    def detect(self, images: Tensor) -> list[Detections]:
        found = tuple(images.shape[2:]) == SIZE and bool(images[0, :, 40:60, 50:70].any())
        box, where = torch.tensor([HERE], dtype=torch.float32), torch.tensor([points()])
        return [Detections(box[: int(found)], torch.ones(int(found)), where[: int(found)])]


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight people, two pictures each: a face of one's own before a wall that each picture has alone."""
    monkeypatch.setattr(faces, "load_finder", lambda name: Finder())
    monkeypatch.setattr(judges, "FACES", ("histogram@arcface", "histogram@dlib"))
    monkeypatch.setattr(judges, "STRONGEST", ("histogram",))
    for person in range(8):
        own = random_picture(person, 64, 64)
        (tmp_path / "o" / f"p{person}").mkdir(parents=True)
        for shot in range(2):
            picture = random_picture(100 + 2 * person + shot, *SIZE)
            picture[HERE[1] : HERE[3], HERE[0] : HERE[2]] = own
            Image.fromarray(picture).save(tmp_path / "o" / f"p{person}" / f"{shot}.png")
    return tmp_path / "o"


def released(photos: Path, name: str, colour: object) -> Path:
    """The same with one picture in place of all faces."""
    for file in sorted(photos.rglob("*.png")):
        picture = np.array(Image.open(file))
        picture[HERE[1] : HERE[3], HERE[0] : HERE[2]] = colour
        target = photos.with_name(name) / file.relative_to(photos)
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(target)
    return photos.with_name(name)


def audited(photos: Path, colour: object, **options: object) -> AuditResult:
    return run_audit(photos, released(photos, "p", colour), labels="folder", **options)  # type: ignore[arg-type]


def test_a_face_is_cut_upright_and_seen_through_an_oval() -> None:
    picture = np.zeros((*SIZE, 3), dtype=np.uint8)
    picture[HERE[1] : HERE[3], HERE[0] : HERE[2]] = (10, 200, 30)
    cut = FacePart(face()).cut(picture)
    assert cut.shape == (SIDE, SIDE, 3)
    assert np.abs(cut.astype(int) - (10, 200, 30)).max() <= 1  # black beside the face would stand in the corners
    picture[50, 62] = 255
    changed = np.argwhere((FacePart(face()).cut(picture) != cut).any(axis=2) & (cut[..., 0] == 10))
    assert len(changed) > 0


def test_surroundings_hold_nothing_of_the_face() -> None:
    picture = random_picture(1, *SIZE)
    other = picture.copy()
    hidden = (SurroundingsPart((face(),)).cut(picture) != picture).any(axis=2)
    oval = np.argwhere(hidden)
    assert 0.4 < hidden[HERE[1] : HERE[3], HERE[0] : HERE[2]].mean() < 1.0
    assert (oval.min(axis=0) >= (HERE[1] - 4, HERE[0] - 1)).all()  # hair stands a little above a wide crop
    other[hidden] = 7
    assert np.array_equal(SurroundingsPart((face(),)).cut(other), SurroundingsPart((face(),)).cut(picture))


def test_a_face_keeps_its_place_in_a_picture_of_another_size() -> None:
    double = face().scaled(2, 2)
    assert double.box == tuple(2 * each for each in HERE)
    assert double.eyes_apart == pytest.approx(2 * face().eyes_apart)
    assert face().overlap(face()) == 1.0
    assert face().overlap(double) == pytest.approx(34 * 44 / (64**2 + 128**2 - 34 * 44))
    kept = faces._of_row(faces._row([face(), double]))
    assert [each.order for each in kept] == ["five", "five"]
    assert kept[1].box == double.box
    assert np.allclose(kept[1].points, double.points)
    assert faces._of_row(faces._row([])) == ()


def test_who_is_found_by_the_wall_is_not_found_by_the_face(photos: Path) -> None:
    result = audited(photos, random_picture(50, 64, 64))  # one stranger's face for everybody
    assert result.seen == "faces"
    assert (result.judge.name, result.expert.name) == ("histogram@arcface", "histogram@dlib")
    assert result.config["kind"] == "faces"
    assert {each.grade for each in result.verdicts} & {Grade.BROKEN, Grade.SERIOUS, Grade.SLIGHT} == set()
    assert result.surroundings is not None
    assert result.surroundings.verdict.level is Level.L0
    assert result.surroundings.verdict.grade is Grade.BROKEN
    worst = result.surroundings.verdict.worst
    assert worst is not None
    assert worst.value > 0.9
    found = result.score("images", "protected", "faces found")
    assert found is not None
    assert found.value == 1.0
    off = result.score("images", "protected", "landmarks off")
    assert off is not None
    assert off.value == pytest.approx(0.0, abs=1e-6)
    text = (photos.with_name("p.audit") / "report.html").read_text()
    assert "By the surroundings, not the face" in text
    assert read_audit(photos.with_name("p.audit") / "audit.json") == result


def test_faces_that_stay_are_found_by_the_face_and_black_ones_are_no_utility(photos: Path) -> None:
    unchanged = run_audit(photos, _copy(photos), labels="folder")
    assert next(each for each in unchanged.verdicts if each.level is Level.L0).grade is Grade.BROKEN
    assert "unchanged" in [alarm.name for alarm in unchanged.alarms]
    hidden = audited(photos, 0)
    found = hidden.score("images", "protected", "faces found")
    assert found is not None
    assert found.value == 0.0
    assert "constant" not in [alarm.name for alarm in hidden.alarms]  # a black face is no black picture


def _copy(photos: Path) -> Path:
    for file in sorted(photos.rglob("*.png")):
        target = photos.with_name("same") / file.relative_to(photos)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    return photos.with_name("same")


def test_the_choice_can_be_overruled_and_a_named_judge_makes_it(photos: Path) -> None:
    for options in ({"kind": "people"}, {"judge": "histogram"}, {"expert": "histogram"}):
        result = audited(photos, 0, attacks=["own_original"], **options)
        assert (result.seen, result.surroundings) == ("pictures", None)
    assert audited(photos, 0, attacks=["own_original"], judge="histogram@arcface", kind="faces").seen == "faces"
    with pytest.raises(UsageError, match="kind"):
        audited(photos, 0, kind="faces", boxes=__file__)
    with pytest.raises(UsageError, match="kind must be auto or faces or people"):
        audited(photos, 0, kind="videos")


def test_small_pictures_and_crops_of_people_are_judged_whole(tmp_path: Path, photos: Path) -> None:
    assert faces.choose_seen(photos, faces.Limits(), "auto") == ("faces", "")
    for number in range(4):
        (tmp_path / "small").mkdir(exist_ok=True)
        Image.fromarray(random_picture(number, 40, 40)).save(tmp_path / "small" / f"{number}.png")
    assert faces.choose_seen(tmp_path / "small", faces.Limits(), "auto") == ("pictures", "")


def test_without_a_finder_or_a_face_network_that_is_told(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judges, "FACES", ("osnet-0.25@whole",))
    monkeypatch.delenv("VEILKIT_WEIGHTS", raising=False)
    monkeypatch.delenv("VEILKIT_DATA", raising=False)
    result = audited(photos, 0, attacks=["own_original"])
    assert result.seen == "pictures"
    assert any("the originals show faces, but" in note and "veilkit[faces]" in note for note in result.notes)
    with pytest.raises(MissingExtraError, match="a face network"):
        audited(photos, 0, kind="faces")

    def missing(name: str) -> Detector:
        raise MissingExtraError("dlib", "faces")

    monkeypatch.setattr(faces, "load_finder", missing)
    seen, why = faces.choose_seen(photos, faces.Limits(), "auto")
    assert seen == "pictures"
    assert "is not known" in why
    with pytest.raises(MissingExtraError, match="a face finder"):
        faces.choose_seen(photos, faces.Limits(), "faces")


def test_no_face_at_all_is_told(photos: Path) -> None:
    for file in photos.rglob("*.png"):
        Image.fromarray(random_picture(1, 90, 90)).save(file)
    with pytest.raises(DataError, match="no face was found in any original"):
        run_audit(photos, _copy(photos), labels="folder", kind="faces")


def test_the_terminal_keeps_face_and_surroundings_apart_in_12_lines(photos: Path) -> None:
    release = released(photos, "p", random_picture(50, 64, 64))
    words = ["audit", str(photos), str(release), "--labels", "folder", "--budget", "none"]
    lines = CliRunner().invoke(app, words).stdout.splitlines()
    assert len(lines) <= 12
    assert any("; by faces, judge histogram@arcface, finds 100 % of the originals" in line for line in lines)
    apart = next(line for line in lines if line.startswith("By the surroundings, not the face"))
    assert "BROKEN" in apart
    assert any(line.startswith("Kept: 100 % of the faces are still found") for line in lines)
    values = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert values["judged by"] == "faces"
    assert values["surroundings"]["grade"] == "broken"
    assert values["faces"]["faces found"] == 1.0

"""People in whole pictures: each box is a picture on both sides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.audit.folders import person
from veilkit.audit import AuditResult, run_audit
from veilkit.audit.inputs.items import read_boxes
from veilkit.audit.inputs.pictures import LARGEST, File
from veilkit.audit.report.model import command
from veilkit.errors import DataError

HEIGHT, WIDTH = 40, 120
LINES = ["path,x,y,w,h,identity"]


@pytest.fixture
def street(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Six streets with three people each, everybody in two streets, and a protection that shows one colour there."""
    originals, protected = tmp_path / "o", tmp_path / "p"
    originals.mkdir()
    protected.mkdir()
    lines = list(LINES)
    for number in range(6):
        picture = np.random.default_rng(number).integers(0, 40, (HEIGHT, WIDTH, 3)).astype(np.uint8)
        hidden = picture.copy()
        for place in range(3):
            identity, left = number // 2 * 3 + place, 5 + 40 * place
            picture[4:36, left : left + 16] = person(identity, number)
            hidden[4:36, left : left + 16] = 20 * identity
            lines.append(f"{number}.png,{left},4,16,32,someone{identity}")
        Image.fromarray(picture).save(originals / f"{number}.png")
        Image.fromarray(hidden).save(protected / f"{number}_anonymized.png")
    (tmp_path / "boxes.csv").write_text("\n".join(lines) + "\n")
    return originals, protected, tmp_path / "boxes.csv"


def audit(originals: Path, protected: Path, boxes: Path, out: Path) -> AuditResult:
    return run_audit(originals, protected, expert="histogram", judge="histogram", boxes=boxes, out=out)


def test_boxes_are_audited_as_pictures(street: tuple[Path, Path, Path], tmp_path: Path) -> None:
    result = audit(*street, tmp_path / "a")
    assert (result.pictures, result.people, result.queries) == (18, 9, 18)
    assert result.paired_by == "by their names, to which one and the same word was added"
    raw = result.score("judge", "raw-raw", "rank-1")
    assert raw is not None
    assert raw.value == 1.0  # with the street around them, nobody's colours would be found again
    assert any("18 boxes in 6 whole pictures" in note for note in result.notes)
    assert result.config["boxes"] == "boxes.csv"
    assert "--boxes BOXES" in command(result)


def test_the_scores_are_those_of_crops_that_somebody_else_cut(
    street: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    originals, protected, boxes = street
    for side, word in ((originals, ""), (protected, "_anonymized")):
        for line in boxes.read_text().splitlines()[1:]:
            name, left, top, width, height, who = line.split(",")
            target = tmp_path / f"{side.name}-cut" / who
            target.mkdir(parents=True, exist_ok=True)
            with Image.open(side / f"{Path(name).stem}{word}.png") as image:
                box = (int(left), int(top), int(left) + int(width), int(top) + int(height))
                image.crop(box).save(target / name)
    cut = run_audit(tmp_path / "o-cut", tmp_path / "p-cut", expert="histogram", judge="histogram")
    boxed = audit(*street, tmp_path / "a")

    def values(result: AuditResult) -> dict[tuple[str, str, str], float]:
        # Protected people of one colour tie, and ties follow the order of pictures, which differs here.
        found = [m for m in result.measurements if m.by == "images" or m.setting == "raw-raw"]
        return {(m.by, m.setting, m.score.metric): m.score.value for m in found}

    assert len(values(boxed)) == 13  # one colour has no chaos
    assert values(boxed) == pytest.approx(values(cut))


def test_pictures_of_another_size_and_boxes_outside_are_told(street: tuple[Path, Path, Path], tmp_path: Path) -> None:
    _, protected, boxes = street
    with Image.open(protected / "0_anonymized.png") as image:
        image.resize((60, 20)).save(protected / "0_anonymized.png")
    with boxes.open("a") as more:
        more.write("1.png,500,4,16,32,far\nnowhere.png,1,1,5,5,nobody\n1.png,110,4,30,32,edge\n")
    result = audit(*street, tmp_path / "a")
    assert result.pictures == 16
    assert "16 boxes in 5 whole pictures are audited as pictures" in result.notes
    assert any("3 boxes are left out: their protected pictures have another size" in note for note in result.notes)
    assert any("1 box is left out: outside" in note for note in result.notes)
    assert any("1 box lies in a picture that is not there" in note for note in result.notes)


def test_where_no_box_can_be_used_it_is_said(street: tuple[Path, Path, Path], tmp_path: Path) -> None:
    originals, protected, _ = street
    (tmp_path / "far.csv").write_text("path,x,y,w,h\n0.png,500,500,5,5\n")
    with pytest.raises(DataError, match=r"1 outside of their pictures. Without --boxes the whole pictures can"):
        audit(originals, protected, tmp_path / "far.csv", tmp_path / "a")
    (tmp_path / "other.csv").write_text("path,x,y,w,h\nother/0.png,1,1,5,5\n")
    with pytest.raises(DataError, match="relative to ORIGINALS"):
        audit(originals, protected, tmp_path / "other.csv", tmp_path / "a")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("path,x,y\n", "expected a first line"),
        ("path,x,y,w,h\na.png,1,2,three,4\n", "line 2 of b.csv: x, y, w and h must be numbers"),
        ("path,x,y,w,h\na.png,1,2,0,4\n", "w and h of at least 1"),
        ("path,x,y,w,h\na.png,1\n", "line 2"),
        ("path,x,y,w,h\n", "holds no boxes"),
    ],
)
def test_a_wrong_file_of_boxes_is_told(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text(text)
    with pytest.raises(DataError, match=told):
        read_boxes(tmp_path / "b.csv")


def test_a_box_is_cut_to_the_picture_and_large_ones_are_measured_smaller() -> None:
    file = File("a.png", "0" * 64, 3000, 4000)
    corner = file.cropped((3990, -5, 100, 10))
    assert corner is not None
    assert corner.box == (3990, 0, 10, 5)
    assert (corner.height, corner.width, corner.file_sha256) == (5, 10, file.sha256)
    whole = file.cropped((0, 0, 4000, 3000))
    assert whole is not None
    assert whole.height * whole.width <= LARGEST
    assert whole.sha256 != corner.sha256
    assert file.cropped((4000, 0, 5, 5)) is None

import json
from pathlib import Path

import pytest

from veilkit.errors import DataError
from veilkit.media.boxes import DrawnBox, read_boxes, write_coco, write_csv, write_yolo

BOXES = {
    "a/one.jpg": (DrawnBox(10, 20, 30, 40, "hide"), DrawnBox(0, 0, 8, 8, "spare")),
    "two.png": (DrawnBox(5, 5, 10, 10, "protect"),),
}


def size(path: str) -> tuple[int, int]:
    return (100, 80)


def test_csv_gives_back_what_was_written(tmp_path: Path) -> None:
    write_csv(tmp_path / "boxes.csv", BOXES)
    assert read_boxes(tmp_path / "boxes.csv") == BOXES


def test_coco_gives_back_what_was_written(tmp_path: Path) -> None:
    write_coco(tmp_path / "boxes.json", BOXES, size)
    assert read_boxes(tmp_path / "boxes.json") == BOXES


def test_coco_of_other_tools_means_hiding(tmp_path: Path) -> None:
    content = {
        "images": [{"id": 7, "file_name": "x.jpg"}],
        "annotations": [{"image_id": 7, "bbox": [1, 2, 3, 4], "category_id": 1}],
        "categories": [{"id": 1, "name": "face"}],
    }
    (tmp_path / "boxes.json").write_text(json.dumps(content))
    assert read_boxes(tmp_path / "boxes.json") == {"x.jpg": (DrawnBox(1, 2, 3, 4, "hide"),)}


def test_yolo_gives_back_what_was_written_by_shares(tmp_path: Path) -> None:
    write_yolo(tmp_path / "boxes", BOXES, size)
    read = read_boxes(tmp_path / "boxes")
    assert list(read) == ["a/one", "two"]
    for path, drawn in zip(read, BOXES.values(), strict=True):
        for one, other in zip(read[path], drawn, strict=True):
            assert one.action == other.action
            assert one.corners(100, 80) == pytest.approx(other.corners(100, 80), abs=1e-3)


def test_corners_are_cut_to_the_picture() -> None:
    assert DrawnBox(-5, 70, 200, 200).corners(100, 80) == (0, 70, 100, 80)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("b.csv", "path,x,y\na.jpg,1,2\n"),
        ("b.csv", "path,x,y,w,h\na.jpg,1,2,x,4\n"),
        ("b.csv", "path,x,y,w,h\na.jpg,1,2,0,4\n"),
        ("b.csv", "path,x,y,w,h\na.jpg,1,2,nan,4\n"),
        ("b.csv", "path,x,y,w,h\n,1,2,3,4\n"),
        ("b.csv", "path,x,y,w,h,action\na.jpg,1,2,3,4,delete\n"),
        ("b.csv", "path,x,y,w,h\n"),
        ("b.csv", "\x00\x01"),
        ("b.json", "[" * 100_000),
        ("b.json", "{}"),
        (
            "b.json",
            '{"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 2, "bbox": [1, 2, 3, 4]}]}',
        ),
        ("b.json", '{"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 1, "bbox": [1, 2]}]}'),
        ("b.json", "null"),
        ("boxes/a.txt", "0 0.5 0.5\n"),
        ("boxes/a.txt", "0 0.5 0.5 200 0.1\n"),
        ("boxes/a.txt", "x 0.5 0.5 0.1 0.1\n"),
    ],
)
def test_what_holds_no_boxes_is_refused_with_a_clear_error(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=r"boxes|line|box"):
        read_boxes((tmp_path / name).parent if name.endswith("txt") else tmp_path / name)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere"):
        read_boxes(tmp_path / "nowhere.csv")

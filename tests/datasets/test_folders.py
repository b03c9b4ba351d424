from __future__ import annotations

import os
from pathlib import Path

import pytest

from veilkit.datasets.folder import load_folder, walk
from veilkit.datasets.labels import labeller, time_reader
from veilkit.datasets.lfw import load_lfw, parse_pairs
from veilkit.datasets.market1501 import load_market1501
from veilkit.errors import ConfigError, DataError, LayoutError


def touch(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"x")
    return root


def labels_of(root: Path, spec: str) -> dict[str, tuple[str | None, str | None]]:
    return {record.path: (record.identity, record.camera) for record in load_folder(root, spec).records}


def test_people_are_told_by_folder_pattern_csv_or_not_at_all(tmp_path: Path) -> None:
    root = touch(tmp_path / "d", "ann/x.jpg", "bob/deep/y_c2.PNG", "z.webp", "notes.txt")
    assert labels_of(root, "auto") == {
        "ann/x.jpg": ("ann", None),
        "bob/deep/y_c2.PNG": ("bob/deep", None),
        "z.webp": (None, None),
    }
    assert set(labels_of(root, "none").values()) == {(None, None)}
    pattern = labels_of(root, r"pattern:(?P<identity>[xyz])(?:_c(?P<camera>\d))?\.")
    assert pattern["bob/deep/y_c2.PNG"] == ("y", "2")
    assert pattern["z.webp"] == ("z", None)
    table = tmp_path / "labels.csv"
    table.write_text("path,identity,camera\nann/x.jpg,7,left\nz.webp,,\n")
    by_csv = labels_of(root, f"csv:{table}")
    assert by_csv["ann/x.jpg"] == ("7", "left")
    assert by_csv["z.webp"] == by_csv["bob/deep/y_c2.PNG"] == (None, None)


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("folders", ConfigError, "labels must be auto"),
        ("pattern:(", ConfigError, "not a regular expression"),
        ("pattern:x", ConfigError, r"needs a group"),
        ("csv:absent.csv", DataError, "cannot be read"),
    ],
)
def test_wrong_label_rules_are_told(tmp_path: Path, spec: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        labeller(spec, tmp_path)


def test_a_label_file_without_its_columns_is_told(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("file,person\na,b\n")
    with pytest.raises(DataError, match="expected a first line 'path,identity'") as told:
        labeller(f"csv:{tmp_path / 'l.csv'}", tmp_path)
    assert "person" not in str(told.value)


def test_a_label_file_from_a_spreadsheet_is_read(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_bytes(b"\xef\xbb\xbfpath,identity\r\na.jpg,7\r\n")
    assert labeller(f"csv:{tmp_path / 'l.csv'}", tmp_path)("a.jpg") == ("7", None)


def test_the_order_is_that_of_paths_and_names_may_be_any_bytes(tmp_path: Path) -> None:
    root = touch(tmp_path / "d", "b.jpg", "a.jpg", os.fsdecode(b"\xff\n.jpg"))
    paths = [record.path for record in load_folder(root).records]
    assert [os.fsencode(path) for path in paths] == [b"a.jpg", b"b.jpg", b"\xff\n.jpg"]


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    root = touch(tmp_path / "d", "a.jpg")
    (root / "loop").symlink_to(root)
    (root / "link.jpg").symlink_to(root / "a.jpg")
    assert sorted(walk(root)) == [("a.jpg", True), ("link.jpg", True)]


def test_a_missing_or_empty_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not there"):
        load_folder(tmp_path / "absent")
    with pytest.raises(DataError, match="is a file"):
        load_folder(touch(tmp_path, "f.txt") / "f.txt")
    with pytest.raises(DataError, match="no pictures"):
        load_folder(tmp_path)


def test_market_layout(tmp_path: Path) -> None:
    root = touch(
        tmp_path,
        "bounding_box_train/0002_c1s1_000451_03.jpg",
        "query/0003_c2_000001.jpg",
        "bounding_box_test/0003_c1_000002.jpg",
        "bounding_box_test/-1_c3s1_000401_03.jpg",
        "bounding_box_test/0000_c6s4_002202_01.jpg",
        "bounding_box_test/Thumbs.db",
    )
    market = load_market1501(root)
    assert [(r.path, r.identity, r.camera) for r in market.train.records] == [
        ("bounding_box_train/0002_c1s1_000451_03.jpg", "0002", "1")
    ]
    assert [r.identity for r in market.gallery.records] == ["0000", "0003"]
    assert market.query.file(0).is_file()
    assert labels_of(root, "auto")["query/0003_c2_000001.jpg"] == ("0003", "2")


def test_a_broken_market_layout_is_told(tmp_path: Path) -> None:
    touch(tmp_path, "query/a.jpg")
    with pytest.raises(LayoutError, match="bounding_box_train, bounding_box_test are missing"):
        load_market1501(tmp_path)
    touch(tmp_path, "bounding_box_train/0001_c1_1.jpg", "bounding_box_test/0001_c1_1.jpg")
    with pytest.raises(LayoutError, match="expected names such as"):
        load_market1501(tmp_path)


def test_lfw_pairs_and_folds(tmp_path: Path) -> None:
    root = touch(tmp_path, "A/A_0001.jpg", "A/A_0002.jpg", "B/B_0001.jpg", "B/B_0003.jpg")
    (root / "pairs.txt").write_text("2\t1\nA\t1\t2\nA\t1\tB\t3\nB\t1\t3\nB\t1\tA\t2\n")
    lfw = load_lfw(root)
    assert [(p.same, p.fold) for p in lfw.pairs] == [(True, 1), (False, 1), (True, 2), (False, 2)]
    assert lfw.images.identities == ("A", "B")
    (root / "pairs.txt").write_text("1 1\nA 1 2\nA 9 B 1\n")
    with pytest.raises(LayoutError, match="1 of the 2 pairs"):
        load_lfw(root)


@pytest.mark.parametrize("text", ["", "x y\n", "1 1\nA 1 2\n", "1 1\nA 1\nA 1 B 2\n"])
def test_broken_pair_lists_are_told(text: str) -> None:
    with pytest.raises(LayoutError, match=r"pairs\.txt"):
        parse_pairs(text)


def test_times_come_from_a_list_a_pattern_or_nowhere(tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text("path,time\na.jpg,2024-05-01\nb.jpg,\n")
    listed = time_reader(f"csv:{tmp_path / 'times.csv'}")
    assert [listed(path) for path in ("a.jpg", "b.jpg", "c.jpg")] == ["2024-05-01", None, None]
    assert time_reader("pattern:_(?P<time>[0-9]+)s")("cam/x_12s.jpg") == "12"
    assert time_reader("pattern:_(?P<time>[0-9]+)s")("cam/x.jpg") is None
    assert time_reader("none")("a.jpg") is None


def test_wrong_rules_for_times_are_refused(tmp_path: Path) -> None:
    (tmp_path / "wrong.csv").write_text("file,when\n")
    for spec, error in (
        ("exif", ConfigError),
        ("pattern:(", ConfigError),
        ("pattern:(?P<when>.)", ConfigError),
        (f"csv:{tmp_path / 'wrong.csv'}", DataError),
        (f"csv:{tmp_path / 'none.csv'}", DataError),
    ):
        with pytest.raises(error):
            time_reader(spec)

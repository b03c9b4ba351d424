from __future__ import annotations

import datetime
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import veilkit.gallery
from veilkit.errors import DataError, MissingExtraError
from veilkit.gallery import Gallery, milliseconds, read_features, time_text
from veilkit.gallery.milvus import expression
from veilkit.privacy import Budget, PrivUnit


def test_everything_exported_is_there_once() -> None:
    assert len(set(veilkit.gallery.__all__)) == len(veilkit.gallery.__all__)
    assert all(hasattr(veilkit.gallery, name) for name in veilkit.gallery.__all__)


def test_times_are_read_in_every_way_that_is_told() -> None:
    noon = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
    ways = (
        "2024-05-01T12:00:00Z",
        "2024-05-01 12:00",
        "2024-05-01T14:00+02:00",
        noon,
        noon.timestamp(),
        "1714564800",
    )
    assert {milliseconds(way) for way in ways} == {1714564800000}
    assert milliseconds("1714564800.25") == 1714564800250
    assert time_text(1714564800250) == "2024-05-01T12:00:00.250Z"
    assert time_text(None) is None


@pytest.mark.parametrize("wrong", ["noon", "", True, float("nan"), -1, "1e300", float("inf"), "2024-13-01"])
def test_what_is_no_time_is_told(wrong: object) -> None:
    with pytest.raises(DataError, match="expected a time"):
        milliseconds(wrong)  # type: ignore[arg-type]


def test_a_camera_cannot_end_its_own_quotes() -> None:
    assert expression(cameras=['"] or 1 == 1 or camera in ["']) == r'camera in ["\"] or 1 == 1 or camera in [\""]'


def save(file: Path, **parts: object) -> Path:
    np.savez(file, **parts)  # type: ignore[arg-type]
    return file


def test_a_features_file_is_read_whole(tmp_path: Path) -> None:
    features = np.eye(3, 4, dtype=np.float32)
    found = read_features(
        save(
            tmp_path / "a.npz",
            features=features,
            records=np.array(["a", "b", "c"]),
            persons=np.array([1, 2, 2]),
            cameras=np.array(["c1", "", "c2"]),
            times=np.array(["2024-05-01", "", "12"]),
        )
    )
    assert torch.equal(found.features, torch.from_numpy(features))
    assert (found.records, found.persons) == (("a", "b", "c"), ("1", "2", "2"))
    assert (found.cameras, found.times) == (("c1", None, "c2"), ("2024-05-01", None, "12"))
    plain = read_features(save(tmp_path / "b.npz", features=features, times=np.array([1.0, np.nan, 3.0])))
    assert (plain.records, plain.times) == (("0", "1", "2"), (1.0, None, 3.0))


def test_what_is_no_features_file_is_told(tmp_path: Path) -> None:
    features = np.eye(3, 4, dtype=np.float32)
    (tmp_path / "text.npz").write_text("features")
    cases = {
        tmp_path / "none.npz": "there is no features file",
        tmp_path / "text.npz": "is no features file",
        save(tmp_path / "a.npz", vectors=features): "but got vectors",
        save(tmp_path / "b.npz", features=features, records=np.array(["a"])): "expected 3 records",
        save(tmp_path / "c.npz", features=np.eye(3, dtype=np.int64)): "expected floating features",
        save(tmp_path / "d.npz", features=np.array([{"a": 1}], dtype=object)): "is no features file",
    }
    for file, message in cases.items():
        with pytest.raises(DataError, match=message):
            read_features(file)


@pytest.mark.parametrize("package", ["pymilvus", "milvus_lite"])
def test_a_missing_extra_is_named(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'veilkit\[gallery\]'"):
        Gallery.create(
            tmp_path / "gallery", mechanism=PrivUnit(dimension=8, epsilon=1.0),
            budget=Budget(epsilon=1.0, delta=0.0), per="record",
        )  # fmt: skip
    assert not (tmp_path / "gallery" / "gallery.json").exists()


def test_a_damaged_gallery_is_told(tmp_path: Path) -> None:
    (tmp_path / "gallery.json").write_text('{"format": "veilkit gallery 7"}')
    with pytest.raises(DataError, match="not a gallery that this version reads"):
        Gallery.open(tmp_path)

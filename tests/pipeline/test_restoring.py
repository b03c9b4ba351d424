"""Where a restored original may go, past no link and over no other file; and the log of who got it."""

from __future__ import annotations

import datetime
import json
import stat
from hashlib import sha256
from pathlib import Path

import pytest

from veilkit.errors import DestinationError, SealError
from veilkit.pipeline.recovery.access_log import AccessLog
from veilkit.pipeline.recovery.target import check_place, check_together, is_restored

WHOLE = sha256(b"whole").hexdigest()


def test_free_places_and_equal_files_are_taken(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.jpg").write_bytes(b"whole")
    for path in ("a/b.jpg", "a/c.jpg", "new/deep/c.jpg"):
        check_place(tmp_path, path, WHOLE, scratch=".scratch")
    assert is_restored(tmp_path / "a" / "b.jpg", WHOLE)
    assert not is_restored(tmp_path / "a" / "c.jpg", WHOLE)


def test_other_files_links_and_the_scratch_folder_are_in_the_way(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "whole").write_bytes(b"whole")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "other").write_bytes(b"other")
    (folder / "link").symlink_to(outside)
    (folder / "equal").symlink_to(outside / "whole")
    (folder / "dangling").symlink_to(tmp_path / "nowhere")
    (folder / "deep").mkdir()
    for path in ("other", "other/x", "link/x", "link/whole", "equal", "dangling", "deep", ".scratch/x"):
        with pytest.raises(SealError, match=r"place|folder|begins with"):
            check_place(folder, path, WHOLE, scratch=".scratch")


def test_originals_that_cannot_stand_beside_each_other_are_found() -> None:
    assert check_together(["a/b", "a/c", "ab"]) == {}
    assert check_together(["a", "a", "b"]).keys() == {"a"}
    assert check_together(["a/b/c", "a/b", "c"]).keys() == {"a/b"}


def test_lines_are_appended_with_time_and_result(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "access.jsonl"
    for result in ("restored", "already there"):
        with AccessLog(file, "release") as log:
            log.add("a.png", "age1x", result, original="ä\udcff\n.jpg", sha256="0" * 64)  # type: ignore[arg-type]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["result"] for line in lines] == ["restored", "already there"]
    assert {(line["original"], line["release"], line["reason"]) for line in lines} == {
        ("ä\udcff\n.jpg", "release", None)
    }
    for line in lines:
        moment = datetime.datetime.fromisoformat(line["time"])
        assert moment.utcoffset() == datetime.timedelta(0)
        assert abs(datetime.datetime.now(datetime.UTC) - moment) < datetime.timedelta(minutes=5)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_line_that_was_cut_off_does_not_spoil_the_next(tmp_path: Path) -> None:
    file = tmp_path / "access.jsonl"
    file.write_text('{"time": "20')
    with AccessLog(file, "release") as log:
        log.add("a.png", "age1x", "refused", reason="damaged")
    assert json.loads(file.read_text().splitlines()[1])["reason"] == "damaged"


def test_a_log_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(DestinationError, match="without it nothing is restored"), AccessLog(tmp_path, "release"):
        pass

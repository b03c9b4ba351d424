"""Where a restored original may go: to a free place below the folder, past no link, over no other file."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from veilkit.errors import SealError
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

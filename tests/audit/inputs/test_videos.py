"""Audits of videos: the same faces at the same times on both sides, and nothing left of them afterwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.media.test_video import write_clip
from tests.pipeline.test_video import Square
from veilkit.audit.inputs import videos
from veilkit.audit.options import AuditOptions
from veilkit.audit.run import run_audit
from veilkit.errors import DataError, UsageError
from veilkit.pipeline.protect import protect

pytest.importorskip("av", reason="PyAV is not installed (extra: video)")


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in" / "ward").mkdir(parents=True)
    for number, name in enumerate(("a.mp4", "ward/b.mp4")):
        write_clip(tmp_path / "in" / name, frames=36 + number, height=96, width=128)
    protect(tmp_path / "in", tmp_path / "out", "mask", workers=0)
    monkeypatch.setattr(videos, "load_finder", lambda _: Square(missed=10_000))
    monkeypatch.setattr(videos, "_LEAST", 8)
    return tmp_path / "out"


def test_faces_of_both_sides_are_cut_out_at_the_same_times(release: Path, tmp_path: Path) -> None:
    options = AuditOptions(tmp_path / "in", release, videos=True).check()
    with videos.faces_of_videos(options) as crops:
        sides = [Path(side) for side in (crops.originals, crops.protected)]
        names = [{str(file.relative_to(side)) for file in side.rglob("*.png")} for side in sides]
        assert names[0] == names[1]
        assert {name.partition("/")[0] for name in names[0]} == {"video0000-track0000", "video0001-track0000"}
        assert len(names[0]) >= 8
        for name in names[0]:
            before, after = (np.asarray(Image.open(side / name)) for side in sides)
            assert before.shape == after.shape
            assert before.max() > 200  # the white square
            assert after.max() < 40
    assert not (options.destination / "frames").exists()


def test_an_audit_of_videos_takes_tracks_for_people(release: Path, tmp_path: Path) -> None:
    result = run_audit(tmp_path / "in", release, videos=True, attacks=("linkage",))
    assert (result.pictures, result.people) == (16, 2)
    assert (tmp_path / "out.audit" / "report.html").is_file()
    assert not (tmp_path / "out.audit" / "frames").exists()


def test_what_cannot_be_audited_is_refused(release: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no videos below"):
        run_audit(tmp_path / "in", tmp_path / "empty", videos=True)
    (tmp_path / "other").mkdir()
    write_clip(tmp_path / "other" / "z.mp4", frames=2)
    with pytest.raises(DataError, match="could be paired"):
        run_audit(tmp_path / "in", tmp_path / "other", videos=True)

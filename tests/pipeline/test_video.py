"""Videos in a release: faces followed, frames and times kept, what cannot be read told, runs resumed."""

from __future__ import annotations

import csv
import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pictures import write_folder
from tests.media.test_video import write_clip
from tests.methods.disguises import KnownFaces
from veilkit.errors import MissingExtraError
from veilkit.experts.base import Detections
from veilkit.media.video import Frame, VideoLimits, open_clip, read_frames
from veilkit.methods.controls import Pixelate
from veilkit.methods.faces.controls import FaceBlur, FaceBlurConfig, FaceReplace
from veilkit.methods.faces.method import Changed, FoundFace
from veilkit.methods.mixing import MixUp
from veilkit.pipeline import formats, video_blocks
from veilkit.pipeline.protect import Outcome, protect
from veilkit.pipeline.recovery import recover
from veilkit.pipeline.sealing.age import Identity
from veilkit.rng import Randomness

pytest.importorskip("av", reason="PyAV is not installed (extra: video)")
FRAMES = 45


class Square(KnownFaces):
    """Sees the white square of `test_video.picture`, but for every fourth frame that it is shown."""

    def __init__(self, missed: int = 4) -> None:
        super().__init__([])
        self._asked, self._missed = 0, missed

    def detect(self, images: Tensor) -> list[Detections]:
        return [self._one(image) for image in images]

    def _one(self, image: Tensor) -> Detections:
        self._asked += 1
        rows, columns = torch.nonzero((image > 0.8).all(0), as_tuple=True)
        if self._asked % self._missed == 0 or not len(rows):
            return Detections(torch.zeros(0, 4), torch.zeros(0), torch.zeros(0, 5, 2))
        box = torch.stack([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]).float()
        return Detections(box[None], torch.ones(1), torch.zeros(1, 0, 2))


class Black(FaceBlur):
    """Paints the box of a face black."""

    def change(self, picture: Tensor, face: FoundFace, item: str, *, rng: Randomness) -> Changed:
        left, top, right, bottom = (max(0, round(each)) for each in face.box)
        painted = picture.clone()
        painted[:, top:bottom, left:right] = 0
        return Changed(painted, "black")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source" / "ward").mkdir(parents=True)
    write_clip(tmp_path / "source" / "ward" / "clip.mp4", frames=FRAMES)
    return tmp_path / "source"


def blurred(source: Path, out: Path, **options: Any) -> Outcome:
    method = options.pop("method", None) or FaceBlur(FaceBlurConfig(strength=1.0, second="none"), finder=Square())
    return protect(source, out, method, workers=0, seed=1, **options)


def only(release: Path) -> Path:
    (file,) = release.rglob("*.mp4")
    return file


def frames(file: Path) -> list[Frame]:
    return list(read_frames(open_clip(file, VideoLimits()), VideoLimits()))


def report(out: Path) -> dict[str, Any]:
    (ledger,) = out.with_name(out.name + ".private").glob("*.ledger")
    with sqlite3.connect(ledger) as known:
        ((text,),) = known.execute("SELECT report FROM pictures WHERE substr(output, -4) = ?", (b".mp4",))
    found: dict[str, Any] = json.loads(text)
    return found


def test_videos_lie_beside_pictures_in_a_release(source: Path, tmp_path: Path) -> None:
    write_folder(source, 3, people=3, height=32, width=16)
    outcome = protect(source, tmp_path / "out", "pixelate", workers=1)
    assert (outcome.protected, outcome.videos, outcome.refused) == (4, 1, {})
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["files"], manifest["sound"]) == (4, "drop")
    digest = hashlib.sha256(only(tmp_path / "out").read_bytes()).hexdigest()
    assert digest in (tmp_path / "out" / "SHA256SUMS").read_text()
    assert not list(tmp_path.rglob("*.parts"))
    again = protect(source, tmp_path / "out", "pixelate", workers=0)
    assert again.protected == 4


def test_a_face_missed_in_single_frames_is_covered_in_all(source: Path, tmp_path: Path) -> None:
    outcome = blurred(source, tmp_path / "out", method=Black(finder=Square()))
    before, after = frames(source / "ward" / "clip.mp4"), frames(only(tmp_path / "out"))
    assert [frame.time for frame in before] == [frame.time for frame in after]
    for one, other in zip(before, after, strict=True):
        left = one.number % 40
        assert one.pixels[12:18, left + 2 : left + 8].min() > 200
        assert other.pixels[12:18, left + 2 : left + 8].max() < 60
        assert np.abs(one.pixels[34:].astype(int) - other.pixels[34:]).mean() < 6  # far from it nothing is changed
    # At frame 40 the square jumps back to the left.
    assert outcome.faces == {"changed": 2, "doubtful": 0, "found": 2, "hidden": 0}
    tracks = report(tmp_path / "out")["tracks"]
    assert max(track["outcomes"]["changed"] for track in tracks) >= 40


def test_the_same_face_is_drawn_along_a_track(source: Path, tmp_path: Path) -> None:
    from veilkit.media.tracks import Seen
    from veilkit.methods.faces.frames import treated

    method = FaceReplace(finder=Square())
    pixels = np.full((80, 80, 3), 128, np.uint8)
    made = [
        treated(method, pixels, [(number, Seen((20, 20, 60, 60)))], "a", rng=Randomness.from_seed(0))[0]
        for number in (0, 0, 1)
    ]
    assert (made[0] == made[1]).all()
    assert (made[0] != made[2]).any()


def test_doubtful_tracks_are_hidden_and_counted(source: Path, tmp_path: Path) -> None:
    method = FaceBlur(FaceBlurConfig(unfound="keep"), finder=KnownFaces([]), second=Square(missed=10_000))
    outcome = blurred(source, tmp_path / "out", method=method)
    assert outcome.faces == {"changed": 0, "doubtful": 0, "found": 2, "hidden": 2}
    for frame in frames(only(tmp_path / "out"))[:38]:
        assert frame.pixels[12:18, frame.number + 2 : frame.number + 8].max() < 60


@pytest.mark.parametrize(("unfound", "kept"), [("pixelate", False), ("keep", True)])
def test_a_video_without_faces_is_pixelated_unless_told_otherwise(
    source: Path, tmp_path: Path, unfound: Any, kept: bool
) -> None:
    method = FaceBlur(FaceBlurConfig(unfound=unfound), finder=KnownFaces([]))
    outcome = blurred(source, tmp_path / "out", method=method)
    assert (video_blocks.NO_FACE_KEPT if kept else video_blocks.NO_FACE_HIDDEN) in outcome.told
    pixels = frames(only(tmp_path / "out"))[5].pixels
    assert (pixels[12:18, 7:13].min() > 200) == kept


@pytest.mark.parametrize(("stopped", "block"), [(1, 12), (2, 12), (3, 12), (2, 15)])
def test_a_run_that_was_stopped_goes_on_to_the_same_bytes(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: int, block: int
) -> None:
    monkeypatch.setattr(video_blocks, "BLOCK", block)
    write, looked = video_blocks.write_part, []

    class Counting(Square):
        def detect(self, images: Tensor) -> list[Detections]:
            looked.append(1)
            return super().detect(images)

    def counting() -> FaceBlur:
        return FaceBlur(FaceBlurConfig(second="none"), finder=Counting(missed=10_000))

    blurred(source, tmp_path / "whole", method=counting())
    parts: list[int] = []

    def stopping(*asked: Any) -> int:
        parts.append(1)
        if len(parts) > stopped:
            raise KeyboardInterrupt
        return write(*asked)

    monkeypatch.setattr(video_blocks, "write_part", stopping)
    with pytest.raises(KeyboardInterrupt):
        blurred(source, tmp_path / "out", method=counting())
    assert not list((tmp_path / "out").rglob("*.mp4"))
    monkeypatch.setattr(video_blocks, "write_part", write)
    looked.clear()
    blurred(source, tmp_path / "out", method=counting())
    assert only(tmp_path / "out").read_bytes() == only(tmp_path / "whole").read_bytes()
    assert report(tmp_path / "out") == report(tmp_path / "whole")
    assert len(looked) < FRAMES  # nobody looks again at what was looked at


def test_what_cannot_be_decoded_is_black_and_told_with_its_time(source: Path, tmp_path: Path) -> None:
    clip = source / "ward" / "clip.mp4"
    write_clip(clip, frames=FRAMES, sound=False)
    data = bytearray(clip.read_bytes())
    middle = data.index(b"mdat") + (len(data) - data.index(b"mdat")) // 3
    data[middle : middle + 400] = bytes(400)
    clip.write_bytes(data)
    outcome = blurred(source, tmp_path / "out")
    (told,) = (text for text in outcome.told if "could not be decoded" in text)
    assert " s" in told
    black = [frame.number for frame in frames(only(tmp_path / "out")) if frame.pixels.max() < 20]
    assert black
    first = black[0]
    assert black == list(range(first, len(frames(only(tmp_path / "out")))))  # no other key frame follows


def test_sound_is_left_out_and_told_unless_asked_for(source: Path, tmp_path: Path) -> None:
    left_out = blurred(source, tmp_path / "a")
    assert video_blocks.SOUND_DROPPED in left_out.told
    assert not open_clip(only(tmp_path / "a"), VideoLimits()).has_sound
    kept = blurred(source, tmp_path / "b", sound="keep")
    assert video_blocks.SOUND_KEPT in kept.told
    assert open_clip(only(tmp_path / "b"), VideoLimits()).has_sound
    assert b"Canary" not in only(tmp_path / "b").read_bytes()


def test_what_a_method_does_not_take_is_refused(source: Path, tmp_path: Path) -> None:
    write_folder(source, 16, people=16, height=32, width=16)
    outcome = protect(source, tmp_path / "out", MixUp(), workers=0, labels="none")
    assert outcome.refused == {"a video, which mixup does not protect": 1}


def test_without_the_extra_videos_are_refused_by_its_name(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise MissingExtraError("PyAV", "video")

    monkeypatch.setattr(formats, "check_reader", missing)
    outcome = protect(source, tmp_path / "out", Pixelate(), workers=0)
    assert outcome.refusals is not None
    with outcome.refusals.open(newline="") as lines:
        (row,) = csv.DictReader(lines)
    assert row["source"] == "ward/clip.mp4"
    assert "pip install 'veilkit[video]'" in row["reason"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_frames": 10}, "a video of more than 10 frames"),
        ({"max_pixels": 100}, "frames too large"),
        ({"pad_files": True}, "a video's size tells what it shows"),
    ],
)
def test_limits_and_options_that_do_not_go_with_videos(
    source: Path, tmp_path: Path, options: dict[str, Any], reason: str
) -> None:
    outcome = blurred(source, tmp_path / "out", **options)
    assert [text.partition(":")[0] for text in outcome.refused] == [reason]
    assert not list((tmp_path / "out").rglob("*.mp4"))


def test_kept_names_and_a_common_size(source: Path, tmp_path: Path) -> None:
    write_clip(source / "ward" / "clip.mkv", frames=3, sound=False)
    protect(source, tmp_path / "out", "mask", workers=0, names="keep", size="40x40")
    names = {file.name for file in (tmp_path / "out" / "ward").iterdir()}
    assert names == {"clip.mp4.mp4", "clip.mkv.mp4"}
    assert open_clip(tmp_path / "out" / "ward" / "clip.mp4.mp4", VideoLimits()).width == 40


def test_a_sealed_original_comes_back(source: Path, tmp_path: Path) -> None:
    key = Identity.generate()
    (tmp_path / "id").write_text(key.secret + "\n")
    (tmp_path / "id").chmod(0o600)
    blurred(source, tmp_path / "out", seal_to=[key.recipient])
    recover(tmp_path / "out", tmp_path / "back", identity=tmp_path / "id")
    assert (tmp_path / "back" / "ward" / "clip.mp4").read_bytes() == (source / "ward" / "clip.mp4").read_bytes()


def test_a_turned_video_comes_out_upright(source: Path, tmp_path: Path) -> None:
    clip = source / "ward" / "clip.mp4"
    data = bytearray(clip.read_bytes())
    at = data.index(b"tkhd") + 4 + 40  # the matrix of the first track: turned by 90 degrees
    data[at : at + 36] = b"".join(
        value.to_bytes(4, "big", signed=True) for value in (0, 1 << 16, 0, -(1 << 16), 0, 0, 48 << 16, 0, 1 << 30)
    )
    before = frames(clip)[0].pixels
    clip.write_bytes(data)
    protect(source, tmp_path / "out", Pixelate.configured(None, {"cell": 2.0, "at_height": 0}), workers=0, seed=1)
    after = frames(only(tmp_path / "out"))[0].pixels
    assert after.shape == (64, 48, 3)
    turned = np.rot90(before, -1)
    assert np.abs(turned.astype(int) - after).mean() < 12

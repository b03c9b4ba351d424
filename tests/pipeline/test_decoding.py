"""Recovery by a learned decoder: from the files of a release, to files of the same names, with a line in the log."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.conftest import tree
from tests.methods.tiny import tiny_model_file
from veilkit.errors import CheckpointError, DataError, SealError, UsageError
from veilkit.media.writing import to_pixels, write_atomically
from veilkit.methods.learned import Decoder, decoder_beside
from veilkit.pipeline.protect import protect
from veilkit.pipeline.recovery import decoder as decoding
from veilkit.pipeline.recovery import recover

MODEL = Path(tiny_model_file())
DECODER = decoder_beside(MODEL)


@pytest.fixture
def release(folder: Path, tmp_path: Path) -> Path:
    protect(folder, tmp_path / "out", "privacyreid", model=MODEL, key=tmp_path / "key", workers=0)
    return tmp_path / "out"


def log(tmp_path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (tmp_path / "back.access.jsonl").read_text().splitlines()]


def pngs(folder: Path) -> list[str]:
    return sorted(name for name in tree(folder) if name.endswith(".png"))


def test_each_picture_is_the_decoders_answer_to_its_file(release: Path, tmp_path: Path) -> None:
    done = recover(release, tmp_path / "back", model=DECODER)
    assert (done.restored, done.already_there) == (12, 0)
    assert pngs(tmp_path / "back") == sorted(tree(tmp_path / "back")) == pngs(release)
    decoder = Decoder.load(DECODER)
    for name in pngs(release):
        shown = np.asarray(Image.open(release / name), dtype=np.float32) / 255
        expected = decoder.recover(torch.from_numpy(shown).permute(2, 0, 1)[None])[0]
        assert (np.asarray(Image.open(tmp_path / "back" / name)) == to_pixels(expected)).all()
    lines = log(tmp_path)
    assert [line["picture"] for line in lines] == pngs(release)
    assert {line["recipient"] for line in lines} == {f"decoder {decoder.sha256}"}
    assert {line["result"] for line in lines} == {"restored"}


def test_a_stopped_recovery_goes_on_and_overwrites_nothing(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def stop(*arguments: object) -> None:
        if len(written) == 5:
            raise KeyboardInterrupt
        written.append(write_atomically(*arguments))  # type: ignore[arg-type, func-returns-value]

    with monkeypatch.context() as patched:
        patched.setattr(decoding, "write_atomically", stop)
        with pytest.raises(KeyboardInterrupt):
            recover(release, tmp_path / "back", model=DECODER)
    done = recover(release, tmp_path / "back", model=DECODER)
    assert (done.restored, done.already_there) == (7, 5)
    other = tmp_path / "back" / pngs(release)[0]
    other.write_bytes(b"somebody else's")
    with pytest.raises(SealError, match="another file is already in its place"):
        recover(release, tmp_path / "back", model=DECODER)
    assert other.read_bytes() == b"somebody else's"
    assert log(tmp_path)[-1]["result"] == "refused"


def test_an_altered_picture_is_refused_before_anything_is_written(release: Path, tmp_path: Path) -> None:
    names = pngs(release)
    (release / names[3]).write_bytes((release / names[2]).read_bytes())
    with pytest.raises(SealError, match="1 of 12 pictures cannot be"):
        recover(release, tmp_path / "back", model=DECODER)
    assert not (tmp_path / "back").exists()
    assert [line["picture"] for line in log(tmp_path)] == [names[3]]
    assert recover(release, tmp_path / "back", model=DECODER, only=names[:2]).restored == 2


def test_jpeg_releases_come_back_as_png(folder: Path, tmp_path: Path) -> None:
    protect(folder, tmp_path / "out", "privacyreid", model=MODEL, image_format="jpeg", workers=0)
    assert recover(tmp_path / "out", tmp_path / "back", model=DECODER).restored == 12
    names = {Path(name).stem for name in tree(tmp_path / "out") if name.endswith(".jpg")}
    assert {Path(name).stem for name in pngs(tmp_path / "back")} == names


def test_a_decoder_of_another_model_is_refused(release: Path, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is the decoder of another model"):
        recover(release, tmp_path / "back", model=decoder_beside(Path(tiny_model_file(1))))
    protect(folder, tmp_path / "blurred", "blur", workers=0)
    with pytest.raises(DataError, match="undoes privacyreid, but this release was made by blur"):
        recover(tmp_path / "blurred", tmp_path / "back", model=DECODER)
    assert not (tmp_path / "back").exists()


def test_exactly_one_way_must_be_given(release: Path, tmp_path: Path) -> None:
    for given, found in (({}, "neither"), ({"identity": "a", "model": DECODER}, "both")):
        with pytest.raises(UsageError, match=f"--identity.*--model.*but got {found}"):
            recover(release, tmp_path / "back", **given)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="belong to sealed originals"):
        recover(release, tmp_path / "back", model=DECODER, key=tmp_path / "key")

"""A folder to a release: what is refused before anything is made, and what a second run does."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import process
from pictures import picture, write_folder
from veilkit.errors import DataError, DestinationError, KeyFileError, UsageError
from veilkit.media.reading import Limits
from veilkit.media.writing import write_atomically
from veilkit.methods.controls import Pixelate
from veilkit.pipeline import results, worker
from veilkit.pipeline.job import Job
from veilkit.pipeline.manifest import read_manifest, read_sums
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_folder(tmp_path / "source", 6, people=3, height=32, width=16)
    return tmp_path / "source"


def snapshot(root: Path) -> dict[str, tuple[str, int, int]]:
    """Content, time and rights of everything below a folder, the folder itself included."""
    found = {}
    for path in (root, *root.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(root))] = (content, status.st_mtime_ns, status.st_mode)
    return found


def size(file: Path) -> tuple[int, int]:
    """Width and height of a picture that decodes completely."""
    with Image.open(file) as image:
        image.load()
        return image.size


def pictures(release: Path) -> dict[str, bytes]:
    return {str(file.relative_to(release)): file.read_bytes() for file in release.rglob("*.png")}


def test_a_release_is_complete_checked_and_nothing_else(source: Path, tmp_path: Path) -> None:
    before = snapshot(source)
    outcome = protect(source, tmp_path / "release", "pixelate")
    assert snapshot(source) == before
    assert (outcome.protected, dict(outcome.refused), outcome.new_key) == (6, {}, True)
    release = tmp_path / "release"
    sums = dict(read_sums(release / "SHA256SUMS"))
    assert sums == {name: hashlib.sha256(data).hexdigest() for name, data in pictures(release).items()}
    assert {path.name for path in release.iterdir()} == {*sums, "SHA256SUMS", "manifest.json"}
    manifest = read_manifest(release)
    assert manifest is not None
    assert (manifest.files, manifest.method, manifest.seed) == (6, "pixelate", None)
    assert manifest.sums_sha256 == hashlib.sha256((release / "SHA256SUMS").read_bytes()).hexdigest()


def test_pixels_are_those_of_the_method(source: Path, tmp_path: Path) -> None:
    """The mean of each cell of the decoded original, by NumPy."""
    protect(source, tmp_path / "release", "pixelate", settings={"cell": 8, "at_height": 0}, names="kept")
    for file in source.rglob("*.jpg"):
        original = np.asarray(Image.open(file).convert("RGB"), dtype=np.float64)
        cells = original.reshape(4, 8, 2, 8, 3).mean(axis=(1, 3)).repeat(8, axis=0).repeat(8, axis=1)
        released = np.asarray(Image.open(tmp_path / "release" / file.relative_to(source).with_suffix(".png")))
        assert np.abs(released - cells).max() <= 0.51


def test_places_that_overlap_are_refused_and_nothing_is_made(source: Path, tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    for destination in (source, source / "inside", source / "x" / ".." / "inside", tmp_path):
        with pytest.raises(UsageError, match="must lie apart"):
            protect(source, destination, "pixelate")
    for key in (source / "key", tmp_path / "release" / "key", source / "person000" / "key"):
        with pytest.raises(UsageError, match="kept apart"):
            protect(source, tmp_path / "release", "pixelate", key=key)
    with pytest.raises(UsageError, match="not both"):
        protect(source, tmp_path / "release", "pixelate", key=tmp_path / "key", seed=1)
    with pytest.raises(DataError, match="not there"):
        protect(tmp_path / "absent", tmp_path / "release", "pixelate")
    assert snapshot(tmp_path) == before


def test_a_link_does_not_hide_that_places_overlap(source: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(source)
    with pytest.raises(UsageError, match="must lie apart"):
        protect(source, tmp_path / "link" / "release", "pixelate")


def test_a_folder_with_other_files_is_refused_and_left_alone(source: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    release.mkdir()
    (release / "thesis.txt").write_text("mine")
    with pytest.raises(DestinationError, match="files that are not of this release"):
        protect(source, release, "pixelate")
    assert [path.name for path in release.iterdir()] == ["thesis.txt"]


def test_another_method_or_key_does_not_go_into_a_finished_release(source: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    protect(source, release, "pixelate", key=tmp_path / "k" / "key")
    before = snapshot(release)
    with pytest.raises(DestinationError, match=r"another method \(pixelate there, blur here\)"):
        protect(source, release, "blur", key=tmp_path / "k" / "key")
    with pytest.raises(DestinationError, match=r"other settings of pixelate \(cell: 24.0 there, 9.0 here\)"):
        protect(source, release, "pixelate", settings={"cell": 9}, key=tmp_path / "k" / "key")
    with pytest.raises(DestinationError, match="not of this release"):
        protect(source, release, "pixelate", key=tmp_path / "other" / "key")
    (tmp_path / "k" / "key").write_text("damaged")
    with pytest.raises(KeyFileError):
        protect(source, release, "pixelate", key=tmp_path / "k" / "key")
    assert snapshot(release) == before


def test_times_of_files_do_not_tell_in_which_order_they_were_made(source: Path, tmp_path: Path) -> None:
    protect(source, tmp_path / "release", "blur", names="keep")
    assert len({path.stat().st_mtime_ns for path in (tmp_path / "release").rglob("*.png")}) == 1


def test_a_second_run_does_nothing_twice(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    protect(source, tmp_path / "release", "noise")
    before = pictures(tmp_path / "release")
    times = {path: path.stat().st_ctime_ns for path in (tmp_path / "release").glob("*.png")}
    monkeypatch.setattr(results, "encode", lambda *_: pytest.fail("a finished picture was done again"))
    outcome = protect(source, tmp_path / "release", "noise")
    assert (outcome.protected, outcome.new_key) == (6, False)
    assert pictures(tmp_path / "release") == before
    assert {path: path.stat().st_ctime_ns for path in times} == times


def test_results_that_were_lost_or_altered_are_made_again(source: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    protect(source, release, "noise")
    before = pictures(release)
    lost, altered, cut = sorted(release.glob("*.png"))[:3]
    lost.unlink()
    altered.write_bytes(b"other")
    cut.write_bytes(cut.read_bytes()[:50])
    protect(source, release, "noise")
    assert pictures(release) == before


def test_sources_that_come_change_and_go(source: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    protect(source, release, "noise", names="kept")
    before = pictures(release)
    Image.fromarray(picture(50, 32, 16)).save(source / "person000" / "new.png")
    Image.fromarray(picture(51, 32, 16)).save(source / "person001" / "000001.jpg")
    (source / "person002" / "000002.jpg").unlink()
    outcome = protect(source, release, "noise", names="kept")
    after = pictures(release)
    assert (outcome.protected, outcome.gone) == (6, 1)
    assert after.keys() - before.keys() == {"person000/new.png"}
    assert [name for name in before if after[name] != before[name]] == ["person001/000001.png"]
    assert dict(read_sums(release / "SHA256SUMS")).keys() == after.keys()


def test_another_picture_under_an_old_name_gets_other_noise(source: Path, tmp_path: Path) -> None:
    """Otherwise the difference of the two releases would be the difference of the two originals."""
    grey = {"at": source / "person000" / "grey.png"}
    noises = []
    for level in (100, 101):
        Image.new("RGB", (16, 32), (level,) * 3).save(grey["at"])
        protect(source, tmp_path / "release", "noise", settings={"sigma": 0.05}, names="kept")
        noises.append(np.asarray(Image.open(tmp_path / "release" / "person000" / "grey.png"), dtype=float) - level)
    assert abs(np.corrcoef(noises[0].ravel(), noises[1].ravel())[0, 1]) < 0.15


def test_refused_pictures_are_told_and_taken_when_mended(source: Path, tmp_path: Path) -> None:
    whole = (source / "person000" / "000000.jpg").read_bytes()
    (source / "person000" / "000000.jpg").write_bytes(whole[:300])
    outcome = protect(source, tmp_path / "release", "pixelate")
    assert (outcome.protected, sum(outcome.refused.values())) == (5, 1)
    assert outcome.refusals is not None
    assert "person000/000000.jpg" in outcome.refusals.read_text()
    (source / "person000" / "000000.jpg").write_bytes(whole)
    outcome = protect(source, tmp_path / "release", "pixelate")
    assert (outcome.protected, dict(outcome.refused), outcome.refusals) == (6, {}, None)
    assert not list((tmp_path / "release.private").glob("*.csv"))


def test_one_tiny_or_huge_picture_does_not_set_the_size_of_a_group(source: Path, tmp_path: Path) -> None:
    for name, extent in (("tiny", (1, 1)), ("huge", (400, 300))):
        (source / name).mkdir()
        Image.new("RGB", extent).save(source / name / "a.png")
    protect(source, tmp_path / "release", "patches", settings={"people": 5})
    assert {size(file) for file in (tmp_path / "release").glob("*.png")} == {(16, 32)}


def test_large_pictures_wait_for_each_other(tmp_path: Path) -> None:
    nobody = Randomness.from_seed(0)
    one = worker.Worker(Job(Pixelate(), nobody, tmp_path, tmp_path, tmp_path, "png", Limits()))
    entered = threading.Event()

    def work_on_a_large_one() -> None:
        with one._alone_if_large(worker._LARGE + 1):
            entered.set()

    with (tmp_path / "large").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        thread = threading.Thread(target=work_on_a_large_one)
        thread.start()
        assert not entered.wait(0.3)
    assert entered.wait(60)
    thread.join()


def test_waiting_changes_no_result(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    protect(source, tmp_path / "one", "noise", seed=1)
    monkeypatch.setattr(worker, "_LARGE", 10)
    protect(source, tmp_path / "two", "noise", seed=1)
    assert pictures(tmp_path / "one") == pictures(tmp_path / "two")
    assert not (tmp_path / "two" / ".veilkit").exists()


def test_limits_are_kept(source: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "encode", lambda *_: pytest.fail("a picture above the limit was protected"))
        outcome = protect(source, tmp_path / "release", "pixelate", max_pixels=100)
    assert dict(outcome.refused) == {"picture too large": 6}


def test_an_empty_source_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "notes.txt").touch()
    with pytest.raises(DataError, match="no pictures"):
        protect(tmp_path / "source", tmp_path / "release", "pixelate")


def test_a_disk_that_fills_up_stops_the_run_and_the_rest_follows(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, done = tmp_path / "release", 0

    def nearly_full(target: Path, data: bytes, scratch: Path, *, undated: bool) -> None:
        nonlocal done
        done += 1
        if done == 4:
            (scratch / f"{os.getpid()}.part").symlink_to("/dev/full")
        write_atomically(target, data, scratch, undated=undated)

    monkeypatch.setattr(results, "write_atomically", nearly_full)
    with pytest.raises(DestinationError, match="disk is full"):
        protect(source, release, "noise", seed=1)
    assert len(pictures(release)) == 3
    assert not (release / "manifest.json").exists()
    monkeypatch.undo()
    protect(source, release, "noise", seed=1)
    protect(source, tmp_path / "unbroken", "noise", seed=1)
    assert pictures(release) == pictures(tmp_path / "unbroken")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_file_system_that_is_full_or_read_only(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 40, people=4, height=128, width=64)
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run([mount, "-t", "tmpfs", "-o", "size=256k", "none", disk], check=False).returncode
    ):
        pytest.skip("mounting is not permitted here")
    try:
        with pytest.raises(DestinationError, match="disk is full"):
            protect(tmp_path / "source", disk / "release", "noise", key=tmp_path / "private" / "key")
        assert {size(file) for file in (disk / "release").glob("*.png")} == {(64, 128)}
        subprocess.run([mount, "-o", "remount,ro", disk], check=True)
        with pytest.raises(DestinationError, match="Read-only file system"):
            protect(tmp_path / "source", disk / "release", "noise", key=tmp_path / "private" / "key")
    finally:
        subprocess.run(["umount", disk], check=True)


def test_everything_private_is_for_its_owner_alone(source: Path, tmp_path: Path) -> None:
    (source / "damaged.jpg").write_bytes(b"not a picture")
    protect(source, tmp_path / "release", "pixelate")
    private = tmp_path / "release.private"
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in private.iterdir()} == {0o600}


def test_an_interrupt_ends_in_130_and_the_same_command_goes_on(tmp_path: Path) -> None:
    source, release = tmp_path / "source", tmp_path / "release"
    write_folder(source, 300, height=256, width=128)
    (source / "broken.png").write_bytes(b"not a picture")
    arguments = ("protect", source, release, "--method", "noise", "--seed", "1", "--workers", "0")
    with (tmp_path / "log").open("wb") as log:
        child = subprocess.Popen(process.command(*arguments), stdout=log, stderr=log)
        deadline = time.monotonic() + 300
        while len(list(release.glob("*.png"))) < 3 and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        assert child.wait() == 130
    output = (tmp_path / "log").read_text()
    assert "go on with the same command" in output
    assert "Traceback" not in output
    done = len(list(release.glob("*.png")))
    assert 3 <= done < 300
    assert not (release / "manifest.json").exists()
    shutil.rmtree(source / "person009")
    outcome = protect(source, release, "noise", seed=1)
    assert outcome.protected == 270
    assert len(list(release.glob("*.png"))) == 270 + outcome.gone
    ended = process.run(*arguments)
    assert ended.code == 3, ended.output
    assert "1  not a picture in one of the formats" in ended.output

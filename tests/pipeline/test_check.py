"""Looking before anything is written: what a folder holds, which methods fit, and what a few pictures become."""

from __future__ import annotations

import csv
import json
import re
import stat
from pathlib import Path

import pytest
from PIL import Image

from pictures import picture, write_folder
from tests.cli.test_commands import veilkit
from tests.conftest import tree
from veilkit.cli.check import summary
from veilkit.errors import DataError, UsageError
from veilkit.media.boxes import DrawnBox, read_boxes, write_csv
from veilkit.pipeline.check import check_source, dry_run, preview
from veilkit.pipeline.options import ProtectOptions
from veilkit.pipeline.protect import protect


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    write_folder(folder, 6, people=2, height=96, width=96)
    (folder / "person000" / "clip.nef").write_bytes(b"")
    (folder / "person001" / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    (folder / "notes.txt").write_text("words")
    return folder


def shown(page: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(re.findall(r'id="data">(.*?)</script>', page.read_text())[0])[
        "pictures"
    ]
    return found


def test_what_a_folder_holds_is_told_and_nothing_is_written(source: Path, tmp_path: Path) -> None:
    pytest.importorskip("dlib")
    before = tree(tmp_path)
    found = check_source(source, look_at=1)
    assert (found.pictures, found.readable, found.others, found.people) == (8, 6, 1, 2)
    assert (found.kind, found.looked) == ("crops of faces", 1)
    assert set(found.refused) == {
        "a raw picture of a camera, which is not read",
        "not a picture in one of the formats JPEG, PNG, WEBP, BMP, TIFF, GIF, AVIF, HEIC",
    }
    assert [path for path, _ in found.listed] == ["person000/clip.nef", "person001/broken.jpg"]
    names = {fit.name: fit.needs for fit in found.methods}
    assert "--model" in names["disguise"]
    assert names["faceblur"] == "--preset crops"
    assert "expert" in names["pixelfade"]
    assert tree(tmp_path) == before


def test_pictures_without_any_face_are_told_as_that(source: Path) -> None:
    found = check_source(source)
    assert (dict(found.faces), found.looked, found.without) == ({"found": 0, "doubtful": 0}, 6, 6)
    assert "0 found, 0 doubtful regions, 6 pictures without any" in summary(found)


def test_photos_are_offered_what_is_for_crops_only_for_their_people(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 4, people=4, height=64, width=640)
    found = check_source(tmp_path / "source", look_at=0)
    names = {fit.name for fit in found.methods}
    assert found.kind == "photos"
    assert {"faceblur", "blur"} <= names
    assert not names & {"fro", "patches"}
    assert {fit.name for fit in found.methods if "--parts people" in fit.needs} >= {"pixelfade", "privacyreid"}


def test_the_command_is_short_and_names_files_only_when_asked(source: Path) -> None:
    done = veilkit("check", source, "--faces", 0, "--workers", 0)
    assert done.returncode == 3
    assert done.stdout.startswith("6 of 8 pictures can be protected")
    assert "a raw picture of a camera, which is not read: develop it to PNG or JPEG first" in done.stderr
    assert "clip.nef" not in done.stdout + done.stderr
    assert "person000/clip.nef" in veilkit("check", source, "--faces", 0, "--workers", 0, "--names").stderr
    told = json.loads(veilkit("check", source, "--faces", 0, "--workers", 0, "--json").stdout)
    assert (told["readable"], told["others"]) == (6, 1)
    assert "clip.nef" not in json.dumps(told)
    assert veilkit("check", source / "no such").returncode == 2


def test_a_preview_writes_nothing_into_the_destination(source: Path, tmp_path: Path) -> None:
    options = ProtectOptions.of(source, tmp_path / "release", "faceblur", preset="crops")
    page = preview(options, 3)
    assert page == tmp_path / "release.private" / "preview.html"
    assert not (tmp_path / "release").exists()
    pictures = shown(page)
    assert len(pictures) == 2  # of three spread over eight files, one is damaged
    for each in pictures:
        assert (page.parent / str(each["after"])).is_file()
    outcome = protect(source, tmp_path / "release", "faceblur", preset="crops")
    assert not outcome.new_key
    released = tree(tmp_path / "release")
    for each in pictures:
        after = page.parent / str(each["after"])
        assert after.read_bytes() == released[after.name]  # the very picture that the release has
    with pytest.raises(UsageError, match="no preview"):
        preview(ProtectOptions.of(source, tmp_path / "mixed", "patches"), 3)


@pytest.mark.parametrize("seed", [None, 1])
def test_a_preview_is_for_its_owner_alone(source: Path, tmp_path: Path, seed: int | None) -> None:
    page = preview(ProtectOptions.of(source, tmp_path / "release", "faceblur", preset="crops", seed=seed), 1)
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert {stat.S_IMODE(each.stat().st_mode) for each in (page.parent, page.parent / "preview")} == {0o700}


def test_a_dry_run_reads_everything_and_writes_nothing(source: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    found = dry_run(ProtectOptions.of(source, tmp_path / "release", "pixelate", max_pixels=100))
    assert (found.pictures, found.readable) == (8, 0)
    assert tree(tmp_path) == before
    words = ("protect", source, tmp_path / "release", "--method", "pixelate", "--dry-run", "--workers", 0)
    done = veilkit(*words)
    assert done.returncode == 3
    assert done.stdout.startswith("Nothing was written. 6 of 8 pictures")
    assert tree(tmp_path) == before


def test_boxes_are_kept_and_only_their_pictures_are_done_again(source: Path, tmp_path: Path) -> None:
    first = protect(source, tmp_path / "release", "faceblur", preset="crops", names="kept", image_format="png")
    assert first.review is not None
    assert first.review.stat().st_mode & 0o077 == 0
    assert {each["path"] for each in shown(first.review)} == {f"person{n % 2:03}/{n:06}.jpg" for n in range(6)}
    before = {path: data for path, data in tree(tmp_path / "release").items() if path.endswith(".png")}
    write_csv(tmp_path / "boxes.csv", {"person000/000002.jpg": (DrawnBox(8, 8, 16, 24),)})
    boxed = {"preset": "crops", "names": "kept", "image_format": "png"}
    second = protect(source, tmp_path / "release", "faceblur", boxes=tmp_path / "boxes.csv", **boxed)  # type: ignore[arg-type]
    after = {path: data for path, data in tree(tmp_path / "release").items() if path.endswith(".png")}
    assert {path for path in before if before[path] != after[path]} == {"person000/000002.png"}
    with Image.open(tmp_path / "release" / "person000" / "000002.png") as hidden:
        assert hidden.crop((8, 8, 24, 32)).getextrema() == ((0, 0),) * 3
    assert second.review is not None
    (now,) = [each for each in shown(second.review) if each["path"] == "person000/000002.jpg"]
    assert {"box": [8, 8, 24, 32], "outcome": "hidden as asked", "doubtful": False, "asked": "hide"} in now["faces"]  # type: ignore[operator]
    third = protect(source, tmp_path / "release", "faceblur", **boxed)  # type: ignore[arg-type]
    assert tree(tmp_path / "release").items() >= after.items()  # without boxes given again, they still count
    assert third.faces["hidden"] == 1
    with Path(next((tmp_path / "release.private").glob("*.faces.csv"))).open(newline="") as lines:
        rows = {row["source"]: row for row in csv.DictReader(lines)}
    assert rows["person000/000002.jpg"]["hidden"] == "1"


def test_boxes_that_fit_nothing_are_an_error(source: Path, tmp_path: Path) -> None:
    write_csv(tmp_path / "boxes.csv", {"elsewhere.jpg": (DrawnBox(8, 8, 16, 24),)})
    with pytest.raises(DataError, match="1 of 1 pictures with boxes are not below"):
        protect(source, tmp_path / "release", "faceblur", preset="crops", boxes=tmp_path / "boxes.csv")
    for method in ("pixelate", "ksame"):  # whose pictures are brought to one size, where boxes would be elsewhere
        with pytest.raises(UsageError, match=f"faces of one picture .* not for {method}"):
            protect(source, tmp_path / "release", method, boxes=tmp_path / "boxes.csv")
    with pytest.raises(UsageError, match="no example picture"):
        protect(source, tmp_path / "release", "faceblur", spare=[tmp_path / "nobody.jpg"])


def test_boxes_of_yolo_name_pictures_without_their_suffix(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "yolo" / "person000"
    folder.mkdir(parents=True)
    (folder / "000002.txt").write_text("0 0.5 0.5 0.25 0.25\n")
    protect(
        source,
        tmp_path / "release",
        "faceblur",
        preset="crops",
        names="kept",
        image_format="png",
        boxes=tmp_path / "yolo",
    )
    with Image.open(tmp_path / "release" / "person000" / "000002.png") as hidden:
        assert hidden.crop((40, 40, 56, 56)).getextrema() == ((0, 0),) * 3


def test_a_page_shows_what_a_browser_could_not(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    pages = [Image.fromarray(picture(index, 64, 48)) for index in range(2)]
    pages[0].save(tmp_path / "source" / "scan.tif", save_all=True, append_images=pages[1:])
    outcome = protect(tmp_path / "source", tmp_path / "release", "faceblur", preset="crops")
    assert outcome.review is not None
    (scan,) = shown(outcome.review)
    for side in ("before", "after"):
        file = outcome.review.parent / str(scan[side])
        assert file.suffix == ".jpg"
        with Image.open(file) as copy:
            assert copy.size == (48, 64)
    assert "2 frames or pages" in str(scan["notes"])


@pytest.mark.parametrize("form", ["boxes.csv", "boxes.json", "boxes"])
def test_boxes_come_out_as_they_go_in(source: Path, tmp_path: Path, form: str) -> None:
    protect(source, tmp_path / "release", "faceblur", preset="crops", names="kept", image_format="png")
    done = veilkit("ledger", "boxes", tmp_path / "release", tmp_path / form)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("6 boxes of 6 pictures")
    assert (tmp_path / form).stat().st_mode & 0o077 == 0
    drawn = read_boxes(tmp_path / form)
    assert {len(each) for each in drawn.values()} == {1}
    (box,) = drawn["person000/000000" + (".jpg" if "." in form else "")]
    assert (box.corners(96, 96), box.action) == ((0, 0, 96, 96), "protect")
    before = tree(tmp_path / "release")
    again = protect(
        source,
        tmp_path / "release",
        "faceblur",
        preset="crops",
        names="kept",
        image_format="png",
        boxes=tmp_path / form,
    )
    assert again.protected == 6
    assert {path: data for path, data in tree(tmp_path / "release").items() if path.endswith(".png")} == {
        path: data for path, data in before.items() if path.endswith(".png")
    }
    assert veilkit("ledger", "boxes", tmp_path / "release", tmp_path / form).returncode == 2
    plain = protect(source, tmp_path / "plain", "mask").destination
    assert "did not look for faces" in veilkit("ledger", "boxes", plain, tmp_path / "none.csv").stderr


def test_a_folder_of_everything_ends_with_a_reason_for_each_file(tmp_path: Path) -> None:
    pytest.importorskip("pillow_heif").from_pillow(Image.fromarray(picture(0, 32, 32))).save(tmp_path / "a.heic")
    source = tmp_path / "source"
    write_folder(source, 2, people=1, height=32, width=32)
    (tmp_path / "a.heic").rename(source / "a.heic")
    frames = [Image.fromarray(picture(index, 32, 32)) for index in range(3)]
    frames[0].save(source / "b.gif", save_all=True, append_images=frames[1:])
    frames[0].save(source / "c.tif", save_all=True, append_images=frames[1:])
    frames[0].save(source / "d.pdf")
    (source / "e.mp4").write_bytes(b"\0\0\0\x18ftypisom" + bytes(40))
    (source / "f.jpg").write_bytes((source / "person000" / "000000.jpg").read_bytes()[:400])
    (source / "g.nef").write_bytes(b"raw")
    (source / "h.txt").write_text("words")
    done = veilkit("protect", source, tmp_path / "release", "--method", "pixelate", "--workers", 1)
    assert done.returncode == 3
    assert done.stdout.startswith("5 pictures protected")
    assert "1 other files passed over" in done.stdout
    with next((tmp_path / "release.private").glob("*.refused.csv")).open(newline="") as lines:
        reasons = {row["source"]: row["reason"] for row in csv.DictReader(lines)}
    assert set(reasons) == {"d.pdf", "e.mp4", "f.jpg", "g.nef"}
    for path, step in (("d.pdf", "take its pictures out"), ("g.nef", "develop it"), ("f.jpg", "damaged")):
        assert step in reasons[path]
    assert "video" in reasons["e.mp4"]
    refused = sum(int(line.split()[0]) for line in done.stderr.splitlines() if line.startswith("   "))
    assert refused == 4
    assert veilkit("protect", source, source / "inside", "--method", "pixelate").returncode == 2

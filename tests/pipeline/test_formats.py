"""What looks like a picture or a video and is not read is refused by name; nothing is passed over in silence."""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pictures import picture, write_folder
from tests.cli.test_commands import veilkit
from tests.conftest import random_picture, tree
from veilkit.errors import DestinationError, RefusedImage, UsageError, VeilkitError
from veilkit.key import read_key
from veilkit.media.reading import Limits, decode, decode_frames
from veilkit.methods.in_memory import load_method
from veilkit.pipeline.formats import foreign_kind
from veilkit.pipeline.ledger import Entry, Ledger
from veilkit.pipeline.manifest import read_manifest
from veilkit.pipeline.pairing import pair
from veilkit.pipeline.protect import Outcome, protect

OTHERS = {
    "notes.txt": b"BMW, MM and P5 are words\n",
    "table.csv": b"path,identity\na.jpg,1\n",
    "about.json": b"{}",
    "empty": b"",
    "song.m4a": b"\0\0\0\x20ftypM4A " + bytes(40),
    "page.html": b"<!doctype html><html><body><svg></svg></body></html>",
    "letter.pdf": b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n%%EOF\n",
    "model.safetensors": bytes(64),
}


def encoded(form: str) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(picture(0, 16, 16)).save(buffer, form)
    return buffer.getvalue()


FOREIGN = {
    "c": (b"\0\0\0\x1cftypheic" + bytes(40), "HEIC"),
    "d": (encoded("AVIF"), "AVIF"),
    "e.mp4": (b"", "a video"),
    "f": (b"\0\0\0\x18ftypisom" + bytes(40), "a video"),
    "g.MOV": (b"", "a video"),
    "h": (b"\0\0\0\x08wide\0\0\1\0mdat" + bytes(40), "a video"),
    "i": (b"RIFF\0\0\0\0AVI LIST", "a video"),
    "j": (b"\x1aE\xdf\xa3" + bytes(40), "a video"),
    "k.nef": (b"", "a raw picture"),
    "l": (b"\0\0\0\x18ftypcrx " + bytes(40), "a raw picture"),
    "m.psd": (b"", "a drawing program"),
    "n": (b"8BPS\0\1", "a drawing program"),
    "o.svg": (b"", "a drawing of shapes"),
    "p.xml": (b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>', "a drawing of shapes"),
    "q.pdf": (encoded("PDF"), "a PDF with pictures"),
    "r.pdf": (b"%PDF-1.7\n" + bytes(2**20 - 20) + b"<< /Subtype /Image >>\n%%EOF", "a PDF with pictures"),
    "t": (encoded("JPEG"), "a JPEG picture whose name does not say so"),
    "u.dat": (encoded("PNG"), "a PNG picture whose name does not say so"),
    "v.bin": (encoded("WEBP"), "a WebP picture whose name does not say so"),
    "w.old": (encoded("BMP"), "a BMP picture whose name does not say so"),
    "x.bak": (encoded("TIFF"), "a TIFF or raw picture whose name does not say so"),
    "y": (encoded("JPEG2000"), "JPEG 2000"),
    "z": (encoded("PPM"), "a picture"),
    "scan": (bytes(128) + b"DICM", "a DICOM picture"),
}


def refusals(private: Path) -> dict[str, str]:
    file = next(private.glob("*.refused.csv"))
    with file.open(newline="", encoding="utf-8", errors="surrogateescape") as lines:
        return {row["source"]: row["reason"] for row in csv.DictReader(lines)}


def run(folder: Path, **options: object) -> Outcome:
    return protect(folder / "source", folder / "release", "mask", **{"names": "kept", **options})  # type: ignore[arg-type]


def test_what_looks_like_a_picture_is_refused_by_name_with_the_next_step(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 2, people=2, height=16, width=8)
    for name, data in (*OTHERS.items(), *((name, data) for name, (data, _) in FOREIGN.items())):
        (tmp_path / "source" / name).write_bytes(data)
    outcome = run(tmp_path)
    assert (outcome.protected, outcome.passed_over) == (2, len(OTHERS))
    reasons = refusals(tmp_path / "release.private")
    assert set(reasons) == set(FOREIGN)
    for name, (_, kind) in FOREIGN.items():
        assert kind in reasons[name], name
        assert ("which is not read: " in reasons[name]) == (kind != "a video")  # whose insides are none
    again = run(tmp_path)
    assert (again.protected, again.passed_over, again.refused) == (2, len(OTHERS), outcome.refused)


@pytest.mark.parametrize("workers", [0, 1])
def test_methods_that_mix_refuse_them_too(tmp_path: Path, workers: int) -> None:
    write_folder(tmp_path / "source", 4, people=4, height=16, width=8)
    (tmp_path / "source" / "a.mov").write_bytes(b"anything")
    outcome = protect(tmp_path / "source", tmp_path / "release", "patches", workers=workers)
    assert (outcome.protected, sum(outcome.refused.values())) == (4, 1)


def test_the_command_tells_them_and_ends_with_3(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 1, people=1, height=16, width=8)
    (tmp_path / "source" / "holiday.mov").write_bytes(b"")
    (tmp_path / "source" / "notes.txt").write_text("words")
    done = veilkit("protect", tmp_path / "source", tmp_path / "release", "--method", "mask", "--workers", 0)
    assert done.returncode == 3, done.stderr
    assert "1 other files passed over" in done.stdout
    assert "not a video in a format that is read" in done.stderr
    assert "holiday" not in done.stdout + done.stderr


def test_a_refused_neighbour_does_not_change_a_kept_name(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    for name in ("IMG_1.jpg", "IMG_1.psd", "IMG_1.mov"):
        (tmp_path / "source" / name).write_bytes(encoded("JPEG"))
    assert run(tmp_path).protected == 1
    assert (tmp_path / "release" / "IMG_1.png").is_file()


def test_a_linked_folder_is_named_and_not_followed(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 2, people=2, height=16, width=8)
    write_folder(tmp_path / "elsewhere", 2, people=2, height=16, width=8)
    (tmp_path / "source" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "source" / "linked.png").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "source" / "loop").symlink_to("..")
    outcome = run(tmp_path)
    assert (outcome.protected, outcome.passed_over) == (2, 0)
    assert dict(outcome.refused) == {"a link to a folder, which is not followed": 3}
    assert set(refusals(tmp_path / "release.private")) == {"linked", "linked.png", "loop"}
    (tmp_path / "source" / "linked.png").unlink()  # a picture in its place is protected under its own name
    Image.fromarray(picture(3, 16, 16)).save(tmp_path / "source" / "linked.png")
    assert run(tmp_path).protected == 3
    assert (tmp_path / "release" / "linked.png").is_file()


def _deep(root: Path, levels: int) -> None:
    """Folders below each other, whose path is longer than any system call takes, with a picture in the last."""
    place = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 200, dir_fd=place)
        place, outer = os.open("d" * 200, os.O_RDONLY, dir_fd=place), place
        os.close(outer)
    with os.fdopen(os.open("low.png", os.O_WRONLY | os.O_CREAT, dir_fd=place), "wb") as out:
        out.write(encoded("PNG"))
    os.close(place)


def test_a_path_beyond_the_systems_limit_is_refused_and_the_rest_is_done(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 2, people=2, height=16, width=8)
    _deep(tmp_path / "source", 25)
    outcome = run(tmp_path)
    assert outcome.protected == 2
    assert dict(outcome.refused) == {"its path is too long for the system": 1}
    shutil.rmtree(tmp_path / "source")


def test_a_path_that_is_too_long_in_the_release_alone_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 2, people=2, height=16, width=8)
    room = os.pathconf(tmp_path, "PC_PATH_MAX") - len(os.fsencode(tmp_path / "source")) - 1
    _deep(tmp_path / "source", (room - len("/low.png")) // 201)
    longest = tmp_path / ("r" * 220)  # the pictures' paths grow by as much
    outcome = protect(tmp_path / "source", longest, "mask", names="kept")
    assert outcome.protected == 2
    assert dict(outcome.refused) == {"its path would be too long in the release": 1}
    shutil.rmtree(tmp_path / "source")


@pytest.mark.parametrize("seed", range(3))
def test_no_random_text_is_taken_for_a_picture(seed: int) -> None:
    words = np.random.default_rng(seed).choice(list("abcdefghijklmnopqrstuvwxyz ,.\n0123456789"), (300, 200))
    assert all(foreign_kind("notes.txt", "".join(line).encode()) is None for line in words)


def test_an_altered_name_of_a_refused_file_is_not_believed(tmp_path: Path) -> None:
    for output, state in (("../x.refused", "waiting"), ("x.refused", "refused"), ("a" * 26 + ".refused", "done")):
        with Ledger(tmp_path / f"{state}.ledger") as ledger:
            ledger.enrol([Entry("a.heic", output, state=state)])
            ledger._db.execute("UPDATE pictures SET state = ?", (state,))
            with pytest.raises(DestinationError, match="altered by somebody"):
                list(ledger.entries())


def test_folders_may_keep_their_layout_under_pseudonyms(tmp_path: Path) -> None:
    for path in ("query/ann/1.jpg", "bounding_box_test/ann/2.jpg", "bounding_box_test/bob/3.jpg", "4.jpg"):
        file = tmp_path / "source" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(len(path), 16, 8)).save(file)
    outcome = protect(tmp_path / "source", tmp_path / "release", "mask", names="folders")
    assert outcome.protected == 4
    made = sorted(path.relative_to(tmp_path / "release") for path in (tmp_path / "release").rglob("*.png"))
    folders = {
        top: {path.parts[1] for path in made if path.parts[0] == top} for top in ("query", "bounding_box_test")
    }
    assert len(folders["query"]) == 1
    assert len(folders["bounding_box_test"]) == 2
    assert folders["query"] < folders["bounding_box_test"]
    assert not any(word in str(path) for path in made for word in ("ann", "bob", "1.", "2."))
    key = read_key(tmp_path / "release.private" / "key")
    paired = pair(sorted(tree(tmp_path / "source")), list(map(str, made)), key)
    assert (len(paired.pairs), paired.how) == (4, "key")
    assert protect(tmp_path / "source", tmp_path / "release", "mask", names="folders").protected == 4


def frames(count: int) -> list[Image.Image]:
    return [Image.fromarray(picture(index, 24, 16)) for index in range(count)]


def several(form: str, count: int = 3, **options: object) -> bytes:
    buffer, (first, *rest) = io.BytesIO(), frames(count)
    first.save(buffer, form, save_all=True, append_images=rest, **options)
    return buffer.getvalue()


def test_every_frame_and_page_is_protected_and_no_metadata_comes_along(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    given = {
        "a.gif": several("GIF", duration=[50, 60, 70], loop=0, comment=b"canary"),
        "b.webp": several("WEBP", duration=[50, 60, 70], xmp=b"canary"),
        "c.png": several("PNG", duration=[50, 60, 70]),
        "d.tif": several("TIFF", description="canary"),
        "e.tif": encoded("TIFF"),
        "f.gif": encoded("GIF"),
    }
    for name, data in given.items():
        (tmp_path / "source" / name).write_bytes(data)
    outcome = protect(tmp_path / "source", tmp_path / "release", "pixelate", names="kept", workers=1)
    assert (outcome.protected, outcome.refused) == (6, {})
    for name, data in given.items():
        file = tmp_path / "release" / f"{name[0]}{'.tif' if name == 'd.tif' else '.png'}"
        before, after = decode_frames(data, Limits()), decode_frames(file.read_bytes(), Limits())
        assert (len(before), before.durations) == (len(after), after.durations), name
        assert b"canary" not in file.read_bytes()
        for old, new in zip(before.pictures, after.pictures, strict=True):
            assert (new == load_method("pixelate")(old, seed=0)).all(), name
    again = tree(tmp_path / "release")
    assert protect(tmp_path / "source", tmp_path / "other", "pixelate", names="kept").protected == 6
    same = {path: data for path, data in tree(tmp_path / "other").items() if path != "manifest.json"}
    assert same == {path: data for path, data in again.items() if path != "manifest.json"}


def test_an_animation_is_refused_where_it_cannot_be_held(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 4, people=4, height=16, width=8)
    (tmp_path / "source" / "moving.gif").write_bytes(several("GIF"))
    outcome = protect(tmp_path / "source", tmp_path / "release", "mask", image_format="jpeg")
    assert dict(outcome.refused) == {"an animation, of which a JPEG holds one frame": 1}
    mixed = protect(tmp_path / "source", tmp_path / "mixed", "patches")
    assert dict(mixed.refused) == {"animated or of several pages (3)": 1}
    tight = protect(tmp_path / "source", tmp_path / "tight", "mask", max_pixels=1_000)
    assert list(tight.refused) == ["too many frames or pages (3)"]


def dicom(**header: object) -> bytes:
    from pydicom import dcmwrite
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian

    made, buffer = Dataset(), io.BytesIO()
    made.file_meta = FileMetaDataset()
    made.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    made.file_meta.MediaStorageSOPClassUID, made.file_meta.MediaStorageSOPInstanceUID = (
        "1.2.840.10008.5.1.4.1.1.7",
        "1.2",
    )
    made.PatientName, made.Rows, made.Columns, made.SamplesPerPixel = "Canary^Ann", 24, 16, 1
    made.PhotometricInterpretation, made.PixelRepresentation = "MONOCHROME2", 0
    made.BitsAllocated = made.BitsStored = 16
    made.HighBit, made.WindowCenter, made.WindowWidth = 15, 2048, 4096
    made.PixelData = (picture(0, 24, 16)[..., 0].astype(np.uint16) * 16).tobytes()
    for name, value in header.items():
        setattr(made, name, value)
    dcmwrite(buffer, made, enforce_file_format=True)
    return buffer.getvalue()


def test_pictures_of_phones_and_hospitals_are_protected_with_their_extras(tmp_path: Path) -> None:
    pillow_heif = pytest.importorskip("pillow_heif")
    pytest.importorskip("pydicom")
    (tmp_path / "source").mkdir()
    shot = pillow_heif.from_pillow(Image.fromarray(picture(0, 32, 64)))
    turned = Image.Exif()
    turned[274] = 6
    shot.save(tmp_path / "source" / "IMG_1.HEIC", exif=turned.tobytes())
    (tmp_path / "source" / "b.avif").write_bytes(encoded("AVIF"))
    (tmp_path / "source" / "c.dcm").write_bytes(dicom())
    (tmp_path / "source" / "d.dcm").write_bytes(dicom(BurnedInAnnotation="YES"))
    (tmp_path / "source" / "broken.heic").write_bytes(b"\0\0\0\x1cftypheic" + bytes(40))
    outcome = protect(tmp_path / "source", tmp_path / "release", "pixelate", names="kept", workers=1)
    assert outcome.protected == 3
    reasons = refusals(tmp_path / "release.private")
    assert "text is burned into it" in reasons["d.dcm"]
    assert "not a picture" in reasons["broken.heic"]
    with Image.open(tmp_path / "release" / "IMG_1.png") as upright:
        assert upright.size == (32, 64)
    assert b"Canary" not in b"".join(tree(tmp_path / "release").values())
    shown = decode(dicom(), Limits())[..., 0].astype(int)
    assert np.abs(shown - picture(0, 24, 16)[..., 0]).max() <= 1


@pytest.mark.parametrize(
    ("data", "extra"), [(b"\0\0\0\x1cftypheic" + bytes(40), "heic"), (bytes(128) + b"DICM", "dicom")]
)
def test_without_the_extra_the_refusal_names_it(data: bytes, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("pillow_heif", "pydicom"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(Image.OPEN, "HEIF", raising=False)
    with pytest.raises(RefusedImage, match=rf"pip install 'veilkit\[{extra}\]'"):
        decode(data, Limits())


def test_a_file_a_pattern_and_a_list_are_sources_too(tmp_path: Path) -> None:
    write_folder(tmp_path / "in", 6, people=2, height=16, width=8)
    one = protect(tmp_path / "in" / "person000" / "000000.jpg", tmp_path / "in" / "one", "mask", names="kept")
    assert sorted(tree(one.destination)) == ["000000.png", "SHA256SUMS", "manifest.json"]
    some = protect(f"{tmp_path}/in/person001/*.jpg", tmp_path / "some", "mask", names="kept")
    assert sorted(tree(some.destination))[:3] == ["000001.png", "000003.png", "000005.png"]
    listed = "\n".join(str(tmp_path / "in" / path) for path in ("person000/000002.jpg", "person001/000003.jpg"))
    words = ("protect", "-", tmp_path / "list", "--method", "mask", "--names", "keep", "--workers", 0)
    done = veilkit(*words, stdin=listed)
    assert done.returncode == 0, done.stderr
    assert sorted(tree(tmp_path / "list"))[2:] == ["person000/000002.png", "person001/000003.png"]
    for wrong, told in (
        (f"{tmp_path}/in/*.jpg", "no file fits"),
        ([], "list is empty"),
        ([tmp_path / "x"], "not there"),
    ):
        with pytest.raises(VeilkitError, match=told):
            protect(wrong, tmp_path / "wrong", "mask")
    with pytest.raises(UsageError, match="lie apart"):
        protect(tmp_path / "in" / "person000" / "000000.jpg", tmp_path / "in" / "person000", "mask")
    with pytest.raises(UsageError, match="kept apart from the pictures"):
        protect(tmp_path / "in" / "person000", tmp_path / "out", "mask", key=tmp_path / "in" / "person000" / "key")


def test_methods_on_faces_make_jpeg_of_jpeg_and_others_png(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    for name in ("a.JPG", "b.png", "c.jpeg", "d.bmp"):
        Image.fromarray(random_picture(1, 40, 60)).save(tmp_path / "source" / name)
    sizes = {}
    for release, options in (("plain", {}), ("small", {"quality": 40})):
        protect(tmp_path / "source", tmp_path / release, "faceblur", preset="crops", names="keep", seed=1, **options)
        assert {file.name for file in (tmp_path / release).iterdir() if file.suffix in (".jpg", ".png")} == {
            "a.jpg", "b.png", "c.jpg", "d.png",
        }  # fmt: skip
        with Image.open(tmp_path / release / "a.jpg") as opened:
            assert (opened.format, opened.size) == ("JPEG", (60, 40))
        sizes[release] = (tmp_path / release / "a.jpg").stat().st_size
    assert sizes["small"] < sizes["plain"]
    assert read_manifest(tmp_path / "plain").image_format == "auto"  # type: ignore[union-attr]
    protect(tmp_path / "source", tmp_path / "blurred", "blur", names="keep", seed=1)
    assert not list((tmp_path / "blurred").glob("*.jpg"))
    protect(tmp_path / "source", tmp_path / "alike", "faceblur", preset="crops", seed=1, pad_files=True)
    assert len(list((tmp_path / "alike").glob("*.png"))) == 4

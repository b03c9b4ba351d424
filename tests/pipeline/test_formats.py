"""What looks like a picture or a video and is not read is refused by name; nothing is passed over in silence."""

from __future__ import annotations

import csv
import io
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pictures import picture, write_folder
from tests.cli.test_commands import veilkit
from veilkit.errors import DestinationError
from veilkit.pipeline.formats import foreign_kind
from veilkit.pipeline.ledger import Entry, Ledger
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
        assert "which is not read: " in reasons[name]
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
    assert "a video, which is not read" in done.stderr
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

"""Reports that are shown, what an audit has found so far, and decisions of a review as they are kept."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from veilkit.errors import DataError, UsageError
from veilkit.media.boxes import read_boxes
from veilkit.web.places import listing
from veilkit.web.reports import growth, page_of
from veilkit.web.reviewing import Box, Decision, decided, log_of, note, write_boxes
from veilkit.web.roots import Roots


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    (tmp_path / "root").mkdir()
    return Roots([tmp_path / "root"], tmp_path / "drops")


def test_reports_are_shown_without_any_right(roots: Roots) -> None:
    place = roots.folders[0] / "release.audit"
    place.mkdir()
    (place / "report.html").write_text("<script>alert(1)</script>")
    (place / "other.html").write_text("x")
    answer = page_of(roots, "0/release.audit/report.html")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox;")
    assert "script" not in policy
    with pytest.raises(DataError, match="expected one of"):
        page_of(roots, "0/release.audit/other.html")
    (place / "compare.html").symlink_to(place / "report.html")
    with pytest.raises(DataError):
        page_of(roots, "0/release.audit/compare.html")


def test_a_study_runs_its_script_only_as_its_key_names_it(roots: Roots) -> None:
    place, private = roots.folders[0] / "study", roots.folders[0] / "study.private"
    for each in (place, private):
        each.mkdir()
    page = b"<script>study()</script>"
    (place / "study.html").write_bytes(page)
    with pytest.raises(DataError, match="its key does not name it"):
        page_of(roots, "0/study/study.html")
    (private / "key.json").write_text(json.dumps({"page_sha256": hashlib.sha256(page).hexdigest()}))
    policy = page_of(roots, "0/study/study.html").headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts allow-downloads;")
    assert "allow-same-origin" not in policy
    (place / "study.html").write_bytes(page + b"<script>more()</script>")
    with pytest.raises(DataError):
        page_of(roots, "0/study/study.html")


def test_an_audit_grows_cell_by_cell(roots: Roots) -> None:
    cells = roots.folders[0] / "release.audit" / "cells"
    cells.mkdir(parents=True)
    words = ["audit", str(roots.folders[0] / "photos"), str(roots.folders[0] / "release"), "--budget=3m"]
    assert growth(words) == []
    score = {"metric": "rank-1", "value": 0.25, "low": 0.1, "high": 0.4}
    result = {"attack": "linkage", "level": "L0", "scores": [score], "missing": [], "invalid": []}
    (cells / "a.json").write_text(json.dumps({"attack": "linkage", "result": result}))
    (cells / "b.json").write_text(json.dumps({"attack": None, "result": {}}))
    (cells / "c.json").write_text('{"half')
    (found,) = growth(words)
    assert found == {"attack": "linkage", "level": "L0", "score": score, "invalid": False, "applies": True}


def test_decisions_become_boxes_and_a_private_log(tmp_path: Path) -> None:
    ledger = tmp_path / "key.123.ledger"
    known = {"a b.png": {"made": "1"}, "c.png": {"made": "2"}}
    changed = Decision(path="a b.png", made="1", boxes=[Box(box=(1, 2, 11, 22), action="hide")])
    accepted = Decision(path="c.png", made="2")
    file = write_boxes(ledger, [changed, accepted], known)
    assert file is not None
    assert file.stat().st_mode & 0o777 == 0o600
    (box,) = read_boxes(file)["a b.png"]
    assert (box.action, box.corners(50, 50)) == ("hide", (1, 2, 11, 22))
    note(ledger, [changed, accepted], file)
    assert decided(ledger) == {("a b.png", "1"), ("c.png", "2")}
    assert log_of(ledger).stat().st_mode & 0o777 == 0o600
    assert write_boxes(ledger, [accepted], known) is None
    for wrong in (
        Decision(path="a b.png", made="old"),
        Decision(path="elsewhere.png", made="1"),
        Decision(path="c.png", made="2", boxes=[]),
        Decision(path="c.png", made="2", boxes=[Box(box=(5, 5, 5, 9), action="hide")]),
    ):
        with pytest.raises(UsageError):
            write_boxes(ledger, [wrong], known)


def test_a_listing_says_what_folders_are_and_hides_the_rest(roots: Roots) -> None:
    root = roots.folders[0]
    for name in ("photos", "release", "release.private", "release.audit", ".hidden"):
        (root / name).mkdir()
    (root / "release" / "manifest.json").write_text("{}")
    (root / "release.audit" / "audit.json").write_text("{}")
    (root / "one.JPG").write_bytes(b"x")
    (root / "clip.mp4").write_bytes(b"x")
    (root / "notes.txt").write_bytes(b"x")
    found = listing(roots, "0")
    assert {each["name"]: each["kind"] for each in found["folders"]} == {
        "photos": "folder",
        "release": "release",
        "release.audit": "audit",
        "release.private": "private",
    }
    assert [(each["name"], each["video"]) for each in found["pictures"]] == [("clip.mp4", True), ("one.JPG", False)]
    assert found["counts"] == {"folders": 4, "pictures": 2, "files": 1}


def test_pictures_to_compare_methods_on_are_found_in_folders_below(roots: Roots, tmp_path: Path) -> None:
    root = roots.folders[0]
    for name in (
        "ward/b.png",
        "ward/a.png",
        "clinic/c.jpg",
        "clinic/deep/d.png",
        "kept.private/e.png",
        ".f/f.png",
        "clip.mp4",
    ):
        (root / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "photos" / name).write_bytes(b"x")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "g.png").write_bytes(b"x")
    (root / "photos" / "link").symlink_to(tmp_path / "outside")
    places = [each["place"] for each in listing(roots, "0/photos")["samples"]]
    assert places == [
        f"0/photos/{name}" for name in ("clinic/c.jpg", "clinic/deep/d.png", "ward/a.png", "ward/b.png")
    ]

"""Withdrawn consent: nothing of a person stays in release, seals, ledger or gallery, however often it is stopped."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from pictures import write_folder
from tests.cli.test_commands import COMMAND, veilkit
from tests.conftest import tree
from veilkit.errors import DestinationError, UsageError, VeilkitError
from veilkit.pipeline import withdrawal
from veilkit.pipeline.ledger_queries import ledger_rows
from veilkit.pipeline.manifest import listed_pictures, read_manifest
from veilkit.pipeline.protect import protect
from veilkit.pipeline.recovery import recover
from veilkit.pipeline.sealing.age import write_identity
from veilkit.pipeline.withdrawal import withdraw


@pytest.fixture
def release(tmp_path: Path) -> Path:
    write_folder(tmp_path / "source", 6, people=3, height=64, width=64)
    recipient = write_identity(tmp_path / "identity.txt")
    outcome = protect(
        tmp_path / "source", tmp_path / "release", "faceblur", preset="crops", seal_to=[recipient], labels="folder"
    )
    assert outcome.protected == 6
    return outcome.destination


def verifies(release: Path) -> int:
    """How many pictures the release lists, once its manifest and sha256sum have found it whole."""
    manifest = read_manifest(release)
    assert manifest is not None
    for folder in (release, release.with_name("release.sealed")):
        subprocess.run(["sha256sum", "-c", "--strict", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    listed = listed_pictures(release, manifest)
    assert set(tree(release)) == {*listed, "SHA256SUMS", "manifest.json"}
    assert set(tree(release.with_name("release.sealed"))) == {"SHA256SUMS", *(f"{name}.age" for name in listed)}
    return len(listed)


def private_bytes(release: Path) -> bytes:
    return b"".join(tree(release.with_name("release.private")).values())


def test_a_persons_pictures_go_from_everywhere_and_the_rest_still_verifies(release: Path, tmp_path: Path) -> None:
    before = tree(release)
    assert b"person001/" in private_bytes(release)
    done = withdraw(release, only=["person001/*"])
    assert (done.pictures, done.sealed, done.left) == (2, 2, 4)
    assert verifies(release) == 4
    assert all(data == before[path] for path, data in tree(release).items() if path.endswith((".png", ".jpg")))
    assert b"person001/" not in private_bytes(release)
    lines = [json.loads(line) for line in done.log.read_text().splitlines()]
    assert [line["removed_from"] for line in lines] == [["release", "sealed"]] * 2
    assert {line["picture"] for line in lines} == {path for path in before if path.endswith((".png", ".jpg"))} - set(
        tree(release)
    )
    assert done.log.stat().st_mode & 0o077 == 0
    back = recover(release, tmp_path / "back", identity=tmp_path / "identity.txt")
    assert back.restored == 4
    assert not (tmp_path / "back" / "person001").exists()


def test_who_was_withdrawn_does_not_come_back(release: Path, tmp_path: Path) -> None:
    withdraw(release, only=["person001"])  # a folder's name
    recipient = next(
        line.split()[-1] for line in (tmp_path / "identity.txt").read_text().splitlines() if "age1" in line
    )
    again = protect(tmp_path / "source", release, "faceblur", preset="crops", seal_to=[recipient], labels="folder")
    assert (again.protected, dict(again.refused)) == (4, {"its person's consent was withdrawn": 2})
    assert verifies(release) == 4


STEPS = ("remove_file", "review_run", "write_sums", "write_atomically", "shutil.rmtree")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [0, 1])
def test_a_withdrawal_that_was_killed_is_finished(
    release: Path, tmp_path: Path, step: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, real = 0, None
    owner = withdrawal.shutil if "." in step else withdrawal
    real = getattr(owner, step.rpartition(".")[2])

    def dying(*given: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if calls > after:
            raise KeyboardInterrupt
        return real(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(owner, step.rpartition(".")[2], dying)
        try:
            withdraw(release, only=["person001/*"])
            killed = False
        except KeyboardInterrupt:
            killed = True
    if killed and next((tmp_path / "release.private").glob("*.withdrawal.json"), None):
        assert read_manifest(release) is None or calls == 1
        with pytest.raises(DestinationError, match="withdrawal"):
            protect(tmp_path / "source", release, "faceblur", preset="crops", labels="folder")
        withdraw(release)
    elif killed:
        withdraw(release, only=["person001/*"])
    assert verifies(release) == 4
    assert b"person001/" not in private_bytes(release)
    assert len(next((tmp_path / "release.private").glob("*.withdrawals.jsonl")).read_text().splitlines()) == 2


def test_what_cannot_be_withdrawn_is_an_error_and_changes_nothing(release: Path, tmp_path: Path) -> None:
    before = tree(release)
    with pytest.raises(UsageError, match="say which pictures"):
        withdraw(release)
    with pytest.raises(UsageError, match="has no picture"):
        withdraw(release, only=["nobody/*"])
    with pytest.raises(VeilkitError, match="key"):
        withdraw(release, only=["person001/*"], key=tmp_path / "other")
    assert tree(release) == before
    write_folder(tmp_path / "more", 8, people=4, height=16, width=8)
    mixed = protect(tmp_path / "more", tmp_path / "mixed", "patches", labels="folder").destination
    with pytest.raises(UsageError, match="parts of a person's are in others too"):
        withdraw(mixed, only=["person001/*"])


def _stopped(going: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "change",
    [
        {"pictures": ["../source/person000/000000.jpg"]}, {"pictures": ["/etc/x.png"]}, {"pictures": [5]},
        {"pictures": 5}, {"manifest": {}}, {"gallery": "no"}, {"id": None},
    ],
)  # fmt: skip
def test_an_altered_note_of_what_is_to_go_removes_nothing_elsewhere(
    release: Path, tmp_path: Path, change: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(withdrawal._Going, "finish", _stopped)
        with pytest.raises(KeyboardInterrupt):
            withdraw(release, only=["person001/*"])
    (journal,) = (tmp_path / "release.private").glob("*.withdrawal.json")
    journal.write_text(json.dumps(json.loads(journal.read_text()) | change))
    before = tree(tmp_path)
    with pytest.raises(DestinationError, match="was altered by somebody"):
        withdraw(release)
    assert tree(tmp_path) == before


def test_a_release_whose_list_was_emptied_has_no_ledger(release: Path) -> None:
    (release / "SHA256SUMS").write_bytes(b"")
    manifest = json.loads((release / "manifest.json").read_text())
    manifest |= {"files": 0, "sums_sha256": hashlib.sha256(b"").hexdigest()}
    (release / "manifest.json").write_text(json.dumps(manifest))
    shown = veilkit("ledger", "show", release)
    assert shown.returncode == 2
    assert "there is no ledger of just this release" in shown.stderr


def test_names_that_are_no_text_can_be_looked_up_on_any_terminal(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 1, people=1, height=16, width=16)
    (tmp_path / "source" / "person000" / "000000.jpg").rename(tmp_path / "source" / "odd\udcff.jpg")
    protect(tmp_path / "source", tmp_path / "release", "mask")
    looked = subprocess.run(
        [*COMMAND, "ledger", "lookup", tmp_path / "release", "*"],
        capture_output=True, env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"}, check=True,
    )  # fmt: skip
    assert looked.stdout.endswith(b"  odd\\udcff.jpg\n")


def test_the_command_and_the_ledgers_commands(release: Path, tmp_path: Path) -> None:
    shown = veilkit("ledger", "show", release)
    assert shown.stdout.startswith("6 pictures of 3 people")
    assert "person00" not in shown.stdout
    looked = veilkit("ledger", "lookup", release, "person002/*")
    assert sorted(line.split("  ")[1] for line in looked.stdout.splitlines()) == [
        "person002/000002.jpg",
        "person002/000005.jpg",
    ]
    one = looked.stdout.split()[0]
    assert veilkit("ledger", "lookup", release, one, "--json").stdout.count("person002/") == 1
    assert veilkit("ledger", "export", release, tmp_path / "plain.csv").returncode == 0
    assert "person00" not in (tmp_path / "plain.csv").read_text()
    assert veilkit("ledger", "export", release, tmp_path / "named.csv", "--names").returncode == 0
    assert (tmp_path / "named.csv").stat().st_mode & 0o077 == 0
    with (tmp_path / "named.csv").open(newline="") as lines:
        assert {row["person"] for row in csv.DictReader(lines)} == {"person000", "person001", "person002"}
    assert veilkit("ledger", "export", release, tmp_path / "named.csv").returncode == 2
    done = veilkit("withdraw", release, "--only", "person001/*")
    assert done.stdout.startswith("2 pictures withdrawn, and 2 sealed originals\n4 are left")
    assert "person001/" not in done.stdout + done.stderr
    rows = ledger_rows(tmp_path / "release.private", listed_pictures(release, read_manifest(release)))  # type: ignore[arg-type]
    assert rows is not None
    assert len(rows) == 4


def test_a_name_that_is_a_formula_is_none_to_a_spreadsheet(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 1, people=1, height=16, width=16)
    (tmp_path / "source" / "person000" / "000000.jpg").rename(tmp_path / "source" / "=HYPERLINK(1).jpg")
    protect(tmp_path / "source", tmp_path / "release", "mask")
    assert veilkit("ledger", "export", tmp_path / "release", tmp_path / "out.csv", "--names").returncode == 0
    assert ",'=HYPERLINK(1).jpg," in (tmp_path / "out.csv").read_text()


def test_kill_9_in_the_midst_leaves_nothing_half_done(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 300, people=2, height=16, width=16)
    release = protect(tmp_path / "source", tmp_path / "release", "mask", labels="folder").destination
    private, killed = tmp_path / "release.private", 0
    for person in ("person000/*", "person001/0000[0-4]*"):
        process = subprocess.Popen([*COMMAND, "withdraw", str(release), "--only", person])
        while process.poll() is None:
            if any(private.glob("*.withdrawal.json")):
                process.kill()
                process.wait()
        killed += process.returncode == -signal.SIGKILL
        if any(private.glob("*.withdrawal.json")):
            if (held := read_manifest(release)) is not None:  # killed before anything was taken away
                assert set(listed_pictures(release, held)) <= set(tree(release))
            assert veilkit("withdraw", release).returncode == 0
        manifest = read_manifest(release)
        assert manifest is not None
        listed = listed_pictures(release, manifest)
        assert set(tree(release)) == {*listed, "SHA256SUMS", "manifest.json"}
        assert person.partition("*")[0].encode() not in private_bytes(release)
    assert killed
    assert len(listed) == 125

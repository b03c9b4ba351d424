"""One release, one run: other keys, leftovers and files of others never end up in it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pictures import write_folder
from tests.conftest import tree
from veilkit.cli.ledger import _rows
from veilkit.errors import DataError, DestinationError
from veilkit.pipeline import run as run_module
from veilkit.pipeline.ledger import Ledger
from veilkit.pipeline.manifest import read_manifest, read_sums
from veilkit.pipeline.protect import protect
from veilkit.pipeline.release_lock import release_lock
from veilkit.pipeline.withdrawal import withdraw


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_folder(tmp_path / "source", 4, people=2, height=32, width=16)
    return tmp_path / "source"


def ledger_of(private: Path) -> Ledger:
    (file,) = private.glob("*.ledger")
    return Ledger(file)


def test_two_runs_with_different_keys_do_not_mix_in_one_release(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins when the first has found the folder empty and has not written a picture yet."""
    release, enrol = tmp_path / "release", run_module.enrol

    def overtaken(*arguments: object) -> int:
        monkeypatch.setattr(run_module, "enrol", enrol)
        with pytest.raises(DestinationError, match="another run is writing this release"):
            protect(source, release, "blur", key=tmp_path / "two" / "key")
        return enrol(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(run_module, "enrol", overtaken)
    protect(source, release, "mask", key=tmp_path / "one" / "key")
    assert tree(release).keys() == dict(read_sums(release / "SHA256SUMS")).keys() | {"SHA256SUMS", "manifest.json"}
    assert not (release / ".veilkit").exists()
    with pytest.raises(DestinationError, match="not of this release"):
        protect(source, release, "blur", key=tmp_path / "two" / "key")


def test_the_lock_goes_with_the_run_and_a_leftover_one_does_not_block(tmp_path: Path) -> None:
    scratch = tmp_path / "release" / ".veilkit"
    scratch.mkdir(parents=True)
    (scratch / "lock").touch()  # of a run that was killed
    with release_lock(scratch):
        assert (scratch / "lock").read_bytes() == b""
        with pytest.raises(DestinationError, match="another run"), release_lock(scratch):
            pass
        assert (scratch / "lock").exists()
    assert not scratch.exists()
    with release_lock(scratch):
        (scratch / "1.part").touch()
    assert [path.name for path in scratch.iterdir()] == ["1.part"]


def test_a_link_as_scratch_folder_is_refused_and_nothing_removed(source: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mine.txt").touch()
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / ".veilkit").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DestinationError, match="is a link"):
        protect(source, tmp_path / "release", "pixelate")
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("stranger", ["notes.txt", "sub/a.png", "aaaaaaaaaaaaaaaaaaaaaaaaaa.png"])
def test_unlisted_files_are_refused_by_name_when_resuming(source: Path, tmp_path: Path, stranger: str) -> None:
    release = tmp_path / "release"
    protect(source, release, "pixelate")
    (release / stranger).parent.mkdir(exist_ok=True)
    (release / stranger).write_text("mine")
    before = tree(release)
    with pytest.raises(DestinationError, match=rf"not of this release: '{stranger}'. Move them away"):
        protect(source, release, "pixelate")
    assert tree(release) == before
    (release / stranger).unlink()
    if (release / "sub").exists():
        (release / "sub").rmdir()
    protect(source, release, "pixelate")


def test_a_link_in_a_release_is_refused(source: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    protect(source, release, "pixelate", names="kept")
    (release / "more").symlink_to(tmp_path)
    with pytest.raises(DestinationError, match="not of this release: 'more'"):
        protect(source, release, "pixelate", names="kept")


def test_unlisted_files_are_refused_by_name_when_closing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, close = tmp_path / "release", run_module.close_release

    def crowded(*arguments: object) -> None:
        for number in range(5):
            (release / f"late{number}.png").touch()
        (release / "a name").mkdir()
        close(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(run_module, "close_release", crowded)
    with pytest.raises(DestinationError, match=r"not of this release: '.*' and 3 more"):
        protect(source, release, "pixelate")
    assert not (release / "manifest.json").exists()


@pytest.mark.parametrize("names", ["pseudonyms", "kept"])
def test_a_picture_that_a_killed_run_wrote_and_whose_original_is_gone_does_not_stay(
    source: Path, tmp_path: Path, names: str
) -> None:
    release = tmp_path / "release"
    protect(source, release, "pixelate", names=names)  # type: ignore[arg-type]
    with ledger_of(tmp_path / "release.private") as ledger:
        lost = next(ledger.entries())
        ledger.record([replace(lost, state="waiting", recipe=None, output_sha256=None)])
    (source / lost.source).unlink()
    protect(source, release, "pixelate", names=names)  # type: ignore[arg-type]
    assert not (release / lost.output).exists()
    assert tree(release).keys() == dict(read_sums(release / "SHA256SUMS")).keys() | {"SHA256SUMS", "manifest.json"}


def test_a_release_that_another_key_finished_is_not_overwritten_under_kept_names(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, one, two = tmp_path / "release", tmp_path / "one" / "key", tmp_path / "two" / "key"

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "_work", stop)
    with pytest.raises(KeyboardInterrupt):
        protect(source, release, "noise", key=two, names="kept")
    monkeypatch.undo()
    protect(source, release, "noise", key=one, names="kept")
    before = tree(release)
    with pytest.raises(DestinationError, match="finished with another key"):
        protect(source, release, "noise", key=two, names="kept")
    assert tree(release) == before


@pytest.mark.parametrize("output", ["../x.png", "/tmp/x.png", "a/../../x.png", "manifest.json", ".veilkit/x.png",
                                    "SHA256SUMS", "", "a\0.png", "plain.png", "x.txt"])  # fmt: skip
def test_an_altered_ledger_does_not_choose_where_pictures_go(source: Path, tmp_path: Path, output: str) -> None:
    release = tmp_path / "release"
    protect(source, release, "pixelate", key=tmp_path / "private" / "key")
    with ledger_of(tmp_path / "private") as ledger:
        first = next(ledger.entries())
        (release / first.output).unlink()
        ledger._db.execute(
            "UPDATE pictures SET output = ? WHERE output = ?", (output.encode(), first.output.encode())
        )
    before = tree(tmp_path)
    with pytest.raises(DestinationError, match="was altered by somebody"):
        protect(source, release, "pixelate", key=tmp_path / "private" / "key")
    assert {name for name in tree(tmp_path) if "ledger" not in name} <= before.keys()


@pytest.mark.parametrize(
    ("column", "value"), [("output_sha256", "é" * 64), ("output_sha256", None), ("output_sha256", "0" * 64 + "\n"),
                          ("state", "finished"), ("source_sha256", 5), ("sealed_sha256", b"x")],
)  # fmt: skip
def test_an_altered_value_in_a_ledger_is_told(source: Path, tmp_path: Path, column: str, value: object) -> None:
    protect(source, tmp_path / "release", "pixelate")
    with ledger_of(tmp_path / "release.private") as ledger:
        ledger._db.execute(f"UPDATE pictures SET {column} = ?", (value,))
    with pytest.raises(DestinationError, match="was altered by somebody"):
        protect(source, tmp_path / "release", "pixelate")


ALTERED_REPORTS = (
    "", "x", "5", "[]", "NaN", "[" * 5_000, "\ud800", '{"counts": 5}', '{"counts": {"found": 1e999}}',
    '{"told": [5]}', '{"faces": [5]}', '{"size": [1, 1], "faces": [{"box": [1, 2, "a", 9], "outcome": "x"}]}',
    '{"held": NaN}', '{"size": [9, "a"], "faces": []}', '{"size": [9, 9], "faces": [{"box": [0, 0, 5, 5]}]}',
)  # fmt: skip


def test_an_altered_report_in_a_ledger_is_told(source: Path, tmp_path: Path) -> None:
    protect(source, tmp_path / "release", "faceblur", preset="crops")
    finished = (tmp_path / "release" / "manifest.json").read_bytes()
    for report in ALTERED_REPORTS:
        with ledger_of(tmp_path / "release.private") as ledger:
            altered = report.encode("utf-8", "surrogatepass")
            ledger._db.execute("UPDATE pictures SET report = CAST(? AS TEXT)", (altered,))
        with pytest.raises(DataError, match="no ledger of just this release"):
            _rows(tmp_path / "release", None)
        with pytest.raises(DestinationError, match="was altered by somebody"):
            withdraw(tmp_path / "release", only=["*"])
        with pytest.raises(DestinationError, match="was altered by somebody"):
            protect(source, tmp_path / "release", "faceblur", preset="crops")
        (tmp_path / "release" / "manifest.json").write_bytes(finished)  # the run had begun


@pytest.mark.parametrize(("path", "drawn"), [(5, "[]"), (b"a", "x"), (b"a", "[" * 5_000), (b"a", '[{"left": 1}]')])
def test_altered_boxes_in_a_ledger_are_told(source: Path, tmp_path: Path, path: object, drawn: str) -> None:
    protect(source, tmp_path / "release", "faceblur", preset="crops")
    with ledger_of(tmp_path / "release.private") as ledger:
        ledger._db.execute("INSERT INTO boxes VALUES (?, ?)", (path, drawn))
    with pytest.raises(DestinationError, match="was altered by somebody: a box in it is none"):
        protect(source, tmp_path / "release", "faceblur", preset="crops")


def test_a_ledger_that_is_a_link_is_refused(source: Path, tmp_path: Path) -> None:
    protect(source, tmp_path / "release", "pixelate")
    (file,) = (tmp_path / "release.private").glob("*.ledger")
    file.rename(source / "ledger")
    file.symlink_to(source / "ledger")
    with pytest.raises(DestinationError, match=r"the ledger .* cannot be written"):
        protect(source, tmp_path / "release", "pixelate")


def test_a_damaged_manifest_of_ones_own_is_written_again(source: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    protect(source, release, "pixelate")
    before = tree(release)
    (release / "manifest.json").write_bytes(os.urandom(100))
    protect(source, release, "pixelate")
    assert tree(release) == before
    assert read_manifest(release) is not None

"""Damaged releases, bad places to write to, and files that nobody but their owner may read."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.audit.folders import blur, changed, plain
from veilkit.audit import run_audit
from veilkit.audit.inputs.cache import Cache
from veilkit.cli import app
from veilkit.errors import DestinationError
from veilkit.pipeline.protect import protect


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    protect(plain(tmp_path / "o", people=4, shots=2), tmp_path / "p", "blur", names="kept", labels="folder")
    return tmp_path / "o", tmp_path / "p"


def audit(originals: Path, protected: Path, *options: object) -> Result:
    words = [
        "audit",
        originals,
        protected,
        "--expert",
        "histogram",
        "--judge",
        "histogram",
        "--verbose",
        "--budget",
        "none",
    ]
    return CliRunner().invoke(app, [str(word) for word in (*words, "--attack", "own_original", *options)])


def orderly(done: Result) -> bool:
    return done.exception is None or isinstance(done.exception, SystemExit)


@pytest.mark.parametrize("sums", [b"\\aa  x\\q\n", b"\xff  a.png\n"])
def test_sums_that_nobody_can_read_are_told(sums: bytes, folders: tuple[Path, Path]) -> None:
    manifest = json.loads((folders[1] / "manifest.json").read_text())
    manifest["sums_sha256"] = hashlib.sha256(sums).hexdigest()
    (folders[1] / "manifest.json").write_text(json.dumps(manifest))
    (folders[1] / "SHA256SUMS").write_bytes(sums)
    done = audit(*folders)
    assert done.exit_code == 0, done.output
    assert "is not one that a release can have" in done.output


@pytest.mark.parametrize("names", ["kept", "pseudonyms"])
def test_a_commitment_that_is_no_ascii_is_told(names: str, folders: tuple[Path, Path]) -> None:
    manifest = json.loads((folders[1] / "manifest.json").read_text())
    manifest |= {"key_commitment": "é", "names": names}
    (folders[1] / "manifest.json").write_text(json.dumps(manifest))
    done = audit(*folders, "--key", folders[1].with_name("p.private") / "key")
    assert orderly(done), done.exception
    assert "manifest.json is not one that this version reads" in done.output


@pytest.mark.parametrize("config", [{"sigma": {"a": 1}}, {"sigma": None}, {"sigma": float("nan")}, {"é\n<b>": "\0"}])
@pytest.mark.parametrize("method", ["blur", "noise", "disguise"])
def test_odd_settings_in_a_manifest_are_no_traceback(
    config: dict[str, object], method: str, folders: tuple[Path, Path]
) -> None:
    manifest = json.loads((folders[1] / "manifest.json").read_text()) | {"config": config, "method": method}
    (folders[1] / "manifest.json").write_text(json.dumps(manifest))
    done = audit(*folders)
    assert orderly(done), done.exception
    assert "Report:" in done.output


@pytest.mark.parametrize("manifest", [b"", b"[" * 200_000, b"\xff\xfe", b"{}"])
def test_a_damaged_manifest_is_told(manifest: bytes, folders: tuple[Path, Path]) -> None:
    (folders[1] / "manifest.json").write_bytes(manifest)
    done = audit(*folders)
    assert done.exit_code == 0, done.output
    assert "manifest.json is not one that this version reads" in done.output


def test_files_that_are_pipes_links_or_folders_do_not_stop_an_audit(folders: tuple[Path, Path]) -> None:
    for name in ("SHA256SUMS", "manifest.json"):
        (folders[1] / name).unlink()
    (folders[1] / "SHA256SUMS").mkdir()
    (folders[1] / "manifest.json").symlink_to("manifest.json")
    os.mkfifo(folders[1] / "notes.txt")
    assert audit(*folders).exit_code == 0


@pytest.mark.parametrize("place", ["o", "o/x", "p/x", "link/x", "file", "file/x", "loop", "x" * 300, "odd"])
def test_bad_places_for_a_report_are_told_before_anything_is_written(
    place: str, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(folders[0])
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "odd" / "cache").mkdir(parents=True)
    (tmp_path / "odd" / "cache" / "features.sqlite").write_bytes(b"no cache" * 1000)
    before = sorted(folders[0].rglob("*")), sorted(folders[1].rglob("*"))
    done = audit(*folders, "--out", tmp_path / place)
    assert done.exit_code == 2, done.output
    assert any(line.startswith("Error: ") for line in done.output.splitlines())
    assert before == (sorted(folders[0].rglob("*")), sorted(folders[1].rglob("*")))


def test_folders_whose_names_are_no_text_are_audited(folders: tuple[Path, Path], tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"\xffo")
    folders[0].rename(odd)
    (folders[1] / "p0").rename(folders[1] / os.fsdecode(b"\xffp"))
    done = audit(odd, folders[1], "--out", tmp_path / os.fsdecode(b"\xffout"))
    assert orderly(done), done.exception
    assert (tmp_path / os.fsdecode(b"\xffout") / "report.html").is_file()


@pytest.fixture(params=[0o022, 0o000, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def blurred(tmp_path: Path) -> tuple[Path, Path]:
    originals = plain(tmp_path / "o", people=4, shots=2)
    return originals, changed(originals, tmp_path / "p", blur)


def audit_of(blurred: tuple[Path, Path], **options: object) -> None:
    run_audit(*blurred, expert="histogram", judge="histogram", **options)  # type: ignore[arg-type]


def wide(folder: Path) -> list[str]:
    """Files and blurred that others may read or enter."""
    return [str(path) for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077]


def test_features_cells_and_report_are_private_under_any_umask(blurred: tuple[Path, Path], umask: int) -> None:
    audit_of(blurred, show_originals=True)
    out = blurred[1].with_name("p.audit")
    assert {entry.name for entry in out.iterdir()} == {
        "audit.json",
        "audit.md",
        "cache",
        "cells",
        "report.html",
        "sign.html",
    }
    assert (out / "cache" / "features.sqlite").stat().st_mode & 0o777 == 0o600
    assert [out / each for each in ("", "cache", "cells") if (out / each).stat().st_mode & 0o777 != 0o700] == []
    assert wide(out) == []


def test_the_wide_folder_of_an_older_audit_is_tightened(blurred: tuple[Path, Path]) -> None:
    audit_of(blurred)
    out = blurred[1].with_name("p.audit")
    for path in (out, *out.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (out / "cache" / "features.sqlite-wal").touch(0o644)
    (out / "9999999.part").touch()
    audit_of(blurred, show_originals=True)
    assert [out / each for each in ("", "cache", "cells") if (out / each).stat().st_mode & 0o777 != 0o700] == []
    for file in ("cache/features.sqlite", "audit.json", "report.html", "audit.md", "sign.html"):
        assert (out / file).stat().st_mode & 0o777 == 0o600, file


def test_a_folder_of_the_users_own_keeps_its_mode_and_what_is_written_there_is_private(
    blurred: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    out.chmod(0o755)
    audit_of(blurred, out=out, show_originals=True)
    assert out.stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in out.iterdir() if path.stat().st_mode & 0o077) == ["thesis.txt"]


def test_a_damaged_cache_is_told(tmp_path: Path) -> None:
    with Cache(tmp_path / "cache.sqlite") as cache:
        cache.put("a", [("s", [1.0])])  # type: ignore[list-item]
        cache._db.execute("UPDATE vectors SET data = x'00'")
        with pytest.raises(DestinationError, match="delete it and run the same command again"):
            cache.get("a", ["s"])

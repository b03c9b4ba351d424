"""What an audit writes tells of the originals: nobody but its owner may read it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.audit.folders import blur, changed, plain
from veilkit.audit import run_audit
from veilkit.audit.inputs.cache import Cache
from veilkit.errors import DestinationError


@pytest.fixture(params=[0o022, 0o000, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    originals = plain(tmp_path / "o", people=4, shots=2)
    return originals, changed(originals, tmp_path / "p", blur)


def audit(folders: tuple[Path, Path], **options: object) -> None:
    run_audit(*folders, expert="histogram", judge="histogram", **options)  # type: ignore[arg-type]


def wide(folder: Path) -> list[str]:
    """Files and folders that others may read or enter."""
    return [str(path) for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077]


def test_features_cells_and_report_are_private_under_any_umask(folders: tuple[Path, Path], umask: int) -> None:
    audit(folders, show_originals=True)
    out = folders[1].with_name("p.audit")
    assert {entry.name for entry in out.iterdir()} == {"audit.json", "audit.md", "cache", "cells", "report.html"}
    assert (out / "cache" / "features.sqlite").stat().st_mode & 0o777 == 0o600
    assert [out / each for each in ("", "cache", "cells") if (out / each).stat().st_mode & 0o777 != 0o700] == []
    assert wide(out) == []


def test_the_wide_folder_of_an_older_audit_is_tightened(folders: tuple[Path, Path]) -> None:
    audit(folders)
    out = folders[1].with_name("p.audit")
    for path in (out, *out.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (out / "cache" / "features.sqlite-wal").touch(0o644)
    (out / "9999999.part").touch()
    audit(folders, show_originals=True)
    assert [out / each for each in ("", "cache", "cells") if (out / each).stat().st_mode & 0o777 != 0o700] == []
    for file in ("cache/features.sqlite", "audit.json", "report.html", "audit.md"):
        assert (out / file).stat().st_mode & 0o777 == 0o600, file


def test_a_folder_of_the_users_own_keeps_its_mode_and_what_is_written_there_is_private(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    out.chmod(0o755)
    audit(folders, out=out, show_originals=True)
    assert out.stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in out.iterdir() if path.stat().st_mode & 0o077) == ["thesis.txt"]


def test_a_damaged_cache_is_told(tmp_path: Path) -> None:
    with Cache(tmp_path / "cache.sqlite") as cache:
        cache.put("a", [("s", [1.0])])  # type: ignore[list-item]
        cache._db.execute("UPDATE vectors SET data = x'00'")
        with pytest.raises(DestinationError, match="delete it and run the same command again"):
            cache.get("a", ["s"])

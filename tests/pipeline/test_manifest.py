"""What a release says of itself."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilkit.errors import DataError
from veilkit.pipeline.manifest import MANIFEST, SUMS, Manifest, read_manifest, read_sums, write_sums

NAMES = ["plain.png", "new\nline.png", "back\\slash.png", "both\\\n.png", "return\r.png", " space .png", "-dash.png",
         "\udcff\udcfe.png", "a  b.png", "\\n.png"]  # fmt: skip


def manifest(**changes: object) -> Manifest:
    facts = {"veilkit": "1", "method": "blur", "config": {"sigma": 1.0}, "reproducible_by": "anyone", "seed": 1,
             "names": "kept", "image_format": "png", "files": 2, "sums_sha256": "0" * 64}  # fmt: skip
    return Manifest.model_validate(facts | changes)


def test_sha256sum_accepts_the_sums(tmp_path: Path) -> None:
    tool = shutil.which("sha256sum")
    if tool is None:
        pytest.skip("there is no sha256sum here")
    hashes = []
    for name in NAMES:
        (tmp_path / name).write_bytes(name.encode("utf-8", "surrogateescape"))
        hashes.append((name, hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()))
    total = write_sums(tmp_path / SUMS, iter(hashes))
    assert total == hashlib.sha256((tmp_path / SUMS).read_bytes()).hexdigest()
    checked = subprocess.run([tool, "--strict", "-c", SUMS], cwd=tmp_path, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr
    (tmp_path / NAMES[1]).write_bytes(b"changed")
    assert subprocess.run([tool, "-c", SUMS], cwd=tmp_path, capture_output=True, check=False).returncode == 1


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1).filter(lambda name: b"\0" not in name)))
def test_names_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, names: list[bytes]) -> None:
    file = tmp_path_factory.mktemp("sums") / SUMS
    pairs = [(os.fsdecode(name), hashlib.sha256(name).hexdigest()) for name in names]
    write_sums(file, iter(pairs))
    assert list(read_sums(file)) == pairs


def test_a_manifest_is_read_as_written(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) is None
    (tmp_path / MANIFEST).write_text(manifest().text())
    assert read_manifest(tmp_path) == manifest()


@pytest.mark.parametrize("text", ["", "{}", "[]", manifest().text().replace('"format": 1', '"format": 2'),
                                  manifest().text().replace('"files"', '"extra": 1, "files"')])  # fmt: skip
def test_a_manifest_of_another_kind_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(DataError, match="not a manifest"):
        read_manifest(tmp_path)

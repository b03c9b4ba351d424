"""Methods that take many pictures at once: each is still dealt with by itself, and its report stays private."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from PIL import Image

from tests.conftest import random_picture, tree
from tests.methods.experts import tiny_expert_file
from veilkit.errors import ConfigError, DataError
from veilkit.methods.base import Method
from veilkit.pipeline.ledger import Entry, Ledger
from veilkit.pipeline.manifest import read_manifest
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness
from veilkit.types import ImageBatch, PictureReport, Release

EXPERT = tiny_expert_file("vit-small")
SETTINGS: dict[str, object] = {"expert": EXPERT, "batch": 2, "steps": 2, "spread": 1.0}


@dataclass(frozen=True)
class _Config:
    pass


class Picky(Method[_Config]):
    """Inverts pictures, four at a time; fails on one of a certain size, and remembers what it was given."""

    name = "picky"
    summary = "inverts"
    default = _Config()

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, ...]] = []

    @property
    def at_once(self) -> int:
        return 4

    def protect_many(self, batches: Sequence[ImageBatch], *, rng: Randomness) -> list[Release]:
        self.seen.append(tuple(item.partition("\0")[0] for batch in batches for item in batch.items))
        return super().protect_many(batches, rng=rng)

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        if batch.images.shape[-1] == 13:
            raise RuntimeError("unlucky")
        reports = tuple(PictureReport(details={"name": item.partition("\0")[0]}) for item in batch.items)
        return Release(images=1 - batch.images, source_index=tuple(range(len(batch))), reports=reports)


class Deadly(Picky):
    """Ends its process on that picture instead."""

    name = "deadly"

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        if batch.images.shape[-1] == 13:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().protect(batch, rng=rng)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    root.mkdir()
    for index, (height, width) in enumerate([(20, 10), (24, 12), (20, 10), (20, 13), (24, 12), (20, 10)]):
        Image.fromarray(random_picture(index, height, width)).save(root / f"{index}.png")
    return root


def size(file: Path) -> tuple[int, int]:
    with Image.open(file) as image:
        return image.size


def entries(release: Path) -> dict[str, Entry]:
    (file,) = release.with_name(release.name + ".private").glob("*.ledger")
    with Ledger(file) as ledger:
        return {entry.source: entry for entry in ledger.entries()}


def test_one_bad_picture_does_not_take_its_mates_with_it(source: Path, tmp_path: Path) -> None:
    method = Picky()
    outcome = protect(source, tmp_path / "release", method, names="kept")
    assert (outcome.protected, sum(outcome.refused.values())) == (5, 1)
    assert "RuntimeError, 13x20" in next(iter(outcome.refused))
    assert [len(seen) for seen in method.seen] == [4, 1, 1, 1, 1, 2]
    for name in "01245":
        assert size(tmp_path / "release" / f"{name}.png") == size(source / f"{name}.png")
        assert json.loads(entries(tmp_path / "release")[f"{name}.png"].report or "") == {"name": f"{name}.png"}


def test_one_deadly_picture_does_not_take_its_mates_with_it(source: Path, tmp_path: Path) -> None:
    outcome = protect(source, tmp_path / "release", Deadly(), workers=1)
    assert outcome.protected == 5
    assert dict(outcome.refused) == {"a worker process died on it twice (signal 9)": 1}


def test_a_resumed_run_does_only_what_is_missing(source: Path, tmp_path: Path) -> None:
    (source / "3.png").unlink()
    release = tmp_path / "release"
    protect(source, release, Picky(), names="kept")
    before = tree(release)
    (release / "1.png").unlink()
    (release / "5.png").write_bytes(b"damaged")
    method = Picky()
    protect(source, release, method, names="kept")
    assert method.seen == [("1.png",), ("5.png",)]
    assert tree(release) == before


def test_reports_of_pixelfade_are_private_and_survive_a_resume(folder: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    outcome = protect(folder, release, "pixelfade", settings=SETTINGS)
    assert outcome.protected == 12
    before, known = tree(release), entries(release)
    for entry in known.values():
        report = json.loads(entry.report or "")
        assert report.keys() == {"feature_distance", "limit", "held", "steps", "replacements", "moved"}
        assert report["held"] == (report["feature_distance"] < report["limit"])
    public = (release / "manifest.json").read_text() + (release / "SHA256SUMS").read_text()
    assert "feature_distance" not in public
    assert str(Path(EXPERT).parent) not in public
    manifest = read_manifest(release)
    assert manifest is not None
    assert manifest.config["expert"] == "tiny-vit-small"
    assert manifest.expert_sha256 is not None
    next(release.glob("*.png")).unlink()
    protect(folder, release, "pixelfade", settings=SETTINGS)
    assert tree(release) == before
    assert entries(release) == known


@pytest.mark.parametrize("expert", ["histogram", "no such expert"])
def test_a_bad_expert_is_refused_before_anything_is_made(folder: Path, tmp_path: Path, expert: str) -> None:
    there = set(tmp_path.iterdir())
    with pytest.raises(Exception, match=r"not supervise|unknown expert"):
        protect(folder, tmp_path / "release", "pixelfade", settings={**SETTINGS, "expert": expert})
    assert set(tmp_path.iterdir()) == there


def test_pixelfade_takes_a_calibration_but_needs_none(folder: Path, tmp_path: Path) -> None:
    from veilkit.datasets.labelled import load_training_part
    from veilkit.methods import METHODS

    method = METHODS["pixelfade"].configured(settings={**SETTINGS, "spread": None})
    method.calibrate(load_training_part(folder, "folder", None)).save(tmp_path / "fitted.safetensors")
    assert method.config.spread > 0
    protect(folder, tmp_path / "release", "pixelfade", model=tmp_path / "fitted.safetensors", seed=1)
    manifest = read_manifest(tmp_path / "release")
    assert manifest is not None
    assert manifest.config["spread"] == method.config.spread
    with pytest.raises(ConfigError, match="another expert"):
        protect(
            folder,
            tmp_path / "other",
            "pixelfade",
            model=tmp_path / "fitted.safetensors",
            settings={"expert": "people"},
        )


def test_a_release_needs_as_many_reports_as_pictures() -> None:
    import torch

    with pytest.raises(DataError, match="one report per output"):
        Release(images=torch.zeros(2, 3, 4, 4), reports=(PictureReport(),))


def test_a_ledger_of_an_earlier_version_takes_reports(tmp_path: Path) -> None:
    file = tmp_path / "old.ledger"
    old = sqlite3.connect(file)
    old.execute(
        "CREATE TABLE pictures (output BLOB PRIMARY KEY, source BLOB NOT NULL UNIQUE, identity BLOB, camera BLOB, "
        "present INTEGER NOT NULL DEFAULT 1, state TEXT NOT NULL DEFAULT 'waiting', recipe TEXT, source_sha256 TEXT, "
        "output_sha256 TEXT, reason TEXT) WITHOUT ROWID"
    )
    old.execute("INSERT INTO pictures (output, source) VALUES (?, ?)", (b"a.png", b"a.jpg"))
    old.commit()
    old.close()
    file.chmod(0o600)
    with Ledger(file) as ledger:
        entry = next(ledger.entries())
        assert entry == Entry("a.jpg", "a.png")
        done = replace(entry, state="done", output_sha256="0" * 64, report='{"steps": 3}')
        ledger.record([done])
        assert next(ledger.entries()) == done

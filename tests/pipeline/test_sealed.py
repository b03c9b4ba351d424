"""Protecting with sealed originals: the release stays as it is, and every picture of it gets a sealed file."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from PIL import Image

from pictures import picture, write_folder
from tests.conftest import tree
from tests.methods.tiny import tiny_fro
from veilkit.errors import DataError, DestinationError, UsageError
from veilkit.media.reading import Limits, read_bytes
from veilkit.media.writing import write_atomically
from veilkit.pipeline import results, worker
from veilkit.pipeline.ledger import Ledger
from veilkit.pipeline.manifest import SUMS, read_manifest, read_sums
from veilkit.pipeline.protect import protect
from veilkit.pipeline.sealing import folder as sealed_module
from veilkit.pipeline.sealing.age import Identity
from veilkit.pipeline.sealing.files import Unsealed, unseal

ONE, TWO = Identity.generate(), Identity.generate()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_folder(tmp_path / "source", 6, people=3, height=32, width=16)
    return tmp_path / "source"


def opened(release: Path, identity: Identity = ONE) -> dict[str, Unsealed]:
    """What is in a release's sealed folder, by the pictures' names."""
    folder = release.with_name(release.name + ".sealed")
    return {
        str(file.relative_to(folder)).removesuffix(".age"): unseal(file.read_bytes(), [identity])
        for file in folder.rglob("*.age")
    }


def assert_sealed(source: Path, release: Path, identity: Identity = ONE) -> None:
    """Every original is sealed byte for byte and bound to its picture, and nothing else is in the folder."""
    found = opened(release, identity)
    assert {each.binding.original: each.original for each in found.values()} == tree(source)
    hashes = {name: each.binding.protected_sha256 for name, each in found.items()}
    assert hashes == dict(read_sums(release / SUMS))
    assert all(name == each.binding.protected for name, each in found.items())
    folder = release.with_name(release.name + ".sealed")
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in tree(folder) if name != SUMS}
    assert dict(read_sums(folder / SUMS)) == sums
    assert len(sums) == len(found)


@pytest.mark.parametrize("method", ["pixelate", "mixup", "patches"])
def test_every_original_is_sealed_and_the_release_is_the_same(source: Path, tmp_path: Path, method: str) -> None:
    settings = {} if method == "pixelate" else {"people": 3}
    outcome = protect(source, tmp_path / "plain", method, settings=settings, seed=1)
    assert (outcome.sealed, outcome.recipients) == (None, 0)
    outcome = protect(source, tmp_path / "r", method, settings=settings, seed=1, seal_to=[ONE.recipient])
    assert (outcome.sealed, outcome.recipients) == (tmp_path / "r.sealed", 1)
    assert_sealed(source, tmp_path / "r")
    plain, sealed = tree(tmp_path / "plain"), tree(tmp_path / "r")
    assert {name for name in plain | sealed if plain.get(name) != sealed.get(name)} == {"manifest.json"}
    before, after = read_manifest(tmp_path / "plain"), read_manifest(tmp_path / "r")
    assert before is not None
    assert before.sealed_recipients is None
    assert after == before.model_copy(update={"sealed_recipients": 1})
    assert not (tmp_path / "plain.sealed").exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_worker_processes_seal_as_well(source: Path, tmp_path: Path, workers: int) -> None:
    both = [ONE.recipient, TWO.recipient]
    protect(source, tmp_path / "r", "noise", seed=1, workers=workers, seal_to=both)
    protect(source, tmp_path / "alone", "noise", seed=1, seal_to=both)
    assert tree(tmp_path / "r") == tree(tmp_path / "alone")
    assert_sealed(source, tmp_path / "r", ONE)
    assert_sealed(source, tmp_path / "r", TWO)


def test_kept_names_keep_their_folders(source: Path, tmp_path: Path) -> None:
    protect(source, tmp_path / "r", "pixelate", names="kept", seal_to=[ONE.recipient])
    assert (tmp_path / "r.sealed" / "person000" / "000000.png.age").is_file()
    assert_sealed(source, tmp_path / "r")


def test_a_second_run_seals_nothing_twice(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    protect(source, tmp_path / "r", "noise", seal_to=[ONE.recipient])
    before = tree(tmp_path / "r.sealed")
    monkeypatch.setattr(sealed_module, "seal", lambda *_: pytest.fail("an original was sealed again"))
    protect(source, tmp_path / "r", "noise", seal_to=[ONE.recipient])
    assert tree(tmp_path / "r.sealed") == before


@pytest.mark.parametrize("method", ["noise", "patches"])
def test_sealed_files_that_were_lost_or_cut_off_are_made_again(source: Path, tmp_path: Path, method: str) -> None:
    settings = {"people": 3} if method == "patches" else {}
    protect(source, tmp_path / "r", method, settings=settings, seal_to=[ONE.recipient])
    before = tree(tmp_path / "r")
    lost, altered, cut = sorted((tmp_path / "r.sealed").glob("*.age"))[:3]
    lost.unlink()
    altered.write_bytes(b"other")
    cut.write_bytes(cut.read_bytes()[:-1])
    protect(source, tmp_path / "r", method, settings=settings, seal_to=[ONE.recipient])
    assert_sealed(source, tmp_path / "r")
    assert tree(tmp_path / "r") == before


def test_sealing_goes_on_where_it_was_stopped(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped between a picture and its sealed original, and once more in the middle of a sealed file."""
    written = 0

    def stop(target: Path, data: bytes, scratch: Path, *, undated: bool) -> None:
        nonlocal written
        written += 1
        if written == 3:
            raise KeyboardInterrupt
        if written == 5:
            (scratch / f"{os.getpid()}.part").write_bytes(data[: len(data) // 2])
            raise KeyboardInterrupt
        write_atomically(target, data, scratch, undated=undated)

    monkeypatch.setattr(sealed_module, "write_atomically", stop)
    for count in (2, 3):
        with pytest.raises(KeyboardInterrupt):
            protect(source, tmp_path / "r", "noise", seal_to=[ONE.recipient])
        assert len(opened(tmp_path / "r")) == count
        assert not (tmp_path / "r" / "manifest.json").exists()
        assert not (tmp_path / "r.sealed" / SUMS).exists()
    monkeypatch.undo()
    protect(source, tmp_path / "r", "noise", seal_to=[ONE.recipient])
    assert_sealed(source, tmp_path / "r")
    assert not (tmp_path / "r.sealed" / ".veilkit").exists()


def test_an_orphan_of_a_killed_run_cannot_write_any_more(source: Path, tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger") as ledger:
        old = sealed_module.open_sealed(tmp_path / "sealed", ledger, (ONE.recipient,))
        new = sealed_module.open_sealed(tmp_path / "sealed", ledger, (ONE.recipient,))
    assert old is not None
    assert new is not None
    write_atomically(new.folder / "a.age", b"new", new.scratch)
    with pytest.raises(DestinationError):
        write_atomically(old.folder / "a.age", b"old", old.scratch)
    assert (new.folder / "a.age").read_bytes() == b"new"


def test_sources_that_come_change_and_go(source: Path, tmp_path: Path) -> None:
    originals = tree(source)
    protect(source, tmp_path / "r", "noise", names="kept", seal_to=[ONE.recipient])
    Image.fromarray(picture(50, 32, 16)).save(source / "person000" / "new.png")
    Image.fromarray(picture(51, 32, 16)).save(source / "person001" / "000001.jpg")
    (source / "person002" / "000002.jpg").unlink()
    protect(source, tmp_path / "r", "noise", names="kept", seal_to=[ONE.recipient])
    found = {each.binding.original: each.original for each in opened(tmp_path / "r").values()}
    assert found == tree(source) | {"person002/000002.jpg": originals["person002/000002.jpg"]}


def test_other_recipients_are_refused_until_the_sealed_folder_is_moved_away(source: Path, tmp_path: Path) -> None:
    protect(source, tmp_path / "r", "noise", seal_to=[ONE.recipient])
    before = tree(tmp_path)
    for others in ([TWO.recipient], [ONE.recipient, TWO.recipient]):
        with pytest.raises(DestinationError, match=f"sealed to {ONE.recipient}, but this run seals to"):
            protect(source, tmp_path / "r", "noise", seal_to=others)
    with pytest.raises(DestinationError, match="seal to the same"):
        protect(source, tmp_path / "r", "noise")
    after = tree(tmp_path)
    assert {name: data for name, data in after.items() if ".private" not in name} == {
        name: data for name, data in before.items() if ".private" not in name
    }
    (tmp_path / "r.sealed").rename(tmp_path / "old")
    protect(source, tmp_path / "r", "noise", seal_to=[TWO.recipient])
    assert_sealed(source, tmp_path / "r", TWO)
    protect(source, tmp_path / "r", "noise", seal_to=[TWO.recipient])


def test_a_finished_release_can_be_sealed_later(source: Path, tmp_path: Path) -> None:
    protect(source, tmp_path / "r", "noise")
    before = {name: data for name, data in tree(tmp_path / "r").items() if name != "manifest.json"}
    protect(source, tmp_path / "r", "noise", seal_to=[ONE.recipient])
    assert_sealed(source, tmp_path / "r")
    assert {name: data for name, data in tree(tmp_path / "r").items() if name != "manifest.json"} == before


def test_a_release_whose_originals_are_gone_cannot_be_sealed_later(source: Path, tmp_path: Path) -> None:
    protect(source, tmp_path / "r", "noise")
    gone = source / "person002" / "000002.jpg"
    data = gone.read_bytes()
    gone.unlink()
    with pytest.raises(DestinationError, match="1 pictures of the release have no sealed original"):
        protect(source, tmp_path / "r", "noise", seal_to=[ONE.recipient])
    assert not (tmp_path / "r" / "manifest.json").exists()
    gone.write_bytes(data)
    protect(source, tmp_path / "r", "noise", seal_to=[ONE.recipient])
    assert_sealed(source, tmp_path / "r")


def test_an_original_that_changes_meanwhile_is_not_sealed_with_another_ones_picture(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0

    def changing(file: Path, limits: Limits) -> bytes:
        nonlocal reads
        reads += 1
        return read_bytes(file, limits) + (b"more" if reads == 2 else b"")

    for module in (worker, results):
        monkeypatch.setattr(module, "read_bytes", changing)
    outcome = protect(source, tmp_path / "r", "noise", seal_to=[ONE.recipient])
    assert dict(outcome.refused) == {"it changed while it was being protected": 1}
    assert len(opened(tmp_path / "r")) == len(list((tmp_path / "r").glob("*.png"))) == 5
    monkeypatch.undo()
    protect(source, tmp_path / "r", "noise", seal_to=[ONE.recipient])
    assert_sealed(source, tmp_path / "r")


def test_foreign_files_in_the_sealed_folder_are_left_alone(source: Path, tmp_path: Path) -> None:
    (tmp_path / "r.sealed").mkdir()
    (tmp_path / "r.sealed" / "thesis.txt").write_text("mine")
    with pytest.raises(DestinationError, match="not of this release"):
        protect(source, tmp_path / "r", "noise", seal_to=[ONE.recipient])
    assert tree(tmp_path / "r.sealed") == {"thesis.txt": b"mine"}


def test_a_method_without_originals_is_refused_before_anything_is_written(source: Path, tmp_path: Path) -> None:
    fro = tiny_fro(("person000", "person001", "person002"))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match="belong to no original"):
        protect(source, tmp_path / "r", fro, labels="folder", seal_to=[ONE.recipient])
    assert sorted(tmp_path.rglob("*")) == before


def test_bad_recipients_and_places_are_refused_before_anything_is_written(source: Path, tmp_path: Path) -> None:
    source = source.rename(tmp_path / "r.sealed")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match="copy it again"):
        protect(source, tmp_path / "x", "noise", seal_to=["age1nobody"])
    with pytest.raises(UsageError, match="is a list"):
        protect(source, tmp_path / "x", "noise", seal_to=ONE.recipient)
    with pytest.raises(UsageError, match="must lie apart"):
        protect(source, tmp_path / "r", "noise", seal_to=[ONE.recipient])
    with pytest.raises(UsageError, match="kept apart"):
        protect(source, tmp_path / "x", "noise", key=tmp_path / "x.sealed" / "key", seal_to=[ONE.recipient])
    assert sorted(tmp_path.rglob("*")) == before


def test_a_name_that_leaves_no_room_for_a_suffix_is_told(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    Image.fromarray(picture(0, 8, 8)).save(tmp_path / "source" / ("a" * 251 + ".png"))
    with pytest.raises(DataError, match="too long for its sealed original"):
        protect(tmp_path / "source", tmp_path / "r", "noise", names="kept", seal_to=[ONE.recipient])
    protect(tmp_path / "source", tmp_path / "pseudonyms", "noise", seal_to=[ONE.recipient])
    assert_sealed(tmp_path / "source", tmp_path / "pseudonyms")


def test_a_ledger_of_an_earlier_version_gets_the_column(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger:
        ledger._db.execute("ALTER TABLE pictures DROP COLUMN sealed_sha256")
    with Ledger(tmp_path / "l") as ledger:
        ledger.forget_seals()
        assert list(ledger.entries()) == []

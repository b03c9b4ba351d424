from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import gallery as benchmark
import veilkit.gallery
from tests.conftest import tree
from tests.gallery.conftest import DIMENSION, EPSILON, URL, described, some
from veilkit.errors import (
    BudgetError,
    ConfigError,
    DataError,
    DestinationError,
    KeyFileError,
    MissingExtraError,
    UsageError,
)
from veilkit.gallery import Added, Gallery, milliseconds, read_facts, read_features, time_text
from veilkit.gallery.milvus import expression
from veilkit.privacy import AnalyticGaussian, Budget, DisguisePaper, Ledger, PrivUnit, unit

Make = Callable[..., Gallery]
COUNT = 20


def released(gallery: Gallery, folder: Path) -> dict[str, np.ndarray]:
    gallery.export(folder)
    with np.load(folder / "features.npz") as parts:
        return dict(zip(parts["pseudonyms"], parts["features"], strict=True))


def test_what_is_added_is_found_under_pseudonyms_with_camera_and_time(make: Make) -> None:
    # So much epsilon that the noise is small: the nearest answer is then the record itself.
    generous = AnalyticGaussian(dimension=DIMENSION, epsilon=1000.0, delta=1e-6)
    features, about = some(COUNT), described(COUNT)
    with make(mechanism=generous, budget=Budget(epsilon=2000.0, delta=1e-5)) as gallery:
        assert gallery.add(features, **about) == Added(COUNT, 0)
        found = gallery.search(features, limit=3)
        names = gallery.names([hits[0].pseudonym for hits in found])
        assert [names[hits[0].pseudonym] for hits in found] == about["records"]
        assert [hits[0].camera for hits in found] == about["cameras"]
        assert found[7][0].time == milliseconds("2024-05-01T12:07:00Z")
        assert all(len(hits) == 3 for hits in found)
        for hits in found:
            assert sorted((hit.score for hit in hits), reverse=True) == [hit.score for hit in hits]


def test_answers_are_those_of_exact_search_on_what_was_released(make: Make, tmp_path: Path) -> None:
    with make() as gallery:
        gallery.add(some(COUNT), **described(COUNT))
        vectors = released(gallery, tmp_path / "out")
        names, table = list(vectors), np.stack(list(vectors.values())).astype(np.float64)
        queries = unit(some(5, seed=1)).double().numpy()
        scores = queries @ (table / np.linalg.norm(table, axis=1, keepdims=True)).T
        for hits, row in zip(gallery.search(some(5, seed=1), limit=4), scores, strict=True):
            assert [hit.pseudonym for hit in hits] == [names[place] for place in np.argsort(-row)[:4]]
            assert [hit.score for hit in hits] == pytest.approx(np.sort(row)[::-1][:4], abs=1e-5)


def test_cameras_and_time_windows_narrow_a_search(make: Make) -> None:
    about = described(COUNT)
    odd = 'a "camera" \\ c0'
    about["cameras"][4] = odd
    with make() as gallery:
        gallery.add(some(COUNT), **about)
        gallery.add(some(1, seed=3), records=["x"], persons=["x"])  # neither camera nor time

        def times(**window: object) -> list[int]:
            (hits,) = gallery.search(some(1), limit=100, **window)  # type: ignore[arg-type]
            return sorted(-1 if hit.time is None else hit.time // 60_000 % 60 for hit in hits)

        assert times() == [-1, *range(COUNT)]
        assert times(cameras=["c1"]) == list(range(1, COUNT, 2))
        assert times(cameras=[odd]) == [4]
        assert times(cameras=["c9"]) == []
        assert times(since="2024-05-01T12:15:00Z") == list(range(15, COUNT))
        assert times(until="2024-05-01T12:03:00Z") == [0, 1, 2]
        assert times(since="2024-05-01 12:02", until="2024-05-01T14:05:00+02:00") == [2, 3, 4]
        assert times(cameras=["c1", odd], since="2024-05-01 12:02", until="2024-05-01 12:06") == [3, 4, 5]
        with pytest.raises(ConfigError, match="ends after it begins"):
            times(since=2, until=1)


def test_the_same_again_is_the_same_vectors_at_no_cost(make: Make, tmp_path: Path) -> None:
    about = described(COUNT)
    with make() as gallery:
        gallery.add(some(COUNT), **about)
        first = released(gallery, tmp_path / "first")
    with Gallery.open(gallery.folder) as gallery:
        order = list(reversed(range(COUNT)))
        turned = {name: [values[row] for row in order] for name, values in about.items()}
        assert gallery.add(some(COUNT)[order], **turned) == Added(0, COUNT)
        again = released(gallery, tmp_path / "again")
        assert all((again[name] == vector).all() for name, vector in first.items())
        told = gallery.budget()
        assert (told.agree, told.spent, told.in_store) == (True, 2 * EPSILON, COUNT)
        assert [(level.releases, level.count, level.left) for level in told.levels] == [(2, COUNT // 2, 0.0)]


def test_past_the_budget_nothing_of_the_whole_add_is_released(make: Make) -> None:
    with make() as gallery:
        gallery.add(some(3), records=["a", "b", "c"], persons=["ann", "ann", "bob"])
        with pytest.raises(BudgetError, match="from epsilon 8 to 12"):
            gallery.add(some(3, seed=1), records=["d", "e", "f"], persons=["bob", "ann", "cleo"])
        assert (gallery.budget().in_ledger, gallery.budget().in_store) == (3, 3)
        with pytest.raises(BudgetError):
            gallery.check(records=["e"], persons=["ann"])
        gallery.check(records=["e", "a"], persons=["bob", "ann"])  # what is known costs nothing


def test_what_must_be_refused_is_and_changes_nothing(
    tmp_path: Path, url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if url is not None:
        monkeypatch.setenv(URL, url)
    else:
        monkeypatch.delenv(URL, raising=False)
    ended = benchmark.refusals(tmp_path)
    assert len(ended) >= 15
    assert {name: why for name, why in ended.items() if why} == {}


def test_what_a_store_has_lost_is_put_back_from_the_ledger(make: Make, tmp_path: Path) -> None:
    with make() as gallery:
        gallery.add(some(COUNT), **described(COUNT))
        first = released(gallery, tmp_path / "first")
        gallery._store.drop()
    with Gallery.open(gallery.folder) as gallery:
        with pytest.raises(DataError, match="no longer holds this gallery"):
            gallery.search(some(1))
        told = gallery.budget()
        assert (told.in_ledger, told.in_store, told.missing, told.agree) == (COUNT, 0, COUNT, False)
        with pytest.raises(DataError, match="20 missing"):
            gallery.export(tmp_path / "early")
        assert gallery.add(some(1, seed=9), records=["new"], persons=["new"]) == Added(1, 0, COUNT)
        again = released(gallery, tmp_path / "again")
        assert all((again[name] == vector).all() for name, vector in first.items())
        (hits,) = gallery.search(some(1), limit=100, cameras=["c1"])
        assert len(hits) == COUNT // 2, "cameras came back too"


def test_one_record_twice_in_one_call_is_one(make: Make) -> None:
    with make() as gallery:
        twice = some(1).repeat(2, 1)
        assert gallery.add(twice, records=["a", "a"], persons=["ann", "ann"]) == Added(1, 1)
        with pytest.raises(DataError, match="1 of 2 records are known with another content"):
            gallery.add(some(2), records=["b", "b"], persons=["ann", "ann"])
        assert gallery.budget().in_ledger == 1


def test_nothing_clean_is_kept_anywhere_and_names_only_with_the_key(tmp_path: Path) -> None:
    features = some(COUNT)
    about = described(COUNT)
    make_one = Gallery.create(
        tmp_path / "gallery",
        mechanism=PrivUnit(dimension=DIMENSION, epsilon=EPSILON),
        budget=Budget(epsilon=8.0, delta=0.0),
        per="person",
    )
    with make_one as gallery:
        gallery.add(features, **about)
        clean = [row.tobytes() for given in (features, unit(features)) for row in given.numpy()]
        during = {**tree(tmp_path / "gallery"), **tree(tmp_path / "gallery.private")}
    for files in (during, {**tree(tmp_path / "gallery"), **tree(tmp_path / "gallery.private")}):
        everything = b"".join(files.values())
        assert not [row for row in clean if row in everything or row[:16] in everything]
    public = b"".join(tree(tmp_path / "gallery").values())
    assert b"person" not in public.replace(b'"per": "person"', b"")
    assert b".jpg" not in public
    assert b"c1" in public, "the search of this test finds what is there"
    assert all((file.stat().st_mode & 0o77) == 0 for file in (tmp_path / "gallery.private").iterdir())


def test_vectors_are_stored_in_the_order_of_pseudonyms(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    stored: list[str] = []
    with make() as gallery:
        whole = gallery._store.upsert
        monkeypatch.setattr(
            gallery._store, "upsert", lambda names, *rest: (stored.extend(names), whole(names, *rest))
        )
        gallery.add(some(COUNT), **described(COUNT))
    assert stored == sorted(stored)


def test_two_galleries_under_one_key_have_no_pseudonym_in_common(make: Make, tmp_path: Path) -> None:
    key = tmp_path / "keys" / "mine"
    with make("one", key=key) as one, make("two", key=key) as two:
        for gallery in (one, two):
            gallery.add(some(COUNT), **described(COUNT))
        assert not set(one.pseudonyms(described(COUNT)["records"])) & set(two.pseudonyms(described(COUNT)["records"]))
        assert one.facts.key_commitment != two.facts.key_commitment
    assert len(list(key.parent.glob("*.ledger"))) == 2


def test_another_key_or_a_lost_ledger_is_told(make: Make, tmp_path: Path) -> None:
    with make("other"):
        pass
    made = make()
    with (
        Gallery.open(made.folder, key=tmp_path / "other.private" / "key") as gallery,
        pytest.raises(KeyFileError, match="not the key of this gallery"),
    ):
        gallery.budget()
    (ledger,) = (tmp_path / "gallery.private").glob("*.ledger")
    kept = ledger.read_bytes()
    ledger.unlink()
    with Gallery.open(made.folder) as gallery, pytest.raises(DataError, match="restore it from a copy"):
        gallery.add(some(1), records=["a"], persons=["a"])
    ledger.write_bytes(kept)


def test_an_export_tells_the_three_numbers_and_holds_what_was_released(make: Make, tmp_path: Path) -> None:
    gaussian = AnalyticGaussian(dimension=DIMENSION, epsilon=0.5, delta=1e-6)
    with make(mechanism=gaussian, budget=Budget(epsilon=2.0, delta=1e-5)) as gallery:
        gallery.add(some(COUNT), **described(COUNT))
        vectors = released(gallery, tmp_path / "out")
        manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
        worst = gallery.budget().worst
        assert worst is not None
        assert (manifest["epsilon_claimed"], manifest["epsilon_proved"]) == (0.5, 0.5)
        assert manifest["epsilon_spent"] == worst.epsilon
        assert 0.5 < worst.epsilon < 1.0
        assert "url" not in manifest
        with pytest.raises(DestinationError, match="new or empty folder"):
            gallery.export(tmp_path / "out")
    (file,) = (tmp_path / "gallery.private").glob("*.ledger")
    with Ledger(file) as ledger:
        paid = ledger.released(gaussian, list(vectors))
    assert {name: row.tobytes() for name, row in paid.items()} == {n: v.tobytes() for n, v in vectors.items()}


def test_a_papers_noise_is_labelled_and_needs_an_infinite_budget(make: Make, tmp_path: Path) -> None:
    paper = DisguisePaper(dimension=DIMENSION, epsilon=4.0, sensitivity=1.0)
    with pytest.raises(ConfigError, match="does not allow one release"):
        make("refused", mechanism=paper)
    with make(mechanism=paper, budget=Budget(epsilon=float("inf"), delta=0.0), per="record") as gallery:
        gallery.add(some(2), records=["a", "b"])
        gallery.export(tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["epsilon_claimed"], manifest["epsilon_proved"], manifest["epsilon_spent"]) == (
        4.0, "Infinity", "Infinity"
    )  # fmt: skip
    assert "no formal guarantee" in manifest["guarantee"]
    assert read_facts(gallery.folder).make_mechanism() == paper


def test_a_gallery_is_not_made_where_it_does_not_belong(tmp_path: Path) -> None:
    asked = {
        "mechanism": PrivUnit(dimension=8, epsilon=1.0), "budget": Budget(epsilon=1.0, delta=0.0), "per": "record"
    }  # fmt: skip
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(DestinationError, match="holds other files"):
        Gallery.create(tmp_path / "full", **asked)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="kept apart"):
        Gallery.create(tmp_path / "near", key=tmp_path / "near" / "key", **asked)  # type: ignore[arg-type]
    for url, message in (("localhost", "server's URL"), ("http://me:secret@host:1", "no place for a password")):
        with pytest.raises(ConfigError, match=message):
            Gallery.create(tmp_path / "afar", url=url, **asked)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="per must be"):
        Gallery.create(tmp_path / "odd", **(asked | {"per": "picture"}))  # type: ignore[arg-type]
    assert not (tmp_path / "near" / "gallery.json").exists()


def test_a_file_is_open_in_one_place_at_a_time(tmp_path: Path) -> None:
    made = Gallery.create(
        tmp_path / "gallery", mechanism=PrivUnit(dimension=8, epsilon=1.0), budget=Budget(epsilon=1.0, delta=0.0),
        per="record",
    )  # fmt: skip
    with (
        made,
        pytest.raises(DestinationError, match="another process has this gallery open"),
        Gallery.open(made.folder),
    ):
        pass


def test_persons_may_be_unknown_where_the_budget_is_per_record(make: Make) -> None:
    with make(per="record") as gallery:
        assert gallery.add(some(2), records=["a", "b"], persons=["ann", None]) == Added(2, 0)
        assert gallery.add(some(2), records=["a", "b"], persons=["ann", None]) == Added(0, 2)


def test_a_search_for_nobody_in_an_empty_gallery(make: Make) -> None:
    with make() as gallery:
        assert gallery.search(some(2)) == [[], []]
        told = gallery.budget()
        assert (told.spent, told.agree, told.levels) == (0.0, True, ())
        with pytest.raises(ConfigError, match="limit"):
            gallery.search(some(1), limit=0)
        with pytest.raises(DataError, match="neither of them 0"):
            gallery.search(torch.empty(0, DIMENSION))


def test_everything_exported_is_there_once() -> None:
    assert len(set(veilkit.gallery.__all__)) == len(veilkit.gallery.__all__)
    assert all(hasattr(veilkit.gallery, name) for name in veilkit.gallery.__all__)


def test_times_are_read_in_every_way_that_is_told() -> None:
    noon = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
    ways = (
        "2024-05-01T12:00:00Z",
        "2024-05-01 12:00",
        "2024-05-01T14:00+02:00",
        noon,
        noon.timestamp(),
        "1714564800",
    )
    assert {milliseconds(way) for way in ways} == {1714564800000}
    assert milliseconds("1714564800.25") == 1714564800250
    assert time_text(1714564800250) == "2024-05-01T12:00:00.250Z"
    assert time_text(None) is None


@pytest.mark.parametrize("wrong", ["noon", "", True, float("nan"), -1, "1e300", float("inf"), "2024-13-01"])
def test_what_is_no_time_is_told(wrong: object) -> None:
    with pytest.raises(DataError, match="expected a time"):
        milliseconds(wrong)  # type: ignore[arg-type]


def test_a_camera_cannot_end_its_own_quotes() -> None:
    assert expression(cameras=['"] or 1 == 1 or camera in ["']) == r'camera in ["\"] or 1 == 1 or camera in [\""]'


def save(file: Path, **parts: object) -> Path:
    np.savez(file, **parts)  # type: ignore[arg-type]
    return file


def test_a_features_file_is_read_whole(tmp_path: Path) -> None:
    features = np.eye(3, 4, dtype=np.float32)
    found = read_features(
        save(
            tmp_path / "a.npz",
            features=features,
            records=np.array(["a", "b", "c"]),
            persons=np.array([1, 2, 2]),
            cameras=np.array(["c1", "", "c2"]),
            times=np.array(["2024-05-01", "", "12"]),
        )
    )
    assert torch.equal(found.features, torch.from_numpy(features))
    assert (found.records, found.persons) == (("a", "b", "c"), ("1", "2", "2"))
    assert (found.cameras, found.times) == (("c1", None, "c2"), ("2024-05-01", None, "12"))
    plain = read_features(save(tmp_path / "b.npz", features=features, times=np.array([1.0, np.nan, 3.0])))
    assert (plain.records, plain.times) == (("0", "1", "2"), (1.0, None, 3.0))


def test_what_is_no_features_file_is_told(tmp_path: Path) -> None:
    features = np.eye(3, 4, dtype=np.float32)
    (tmp_path / "text.npz").write_text("features")
    cases = {
        tmp_path / "none.npz": "there is no features file",
        tmp_path / "text.npz": "is no features file",
        save(tmp_path / "a.npz", vectors=features): "but got vectors",
        save(tmp_path / "b.npz", features=features, records=np.array(["a"])): "expected 3 records",
        save(tmp_path / "c.npz", features=np.eye(3, dtype=np.int64)): "expected floating features",
        save(tmp_path / "d.npz", features=np.array([{"a": 1}], dtype=object)): "is no features file",
    }
    for file, message in cases.items():
        with pytest.raises(DataError, match=message):
            read_features(file)


@pytest.mark.parametrize("package", ["pymilvus", "milvus_lite"])
def test_a_missing_extra_is_named(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'veilkit\[gallery\]'"):
        Gallery.create(
            tmp_path / "gallery", mechanism=PrivUnit(dimension=8, epsilon=1.0),
            budget=Budget(epsilon=1.0, delta=0.0), per="record",
        )  # fmt: skip
    assert not (tmp_path / "gallery" / "gallery.json").exists()


def test_a_damaged_gallery_is_told(tmp_path: Path) -> None:
    (tmp_path / "gallery.json").write_text('{"format": "veilkit gallery 7"}')
    with pytest.raises(DataError, match="not a gallery that this version reads"):
        Gallery.open(tmp_path)


def test_withdrawn_records_are_gone_and_stay_charged(make: Make) -> None:
    with make() as gallery:
        gallery.add(some(3), records=["a", "b", "c"], persons=["ann", "bob", "ann"])
        spent = gallery.budget().spent
        assert gallery.withdraw(["a", "c", "nobody"]) == 2
        assert gallery.withdraw(["a", "c"]) == 2  # as after a kill
        found = gallery.search(some(3), limit=3)
        assert {hit.pseudonym for hits in found for hit in hits} == set(gallery.pseudonyms(["b"]))
        told = gallery.budget()
        assert (told.agree, told.in_ledger, told.in_store, told.spent) == (True, 1, 1, spent)
        assert gallery.resume() == 0
        with pytest.raises(DataError, match="known with another content"):
            gallery.add(some(1), records=["a"], persons=["ann"])

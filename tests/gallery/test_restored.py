"""Older copies of a gallery's files are restored: no record gets a second vector, no budget reads as too little."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.gallery.conftest import DIMENSION, EPSILON, described, some
from tests.gallery.test_cli import features_file, veilkit
from veilkit.errors import BudgetError, DataError
from veilkit.gallery import Added, Gallery, Reconciled
from veilkit.gallery.private import Catalogue
from veilkit.privacy import Budget, PrivUnit
from veilkit.privacy.ledger import Ledger

Make = Callable[..., Gallery]
OLD, ALL = 10, 20  # records when the copy was taken, and in the end; every second one is its person's second
LEDGER, CATALOGUE = ("ledger",), ("catalogue",)
BOTH = LEDGER + CATALOGUE


def first_of(count: int) -> dict[str, list[str]]:
    """Records in an order in which each person has one before the copy, and the second after it."""
    about = described(ALL)
    order = [*range(0, ALL, 2), *range(1, ALL, 2)][:count]
    return {name: [values[row] for row in order] for name, values in about.items()}


def add(gallery: Gallery, count: int) -> Added:
    return gallery.add(some(ALL)[:count], **first_of(count))


def vectors(gallery: Gallery) -> dict[str, bytes]:
    """What is out: the vectors that the store holds."""
    rows = gallery._store.vectors(gallery._store.names())
    return {name: row[0].tobytes() for name, row in rows.items()}


def exported(gallery: Gallery, folder: Path) -> dict[str, bytes]:
    gallery.export(folder)
    with np.load(folder / "features.npz") as parts:
        return {str(n): v.tobytes() for n, v in zip(parts["pseudonyms"], parts["features"], strict=True)}


def restored(make: Make, parts: Sequence[str], per: str = "person") -> tuple[Path, dict[str, bytes]]:
    """A gallery of ALL records some of whose private files are those of OLD, and what its store holds."""
    made = make(per=per)
    private = made.folder.with_name(made.folder.name + ".private")
    with made as gallery:
        add(gallery, OLD)
    copy = made.folder.with_name("copy")
    shutil.copytree(private, copy)
    with Gallery.open(made.folder) as gallery:
        add(gallery, ALL)
        out = vectors(gallery)
    for part in parts:
        (file,) = copy.glob(f"*.{part}")
        shutil.copy(file, private / file.name)
    return made.folder, out


@pytest.mark.parametrize("per", ["person", "record"])
@pytest.mark.parametrize("parts", [LEDGER, BOTH], ids=["ledger", "both"])
def test_an_older_ledger_is_noticed_and_nothing_is_drawn_again(
    make: Make, parts: tuple[str, ...], per: str, tmp_path: Path
) -> None:
    folder, out = restored(make, parts, per)
    spent = 2 * EPSILON if per == "person" else EPSILON
    attempts: list[Callable[[Gallery], object]] = [
        lambda gallery: add(gallery, ALL),
        lambda gallery: gallery.add(some(1, seed=9), records=["new"], persons=["new"]),
        lambda gallery: gallery.resume(),
        lambda gallery: gallery.export(tmp_path / "out"),
    ]
    for attempt in attempts:
        with Gallery.open(folder) as gallery:
            with pytest.raises(DataError, match=r"10 vectors that the ledger does not know|10 unknown"):
                attempt(gallery)
            told = gallery.budget()
            assert (told.agree, told.foreign, told.missing, told.remedy) == (False, ALL - OLD, 0, "reconcile")
            assert told.spent >= spent
            assert all(level.left <= 2 * EPSILON - spent for level in told.levels) or per == "record"
            assert vectors(gallery) == out


@pytest.mark.parametrize("per", ["person", "record"])
@pytest.mark.parametrize("parts", [LEDGER, CATALOGUE, BOTH], ids=["ledger", "catalogue", "both"])
def test_reconciled_everything_is_charged_once_with_the_vectors_that_are_out(
    make: Make, parts: tuple[str, ...], per: str, tmp_path: Path
) -> None:
    folder, out = restored(make, parts, per)
    with Gallery.open(folder) as gallery:
        done = gallery.reconcile(some(ALL), **first_of(ALL))
        charged, named = (ALL - OLD if part in parts else 0 for part in BOTH)
        assert done == Reconciled(charged=charged, named=named, stored=0, unknown=0, unnamed=0)
        assert gallery.reconcile(some(ALL), **first_of(ALL)) == Reconciled(0, 0, 0, 0, 0)
        told = gallery.budget()
        assert (told.agree, told.remedy, told.in_ledger, told.in_store) == (True, None, ALL, ALL)
        assert told.spent == (2 * EPSILON if per == "person" else EPSILON)
        assert exported(gallery, tmp_path / "out") == out
        assert add(gallery, ALL) == Added(0, ALL)
        if per == "person":
            with pytest.raises(BudgetError):
                gallery.add(some(1, seed=9), records=["new"], persons=["person0"])
    with Gallery.open(folder) as gallery:
        (hits,) = gallery.search(some(1), limit=ALL, cameras=["c1"])
        assert sorted(gallery.names([hit.pseudonym for hit in hits]).values()) == sorted(
            described(ALL)["records"][1::2]
        )


def test_an_older_catalogue_is_noticed_and_costs_nobody_anything(make: Make, tmp_path: Path) -> None:
    folder, out = restored(make, CATALOGUE)
    with Gallery.open(folder) as gallery:
        told = gallery.budget()
        assert (told.agree, told.unnamed, told.remedy, told.spent) == (True, ALL - OLD, "reconcile", 2 * EPSILON)
        with pytest.raises(
            DataError, match="10 of these records are paid for, but missing in the gallery's private list"
        ):
            add(gallery, ALL)
        with pytest.raises(DataError, match="1 of these records"):
            gallery.known(first_of(ALL)["records"][-1], b"content")
        assert exported(gallery, tmp_path / "out") == out
        gallery._store.drop()
    with Gallery.open(folder) as gallery:
        with pytest.raises(DataError, match="10 of these records"):
            gallery.resume()
        assert gallery.reconcile(some(ALL), **first_of(ALL)) == Reconciled(0, ALL - OLD, ALL, 0, 0)
        assert vectors(gallery) == out


def test_without_a_source_what_the_private_list_knows_is_charged(make: Make) -> None:
    folder, out = restored(make, LEDGER)
    with Gallery.open(folder) as gallery:
        assert gallery.reconcile() == Reconciled(ALL - OLD, 0, 0, 0, 0)
        assert gallery.budget().spent == 2 * EPSILON
        assert vectors(gallery) == out


def test_without_a_source_records_are_charged_where_each_has_a_budget_of_its_own(make: Make) -> None:
    folder, out = restored(make, BOTH, "record")
    with Gallery.open(folder) as gallery:
        assert gallery.reconcile() == Reconciled(ALL - OLD, 0, 0, 0, ALL - OLD)
        assert gallery.budget().agree
        assert gallery.add(some(1, seed=9), records=["new"]) == Added(1, 0)
        with pytest.raises(DataError, match="missing in the gallery's private list"):
            add(gallery, ALL)
        assert {name: row for name, row in vectors(gallery).items() if name in out} == out


def test_what_cannot_be_told_whose_it_is_stays_refused(make: Make) -> None:
    folder, out = restored(make, BOTH)
    with Gallery.open(folder) as gallery:
        assert gallery.reconcile() == Reconciled(0, 0, 0, ALL - OLD, 0)
        part = {name: values[: OLD + 3] for name, values in first_of(ALL).items()}
        done = gallery.reconcile(some(ALL)[: OLD + 3], **part)
        assert (done, done.done) == (Reconciled(3, 3, 0, ALL - OLD - 3, 0), False)
        with pytest.raises(DataError, match="7 vectors that the ledger does not know"):
            add(gallery, ALL)
        assert gallery.budget().spent >= 2 * EPSILON
        assert vectors(gallery) == out


def test_reconciling_with_something_else_is_refused_and_changes_nothing(make: Make) -> None:
    folder, out = restored(make, LEDGER)
    about = first_of(ALL)
    wrong = [
        (some(ALL, seed=1), about, "another content or person"),
        (some(ALL), about | {"persons": about["persons"][::-1]}, "another content or person"),
    ]
    for features, given, message in wrong:
        with Gallery.open(folder) as gallery:
            with pytest.raises(DataError, match=message):
                gallery.reconcile(features, **given)
            assert gallery.budget().in_ledger == OLD
            assert vectors(gallery) == out


def test_a_paid_record_is_not_named_as_another_persons(make: Make) -> None:
    folder, _ = restored(make, CATALOGUE)
    about = first_of(ALL)
    about["persons"][OLD:] = about["persons"][OLD:][::-1]
    with Gallery.open(folder) as gallery:
        with pytest.raises(DataError, match="another person's"):
            gallery.reconcile(some(ALL), **about)
        assert gallery.budget().unnamed == ALL - OLD


@pytest.mark.parametrize("point", ["charging", "charged", "naming"])
def test_reconciling_that_was_stopped_goes_on_and_charges_nothing_twice(
    make: Make, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = restored(make, BOTH)
    adopt = Ledger.adopt

    def stopped(*given: object, **named: object) -> int:
        if point == "charged":
            adopt(*given, **named)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    where = (Catalogue, "put") if point == "naming" else (Ledger, "adopt")
    with monkeypatch.context() as patch, Gallery.open(folder) as gallery:
        patch.setattr(*where, stopped)
        with pytest.raises(KeyboardInterrupt):
            gallery.reconcile(some(ALL), **first_of(ALL))
    with Gallery.open(folder) as gallery:
        assert gallery.budget().spent >= 2 * EPSILON
        left = ALL - OLD if point == "charging" else 0
        assert gallery.reconcile(some(ALL), **first_of(ALL)) == Reconciled(left, ALL - OLD, 0, 0, 0)
        assert gallery.budget().spent == 2 * EPSILON
        assert vectors(gallery) == out


@pytest.mark.parametrize("stopped_at", ["charge", "store"])
def test_a_copy_restored_after_an_add_was_stopped_is_right_whatever_was_out(
    make: Make, stopped_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make()
    with made as gallery:
        add(gallery, OLD)
    private = made.folder.with_name(made.folder.name + ".private")
    shutil.copytree(private, made.folder.with_name("copy"))
    with monkeypatch.context() as patch, Gallery.open(made.folder) as gallery:
        whole = gallery._store.upsert

        def upsert(names: list[str], *rest: list[object]) -> None:
            if stopped_at == "store":
                whole(names[:4], *(part[:4] for part in rest))  # type: ignore[arg-type]
            raise KeyboardInterrupt

        patch.setattr(gallery._store, "upsert", upsert)
        with pytest.raises(KeyboardInterrupt):
            add(gallery, ALL)
    shutil.rmtree(private)
    shutil.copytree(made.folder.with_name("copy"), private)
    with Gallery.open(made.folder) as gallery:
        out = vectors(gallery)
        if stopped_at == "charge":  # nothing had left the private side
            assert add(gallery, ALL) == Added(ALL - OLD, OLD)
        else:
            assert gallery.budget().spent >= 2 * EPSILON
            with pytest.raises(DataError, match="4 vectors that the ledger does not know"):
                add(gallery, ALL)
            assert gallery.reconcile(some(ALL), **first_of(ALL)) == Reconciled(4, 4, 0, 0, 0)
            assert add(gallery, ALL) == Added(ALL - OLD - 4, OLD + 4)
        assert gallery.budget().spent == 2 * EPSILON
        assert {name: row for name, row in vectors(gallery).items() if name in out} == out


def test_a_store_older_than_the_ledger_gets_the_same_vectors_again(tmp_path: Path) -> None:
    made = Gallery.create(
        tmp_path / "gallery", mechanism=PrivUnit(dimension=DIMENSION, epsilon=EPSILON),
        budget=Budget(epsilon=2 * EPSILON, delta=0.0), per="person",
    )  # fmt: skip
    with made as gallery:
        add(gallery, OLD)
    shutil.copytree(tmp_path / "gallery", tmp_path / "copy")
    with Gallery.open(made.folder) as gallery:
        add(gallery, ALL)
        out = vectors(gallery)
    shutil.rmtree(tmp_path / "gallery")
    shutil.copytree(tmp_path / "copy", tmp_path / "gallery")
    with Gallery.open(made.folder) as gallery:
        told = gallery.budget()
        assert (told.missing, told.foreign, told.spent, told.remedy) == (ALL - OLD, 0, 2 * EPSILON, "add")
        assert add(gallery, ALL) == Added(0, ALL, ALL - OLD)
        assert vectors(gallery) == out
        assert gallery.budget().agree


def test_as_many_vectors_but_of_other_records_do_not_agree(make: Make) -> None:
    folder, out = restored(make, BOTH)
    with Gallery.open(folder) as gallery:
        old = gallery._owner().released()
        gallery._store._client.delete(gallery._store._collection, ids=old)
        told = gallery.budget()
        assert (told.in_ledger, told.in_store, told.missing, told.foreign) == (OLD, OLD, OLD, OLD)
        with pytest.raises(DataError, match="10 vectors that the ledger does not know"):
            add(gallery, ALL)
        assert gallery.reconcile(some(ALL), **first_of(ALL)) == Reconciled(OLD, OLD, OLD, 0, 0)
        assert vectors(gallery) == out


def test_two_vectors_of_one_record_count_twice(make: Make, tmp_path: Path) -> None:
    with make() as gallery:
        add(gallery, OLD)
        out = vectors(gallery)
        name = next(iter(out))
        camera, time = gallery._store.vectors([name])[name][1:]
        gallery._store.upsert([name], np.ones((1, DIMENSION), dtype=np.float32), [camera], [time])
        told = gallery.budget()
        assert (told.agree, told.changed, told.spent, told.remedy) == (False, 1, 2 * EPSILON, "reconcile")
        with pytest.raises(DataError, match="1 other vectors"):
            gallery.export(tmp_path / "early")
        assert gallery.reconcile() == Reconciled(1, 0, 0, 0, 0)
        assert gallery.reconcile() == Reconciled(0, 0, 0, 0, 0)
        told = gallery.budget()
        assert (told.agree, told.spent, told.in_ledger) == (True, 2 * EPSILON, OLD)
        assert [(level.releases, level.count) for level in told.levels] == [(2, 1), (1, OLD - 1)]
        assert exported(gallery, tmp_path / "out") == out


def test_an_add_to_a_server_stops_when_its_records_come_there_from_elsewhere(
    make: Make, server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make(url=server_url) as gallery:
        (name,) = gallery.pseudonyms([first_of(1)["records"][0]])
        check = Gallery.check

        def other(self: Gallery, **given: list[str]) -> None:
            check(self, **given)  # type: ignore[arg-type]
            self._store.upsert([name], np.ones((1, DIMENSION), dtype=np.float32), [None], [None])

        monkeypatch.setattr(Gallery, "check", other)
        with pytest.raises(DataError, match="1 vectors that are about to be released"):
            add(gallery, OLD)
        assert gallery.budget().in_ledger == 0


def test_a_restored_copy_by_the_commands(tmp_path: Path) -> None:
    folder, private = tmp_path / "gallery", tmp_path / "gallery.private"
    create = ["--mechanism", "privunit", "--epsilon", 4, "--budget-epsilon", 8, "--per", "person", "--dimension", 16]
    veilkit("gallery", "create", folder, *create)
    shutil.copytree(private, tmp_path / "copy")
    source = features_file(tmp_path / "some.npz")
    assert veilkit("gallery", "add", folder, source).exit_code == 0
    veilkit("gallery", "export", folder, tmp_path / "before")
    shutil.rmtree(private)
    shutil.copytree(tmp_path / "copy", private)

    refused = veilkit("gallery", "add", folder, source)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "10 vectors that the ledger does not know of" in refused.stderr
    assert "veilkit gallery reconcile" in refused.stderr
    told = veilkit("gallery", "budget", folder)
    assert told.exit_code == 3
    assert "spent by the worst person 40" in told.stdout, "all ten may be of one person"
    assert "they DIFFER, 0 missing, 10 unknown" in told.stdout
    assert veilkit("gallery", "export", folder, tmp_path / "early").exit_code == 2
    nothing = veilkit("gallery", "reconcile", folder)
    assert nothing.exit_code == 3
    assert "10 vectors in the store are still unknown" in nothing.stderr

    done = veilkit("gallery", "reconcile", folder, source)
    assert done.exit_code == 0, done.output
    assert "10 vectors charged" in done.stdout
    assert "spent by the worst person 8" in veilkit("gallery", "budget", folder).stdout
    assert "0 vectors released" in veilkit("gallery", "add", folder, source).stdout
    assert veilkit("gallery", "export", folder, tmp_path / "after").exit_code == 0
    with (
        np.load(tmp_path / "before" / "features.npz") as before,
        np.load(tmp_path / "after" / "features.npz") as after,
    ):
        assert all((before[part] == after[part]).all() for part in before.files)


def test_a_restored_copy_is_reconciled_with_pictures(folder: Path, tmp_path: Path) -> None:
    gallery, private = tmp_path / "gallery", tmp_path / "gallery.private"
    create = ["--expert", "histogram", "--mechanism", "privunit", "--epsilon", 1, "--budget-epsilon", 9]
    veilkit("gallery", "create", gallery, *create, "--per", "person")
    shutil.copytree(private, tmp_path / "copy")
    assert veilkit("gallery", "add", gallery, folder).exit_code == 0
    shutil.rmtree(private)
    shutil.copytree(tmp_path / "copy", private)
    assert veilkit("gallery", "add", gallery, folder).exit_code == 2
    done = veilkit("gallery", "reconcile", gallery, folder)
    assert done.exit_code == 0, done.output
    assert "12 vectors charged" in done.stdout
    again = veilkit("gallery", "add", gallery, folder)
    assert again.exit_code == 0, again.output
    assert "12 were there from before" in again.output

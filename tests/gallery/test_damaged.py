"""Damaged and crafted files of a gallery: a clear error or a right answer, never a traceback."""

from __future__ import annotations

import json
import random
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.gallery.conftest import DIMENSION, EPSILON, described, some
from tests.gallery.test_cli import features_file, veilkit
from veilkit.errors import DataError, VeilkitError
from veilkit.gallery import Gallery, read_facts
from veilkit.gallery.facts import FACTS
from veilkit.gallery.private import Private
from veilkit.privacy import Budget, PrivUnit

MUTATIONS, COUNT, LONGEST = 200, 40, 5.0  # seconds for one file


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged") / "gallery"
    made = Gallery.create(
        folder, mechanism=PrivUnit(dimension=DIMENSION, epsilon=EPSILON),
        budget=Budget(epsilon=2 * EPSILON, delta=0.0), per="person",
    )  # fmt: skip
    with made as opened:
        opened.add(some(COUNT), **described(COUNT))
    return folder


def private(gallery: Path, kind: str) -> Path:
    (file,) = gallery.with_name("gallery.private").glob(f"*.{kind}")
    return file


@pytest.fixture
def whole(gallery: Path) -> Iterator[dict[Path, bytes]]:
    """The files of the gallery, put back as they were when a test is done with them."""
    files = [gallery / FACTS, private(gallery, "ledger"), private(gallery, "catalogue")]
    kept = {file: file.read_bytes() for file in files}
    yield kept
    for file, data in kept.items():
        put(file, data)


def put(file: Path, data: bytes) -> None:
    for rest in file.parent.glob(f"{file.name}-*"):
        rest.unlink()
    file.write_bytes(data)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Damage of one of several kinds: bits, runs of bytes, a cut, a swap of parts, another number."""
    changed = bytearray(data)
    kind = chance.randrange(6)
    place = chance.randrange(len(changed))
    if kind == 0:
        for _ in range(chance.randint(1, 8)):
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    elif kind == 1:
        changed[place : place + chance.randint(1, 4096)] = chance.randbytes(chance.randint(0, 4096))
    elif kind == 2:
        del changed[place:]
    elif kind == 3:
        size = chance.randint(1, 64)
        other = chance.randrange(len(changed))
        changed[place : place + size], changed[other : other + size] = (
            changed[other : other + size], changed[place : place + size],
        )  # fmt: skip
    elif kind == 4:
        changed[place : place + 1] = b"\x00" * chance.randint(1, 16)
    else:
        changed[chance.randrange(min(200, len(changed)))] = chance.randrange(256)
    return bytes(changed)


def use_private(gallery: Path) -> None:
    """What the owner's commands ask of ledger and catalogue."""
    facts, about = read_facts(gallery), described(COUNT)
    opened = Private(gallery.with_name("gallery.private") / "key", facts)
    try:
        mechanism = facts.make_mechanism()
        names = [opened.pseudonym(record) for record in about["records"]]
        paid = opened.released()
        opened.ledger.released(mechanism, paid)
        opened.ledger.worst()
        opened.ledger.check(mechanism, records=names, persons=[opened.person(name) for name in about["persons"]])
        opened.catalogue.unknown(paid)
        opened.refuse_unnamed(names)
        opened.catalogue.put(opened.catalogue.get(names).values())
    finally:
        opened.close()


def outcomes(gallery: Path, file: Path, data: bytes, use: Callable[[Path], object]) -> tuple[int, int]:
    """How many of MUTATIONS files were refused, and how many were used all the same."""
    chance = random.Random(0)
    refused = used = 0
    for _ in range(MUTATIONS):
        put(file, mutated(data, chance))
        begun = time.monotonic()
        try:
            use(gallery)
            used += 1
        except VeilkitError:
            refused += 1
        assert time.monotonic() - begun < LONGEST
    return refused, used


@pytest.mark.parametrize("kind", ["ledger", "catalogue"])
def test_200_damaged_files_of_the_private_side_end_in_no_traceback(
    gallery: Path, kind: str, whole: dict[Path, bytes]
) -> None:
    file = private(gallery, kind)
    use_private(gallery)
    refused, used = outcomes(gallery, file, whole[file], use_private)
    assert refused + used == MUTATIONS
    assert refused > MUTATIONS / 2


def test_200_damaged_gallery_json_end_in_no_traceback(gallery: Path, whole: dict[Path, bytes]) -> None:
    file = gallery / FACTS
    refused, used = outcomes(gallery, file, whole[file], Gallery.open)
    assert refused + used == MUTATIONS
    assert refused > MUTATIONS / 2


CRAFTED = {
    "gallery": ["../../../etc/passwd", "a\0b", "", "x" * 10_000],
    "collection": ["a b", "", 'x"] or 1', "é"],
    "dimension": [0, -1, 10**12, 32, 1.5],
    "mechanism": [{}, {"mechanism": "none"}, {"mechanism": ["privunit"]}, {"mechanism": "privunit"}, [],
                  {"mechanism": "privunit", "dimension": 16, "epsilon": 1e308}, {"mechanism": "privunit", "x": 1},
                  {"mechanism": "privunit", "dimension": 10**9, "epsilon": 4.0}],
    "epsilon_claimed": [1.0, "NaN", None],
    "epsilon_proved": [1.0, "Infinity", -1],
    "budget_epsilon": [-1, "NaN", 0, 1e-3, 1e308],
    "budget_delta": [1, -1, "x"],
    "per": ["picture", None, "record"],
    "key_commitment": ["", "00" * 32],
    "url": ["file:///etc", "http://me:secret@host", "http://[", ""],
}  # fmt: skip


def test_crafted_gallery_json_is_refused(gallery: Path, whole: dict[Path, bytes]) -> None:
    file = gallery / FACTS
    facts = json.loads(whole[file])
    for name, values in CRAFTED.items():
        for value in values:
            file.write_text(json.dumps(facts | {name: value}))
            with pytest.raises(VeilkitError) as refused:
                use_private(gallery)
            assert "Traceback" not in str(refused.value), (name, value)
    file.write_text("[" * 5000 + "]" * 5000)
    with pytest.raises(DataError, match="not a gallery that this version reads"):
        Gallery.open(gallery)
    file.write_text(json.dumps(facts | {"mechanism": {"mechanism": json.loads("[" * 150 + "]" * 150)}}))
    with pytest.raises(DataError, match="not a gallery that this version reads"):
        Gallery.open(gallery)


LEDGERS = {
    "DELETE FROM about": "no privacy ledger",
    "UPDATE about SET value = 'x' WHERE name = 'epsilon'": "holds no budget",
    "UPDATE about SET value = '1000' WHERE name = 'epsilon'": "another budget",
    "UPDATE about SET value = 'record' WHERE name = 'per'": "another budget",
    "UPDATE about SET value = 'people' WHERE name = 'per'": "what its budget belongs to",
    "DROP TABLE mechanisms": "other tables",
    "CREATE VIEW more AS SELECT * FROM releases": "other tables",
    "CREATE TRIGGER free AFTER INSERT ON releases BEGIN DELETE FROM releases; END": "other tables",
    "DROP INDEX by_charged": "other tables",
    "UPDATE mechanisms SET epsilon = 'x'": "of no use",
    "UPDATE mechanisms SET epsilon = 0": "of no use",
    "UPDATE mechanisms SET description = 'x'": "another budget or mechanism",
    "UPDATE releases SET vector = x'00'": "vectors that are not of 16 numbers",
    "UPDATE releases SET vector = 'text'": "of no use",
    "UPDATE releases SET charged = x'00'": "of no use",
    "UPDATE releases SET charged = CAST(x'ff' AS TEXT)": "is damaged",
    "DELETE FROM mechanisms": "of no use",
}
CATALOGUES = {
    "DROP TABLE records": "other tables",
    "ALTER TABLE records RENAME COLUMN content TO contents": "is damaged",
    "UPDATE records SET record = 'text'": "of no use",
    "UPDATE records SET time = 'noon'": "of no use",
    "UPDATE records SET camera = CAST(x'ff' AS TEXT)": "is damaged",
}


@pytest.mark.parametrize(
    ("kind", "statement", "message"),
    [("ledger", *item) for item in LEDGERS.items()] + [("catalogue", *item) for item in CATALOGUES.items()],
)
def test_crafted_databases_are_refused_in_plain_words(
    gallery: Path, whole: dict[Path, bytes], kind: str, statement: str, message: str
) -> None:
    db = sqlite3.connect(private(gallery, kind))
    db.execute(statement)
    db.commit()
    db.close()
    with pytest.raises(VeilkitError, match=message):
        use_private(gallery)


def test_an_index_that_lost_a_charge_is_noticed(gallery: Path, whole: dict[Path, bytes]) -> None:
    file = private(gallery, "ledger")
    db = sqlite3.connect(file)
    (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'by_charged'").fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    data = bytearray(whole[file])
    cells = (root - 1) * size + 3  # the number of entries on the page
    count = int.from_bytes(data[cells : cells + 2], "big")
    assert count > 1
    data[cells : cells + 2] = (count - 1).to_bytes(2, "big")
    put(file, bytes(data))
    with pytest.raises(DataError, match="is damaged"):
        use_private(gallery)


@pytest.mark.parametrize("how", ["lost", "emptied", "text", "folder"])
@pytest.mark.parametrize("kind", ["catalogue", "ledger"])
def test_a_lost_or_damaged_private_file_is_told_by_every_command(tmp_path: Path, kind: str, how: str) -> None:
    folder = tmp_path / "gallery"
    words = ["--mechanism", "privunit", "--epsilon", 4, "--budget-epsilon", 8, "--per", "person", "--dimension", 16]
    assert veilkit("gallery", "create", folder, *words).exit_code == 0
    source = features_file(tmp_path / "some.npz")
    assert veilkit("gallery", "add", folder, source).exit_code == 0
    file = private(folder, kind)
    kept = file.read_bytes()
    file.unlink()
    if how == "folder":
        file.mkdir()
    elif how != "lost":
        file.write_bytes(b"" if how == "emptied" else b"a text of some length " * 200)
    commands = [
        ["add", folder, source], ["add", folder], ["budget", folder], ["export", folder, tmp_path / "out"],
        ["search", folder, source, "--key", tmp_path / "gallery.private" / "key"],
    ]  # fmt: skip
    for words in commands:
        done = veilkit("gallery", *words)
        assert (done.exit_code, done.stdout) == (2, ""), words
        assert re.search(r"is missing|is no |cannot be", done.stderr), done.stderr
        assert "restore it from a copy" in done.stderr
        assert "Traceback" not in done.stderr
    assert veilkit("gallery", "search", folder, source).exit_code == 0, "who searches needs no private file"
    if how == "folder":
        file.rmdir()
    elif how != "lost":
        file.unlink()
    if kind == "catalogue":
        done = veilkit("gallery", "reconcile", folder, source)
        assert done.exit_code == 0, done.output
        assert "0 vectors charged" in done.stdout
        assert "10 records entered in the private list" in done.stdout
    else:
        assert veilkit("gallery", "reconcile", folder, source).exit_code == 2, "nobody knows what was spent"
        file.write_bytes(kept)
    again = veilkit("gallery", "add", folder, source)
    assert again.exit_code == 0, again.output
    assert "10 were there from before" in again.stdout

"""The private ledger: one run at a time, all or nothing, and what is known stays known."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from veilkit.datasets.labels import labeller
from veilkit.display import cell_text
from veilkit.errors import DestinationError, KeyFileError
from veilkit.pipeline.ledger import Entry, Ledger

HASH = "0123456789abcdef" * 4
ODD = Entry("\udcff\n.jpg", "odd.png", identity="\udcf0(", camera="c\udc80")


def entries(count: int) -> list[Entry]:
    return [Entry(f"{index}.jpg", f"{index:04}.png", identity=str(index % 3)) for index in range(count)]


def test_entries_come_back_in_the_order_of_their_names_over_many_pages(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger:
        ledger.enrol(reversed([*entries(600), ODD]))
        assert list(ledger.entries()) == [*entries(600), ODD]
        assert ledger.count() == ledger.count("waiting") == 601
    assert stat.S_IMODE((tmp_path / "l").stat().st_mode) == 0o600


def test_results_recorded_while_reading_do_not_disturb_the_reading(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger:
        ledger.enrol(iter(entries(600)))
        seen = []
        for entry in ledger.entries():
            seen.append(entry.source)
            ledger.record([replace(entry, state="done", recipe="r", output_sha256=HASH)])
        assert len(seen) == len(set(seen)) == ledger.count("done") == 600


def test_recording_tells_how_much_of_it_is_news(tmp_path: Path) -> None:
    done = [replace(entry, state="done", recipe="r", output_sha256=HASH) for entry in entries(3)]
    with Ledger(tmp_path / "l") as ledger:
        ledger.enrol(iter(entries(3)))
        assert ledger.record(done[:2]) == 2
        assert ledger.record([done[0], replace(done[1], report="{}"), done[2]]) == 2
        assert ledger.record(done[2:]) == ledger.record([]) == 0
        assert [entry.report for entry in ledger.entries()] == [None, "{}", None]


def test_a_second_run_is_refused_while_the_first_goes_on(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l"), pytest.raises(DestinationError, match="another run"), Ledger(tmp_path / "l"):
        pass
    with Ledger(tmp_path / "l") as ledger:
        assert ledger.count() == 0


def test_what_is_known_stays_when_pictures_come_and_go(tmp_path: Path) -> None:
    first, second, third = entries(3)
    with Ledger(tmp_path / "l") as ledger:
        ledger.enrol(iter([first, second]))
        done = replace(first, state="done", recipe="r", source_sha256=HASH, output_sha256=HASH)
        ledger.record([done, replace(second, state="refused", reason="damaged")])
    with Ledger(tmp_path / "l") as ledger:
        ledger.enrol(iter([replace(second, identity="new"), third]))
        assert [entry.source for entry in ledger.entries()] == [second.source, third.source]
        assert next(ledger.entries()).identity == "new"
        assert ledger.gone() == 1
        assert list(ledger.entries("done", present=False)) == [done]
        assert list(ledger.refusals()) == [(second.source, "damaged")]


def test_enrolling_is_all_or_nothing(tmp_path: Path) -> None:
    def broken() -> list[Entry]:
        raise OSError("the source went away")

    with Ledger(tmp_path / "l") as ledger:
        ledger.enrol(iter(entries(2)))
        with pytest.raises(OSError, match="went away"):
            ledger.enrol(entry for part in (lambda: entries(1), broken) for entry in part())
        assert ledger.count() == 2


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger:
        ledger.enrol(iter([Entry("a.jpg", "a.png")]))
        with pytest.raises(DestinationError, match="choose a new folder"):
            ledger.enrol(iter([Entry("a.bmp", "a.png")]))
        assert [entry.source for entry in ledger.entries()] == ["a.jpg"]


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4_000])
def test_a_damaged_ledger_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "l").write_bytes(content)
    with pytest.raises(DestinationError, match="damaged"), Ledger(tmp_path / "l"):
        pass
    assert (tmp_path / "l").read_bytes() == content


def test_a_write_cut_off_by_a_kill_leaves_the_state_before_it(tmp_path: Path) -> None:
    """The write-ahead log is torn at every place: the ledger opens, with all of a record or none of it."""
    import shutil
    import sqlite3

    with Ledger(tmp_path / "l") as ledger:
        ledger.enrol(iter(entries(4)))
    holder = sqlite3.connect(tmp_path / "l")  # keeps the log from being folded in
    holder.execute("SELECT COUNT(*) FROM pictures").fetchone()
    with Ledger(tmp_path / "l") as ledger:
        ledger.record([replace(entry, state="done") for entry in entries(4)])
        log = (tmp_path / "l-wal").read_bytes()
        shutil.copy(tmp_path / "l", tmp_path / "copy")
    holder.close()
    counts = set()
    for length in (*range(0, len(log), max(1, len(log) // 40)), len(log)):
        shutil.copy(tmp_path / "copy", tmp_path / "torn")
        (tmp_path / "torn-wal").write_bytes(log[:length])
        (tmp_path / "torn-shm").unlink(missing_ok=True)
        with Ledger(tmp_path / "torn") as ledger:
            counts.add((ledger.count(), ledger.count("done")))
    assert counts == {(4, 0), (4, 4)}


def test_refusals_are_listed_for_their_owner(tmp_path: Path) -> None:
    import csv

    with Ledger(tmp_path / "l") as ledger:
        ledger.enrol(iter([ODD]))
        ledger.record([replace(ODD, state="refused", reason="too large: 3, at most 2")])
        ledger.write_refusals(tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(newline="", encoding="utf-8", errors="surrogateescape") as lines:
        assert list(csv.reader(lines)) == [["source", "reason"], [ODD.source, "too large: 3, at most 2"]]


def test_a_ledger_that_others_can_read_is_refused(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l"):
        pass
    (tmp_path / "l").chmod(0o644)
    with pytest.raises(KeyFileError, match="chmod 600"), Ledger(tmp_path / "l"):
        pass


def test_private_lists_hold_no_formulas_and_our_own_readers_take_them(tmp_path: Path) -> None:
    import csv

    names = ['=HYPERLINK("http://x","y").jpg', "+1.jpg", "-a.jpg", "@b.jpg", "\tc.jpg", "\uff1dd.jpg", " =e.jpg",
             "'f.jpg", "plain.jpg"]  # fmt: skip
    with Ledger(tmp_path / "l") as ledger:
        ledger.enrol(Entry(name, f"{index}.png") for index, name in enumerate(names))
        ledger.record([Entry(name, f"{index}.png", state="refused", reason="r") for index, name in enumerate(names)])
        ledger.write_refusals(tmp_path / "r.csv")
        done = [Entry(name, "", state="done", output_sha256=HASH, report='{"told": ["t"]}') for name in names]
        ledger.record(done)
        ledger.write_told(tmp_path / "t.csv")
    for file in (tmp_path / "r.csv", tmp_path / "t.csv"):
        with file.open(newline="", encoding="utf-8") as lines:
            cells = [row[0] for row in csv.reader(lines)][1:]
        assert sorted(cell_text(cell) for cell in cells) == sorted(names)
        assert sum(cell.startswith("'") for cell in cells) == len(names) - 1
        listed = file.read_text().replace("source,reason", "path,identity").replace("source,told", "path,identity")
        (tmp_path / "labels.csv").write_text(listed)
        label = labeller(f"csv:{tmp_path / 'labels.csv'}", tmp_path)
        assert {label(name)[0] for name in names} <= {"r", "t"}


def test_a_private_list_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "mine.jpg").write_text("mine")
    (tmp_path / "r.csv").symlink_to(tmp_path / "mine.jpg")
    with Ledger(tmp_path / "l") as ledger:
        ledger.write_refusals(tmp_path / "r.csv")
    assert (tmp_path / "mine.jpg").read_text() == "mine"
    assert not (tmp_path / "r.csv").is_symlink()


def test_faces_are_counted_for_each_picture_and_in_all(tmp_path: Path) -> None:
    counts = '{"counts": {"found": 2, "changed": 1, "hidden": 1, "doubtful": 3}}'
    with Ledger(tmp_path / "l") as ledger:
        ledger.enrol([Entry("=a.jpg", "a.png"), Entry("b.jpg", "b.png"), Entry("c.jpg", "c.png")])
        ledger.record([Entry("=a.jpg", "a.png", state="done", output_sha256=HASH, report=counts)])
        ledger.record([Entry("b.jpg", "b.png", state="done", output_sha256=HASH, report="{}")])
        assert ledger.faces() == {"found": 2, "changed": 1, "hidden": 1, "doubtful": 3}
        ledger.write_faces(tmp_path / "f.csv")
    assert (tmp_path / "f.csv").read_text().splitlines() == [
        "source,found,changed,hidden,doubtful,spared",
        "'=a.jpg,2,1,1,3,0",
    ]
    assert stat.S_IMODE((tmp_path / "f.csv").stat().st_mode) == 0o600

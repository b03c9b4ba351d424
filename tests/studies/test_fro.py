"""The study of FRO in the smallest: every cell is computed once, kept, and refused by another study."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from studies.fro.cells import FroCells
from studies.fro.splits import hold_back
from tests.studies.harness import Done
from veilkit.types import Record, Split

Find = Callable[[str], Done]


@pytest.mark.slow
def test_figures_of_features_are_drawn(done: Find) -> None:
    made = done("fro")
    assert len(list(made.folder.glob("tsne-*.svg"))) == 10
    pool = made.cell("pool")
    assert 0 <= pool["rank-1"][1] <= pool["rank-1"][0] <= pool["rank-1"][2] <= 1


def test_of_each_person_and_camera_the_last_pictures_are_held_back_but_never_all() -> None:
    records = [Record(f"{p}_c{c}_{n}.png", p, c) for p in "ab" for c in "12" for n in range(3)]
    records.append(Record("c_c1_0.png", "c", "1"))
    split = Split("train", Path("nowhere"), tuple(records))
    trained, unseen = hold_back(split, 1)
    assert {record.path for record in unseen.records} == {f"{p}_c{c}_2.png" for p in "ab" for c in "12"}
    assert {*trained.records, *unseen.records} == set(records)
    assert len(trained) == 9
    assert len(hold_back(split, 5)[0]) == 5
    assert hold_back(split, 0)[0].records == split.records


@pytest.mark.slow
def test_smaller_scales_are_parts_of_the_largest_and_attacked_people_are_apart(done: Find, tmp_path: Path) -> None:
    made = done("fro")
    with made.open(tmp_path, people=4, grid_people=2, scales=(0.5, 1.0, 2.0)) as some:
        _check_parts(some)


def _check_parts(some: FroCells) -> None:
    whole, targets = some.synthetic(2.0)
    parts = [some.synthetic(scale) for scale in (0.5, 1.0)]
    assert [len(whole), *(len(part) for part, _ in parts)] == [16, 4, 8]
    rows = {record.path: row for record, row in zip(whole.records, targets, strict=True)}
    for part, logits in parts:
        assert all(rows[record.path].equal(row) for record, row in zip(part.records, logits, strict=True))
        assert len(part.identities) == 4
    assert {len([r for r in parts[1][0].records if r.identity == who]) for who in whole.identities} == {2}
    groups = [some.members.identities, some.unseen.identities, some.held_out.identities]
    assert groups[0] == groups[1]
    assert not {*groups[0]} & {*groups[2]}

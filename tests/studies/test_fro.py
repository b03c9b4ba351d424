"""The study of FRO in the smallest: every cell is computed once, kept, and refused by another study."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from PIL import Image

from studies.fro.splits import hold_back
from studies.fro.figures import run_study
from studies.fro.shadows import ShadowStudyConfig
from studies.fro.cells import FroCells, FroStudyConfig
from studies.shared.cells import CellStore
from tests.conftest import random_picture
from veilkit.datasets.market1501 import load_market1501
from veilkit.errors import ConfigError, DataError
from veilkit.experts import load_expert
from veilkit.progress import Progress
from veilkit.types import Record, Split

TINY = FroStudyConfig(
    people=8, backbone="osnet-x0.25", size=(32, 16), epochs=1, batch=4, preset="paper", steps=2, scales=(0.5, 1.0),
    temperatures=(5.0,), softenings=(0.2,), ratios=(0.7,), clusters=4, pairs=8, grid_people=4,
    shadows=ShadowStudyConfig(
        people=2, pictures=2, backbone="osnet-x0.25", size=(32, 16), epochs=1, batch=2, preset="paper", steps=1
    ),
)  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Twelve people of the training part, three others to test on, in the layout of Market-1501."""
    for folder, people, shots in (("bounding_box_train", range(12), 4), ("query", range(12, 15), 1)):
        (tmp_path / "data" / folder).mkdir(parents=True)
        for person in people:
            for shot in range(shots):
                Image.fromarray(random_picture(10 * person + shot, 32, 16)).save(
                    tmp_path / "data" / folder / f"{person:04}_c1_{shot}.png"
                )
    (tmp_path / "data" / "bounding_box_test").mkdir()
    for person in range(12, 15):
        for shot in range(2):
            Image.fromarray(random_picture(10 * person + shot, 32, 16)).save(
                tmp_path / "data" / "bounding_box_test" / f"{person:04}_c2_{shot}.png"
            )
    return tmp_path / "data"


def study(data: Path, folder: Path, config: FroStudyConfig = TINY) -> FroCells:
    with Progress(config.cells(), "cells") as progress:
        cells = CellStore(folder, asdict(config), progress)
    return FroCells(
        load_market1501(data), folder, config, cells, judge=load_expert("histogram"), init=None, workers=0
    )


@pytest.mark.slow
def test_a_study_writes_every_cell_and_its_tables_and_goes_on_where_it_was(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    report = run_study(study(data, folder))
    cells = sorted((folder / "cells").glob("*.json"))
    assert len(cells) == TINY.cells()
    text = report.read_text()
    for words in (
        "student of FRO, scale 0.5",
        "student of patch recombination",
        "t-SNE",
        "epsilon 0.2",
        "mean SSIM",
        "class_linkage",
    ):
        assert words in text
    assert len(list(folder.glob("tsne-*.svg"))) == 10
    pool = json.loads((folder / "cells" / "pool.json").read_text())["result"]
    assert 0 <= pool["rank-1"][1] <= pool["rank-1"][0] <= pool["rank-1"][2] <= 1
    made = {file: file.stat().st_mtime_ns for file in (*cells, *folder.glob("students/*"))}
    assert run_study(study(data, folder)).read_text() == text
    assert {file: file.stat().st_mtime_ns for file in made} == made
    with pytest.raises(DataError, match="steps differ"):
        study(data, folder, replace(TINY, steps=3)).pool()


def test_a_study_without_scale_1_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"1\.0"):
        FroStudyConfig(scales=(0.5,))


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


def test_smaller_scales_are_parts_of_the_largest_and_attacked_people_are_apart(data: Path, tmp_path: Path) -> None:
    some = study(data, tmp_path / "study", replace(TINY, people=4, grid_people=2, scales=(0.5, 1.0, 2.0)))
    whole, targets = some.synthetic(2.0)
    parts = [some.synthetic(scale) for scale in (0.5, 1.0)]
    assert [len(whole), *(len(part) for part, _ in parts)] == [24, 6, 12]
    rows = {record.path: row for record, row in zip(whole.records, targets, strict=True)}
    for part, logits in parts:
        assert all(rows[record.path].equal(row) for record, row in zip(part.records, logits, strict=True))
        assert len(part.identities) == 4
    assert {len([r for r in parts[1][0].records if r.identity == who]) for who in whole.identities} == {3}
    groups = [some.members.identities, some.unseen.identities, some.held_out.identities]
    assert groups[0] == groups[1]
    assert not {*groups[0]} & {*groups[2]}

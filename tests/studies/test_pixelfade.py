"""The study of PixelFade in the smallest: every cell is computed once, kept, and refused by another study."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from studies.pixelfade.plan import (
    OURS,
    PixelFadeStudyConfig,
    grid_points,
    grid_variants,
    study_settings,
)
from studies.pixelfade.report import run_study
from studies.pixelfade.study import PixelFadeStudy
from studies.pixelfade.tables import AXES
from studies.shared.attacks import difference
from studies.shared.cells import Cells
from studies.shared.figures import plot
from studies.shared.parts import chosen_people, few_of_each, laid_out
from tests.audit.folders import person
from tests.methods.experts import pictures, tiny_expert_file, toy_expert
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.rerun import FreshKeys
from veilkit.datasets.market1501 import load_market1501
from veilkit.errors import ConfigError, DataError, UnknownNameError
from veilkit.experts import load_expert
from veilkit.methods.pixelfade.config import PixelFadeConfig
from veilkit.methods.pixelfade.method import PixelFade
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.types import Record, Split

TINY = PixelFadeStudyConfig(
    people=5, queries=1, gallery=2, public_people=5, public_pictures=2, methods=(OURS, "released", "avih", "blur"),
    steps=10, own_steps=10, updates=6, batch=4, width=4, attacks=("averaging", "feature_decoder"), averaged=6,
    counts=(1, 2), grid_people=4, noise_weights=(1.0,), objectives=("noise",), amplitudes=(0.1,), l1_weights=(10.0,),
    grid_steps=(10,), step_sizes=(0.01,), thresholds=(0.03,), masks=(5,), own_thresholds=(0.5,),
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six people of the training part and six others to test on, by two cameras each."""
    root = tmp_path_factory.mktemp("people")
    for folder, people, shots in (
        ("bounding_box_train", range(6), range(3)),
        ("query", range(6, 12), range(1)),
        ("bounding_box_test", range(6, 12), range(1, 3)),
    ):
        (root / folder).mkdir()
        for who in people:
            for shot in shots:
                Image.fromarray(person(who, shot)).save(root / folder / f"{who + 1:04}_c{1 + shot % 2}_{shot}.png")
    return root


@contextmanager
def study(data: Path, folder: Path, config: PixelFadeStudyConfig = TINY) -> Iterator[PixelFadeStudy]:
    expert, judge = tiny_expert_file(), load_expert("histogram")
    facts = study_settings(config, load_expert(expert), judge)
    with Progress(config.cells(), "cells") as progress, Cache(folder / "features.sqlite") as cache:
        cells = Cells(folder, facts, progress)
        yield PixelFadeStudy(
            load_market1501(data), folder, config, cells, expert=expert, judge=judge, cache=cache, workers=0
        )


@pytest.fixture(scope="module")
def done(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    with study(data, folder, replace(TINY, experts=(tiny_expert_file(),))) as some:
        run_study(some)
    return folder


def cell(folder: Path, name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "cells" / f"{name}.json").read_text())["result"]
    return result


@pytest.mark.slow
def test_a_study_writes_every_cell_table_figure_and_sheet(done: Path) -> None:
    assert len(list((done / "cells").glob("*.json"))) == TINY.cells() + 1  # one backbone
    text = (done / "report.md").read_text()
    for words in ("Table 1", "Table 2", "Table 7", "independent judge, histogram", *AXES.values()):
        assert words in text
    drawn = set(re.findall(r"\]\(([^)]+\.svg)\)", text))
    assert drawn == {file.name for file in done.glob("*.svg")}
    assert len(drawn) == len(AXES)  # no figure of the objectives, and Figure 1a
    for name in TINY.methods:
        with Image.open(done / "sheets" / f"{name}.png") as sheet:
            assert sheet.size[0] > 5 * 64
    for name in TINY.methods:
        for by in ("expert", "judge"):
            settings = cell(done, f"release.{name}")[by]["settings"]
            assert set(settings) == {"raw-raw", "raw-protected", "protected-raw", "protected-protected"}
            for scores in settings.values():
                assert 0 <= scores["rank-1"][1] <= scores["rank-1"][0] <= scores["rank-1"][2] <= 1


@pytest.mark.slow
def test_cells_say_what_the_ledger_and_the_files_say(done: Path) -> None:
    ledger = cell(done, f"release.{OURS}")["ledger"]
    assert ledger["pictures"] == 15
    assert ledger["steps"] <= 10
    assert cell(done, "release.blur")["ledger"]["held"] is None
    found = cell(done, "release.blur")["pictures"]
    originals = sorted(
        file for part in ("query", "bounding_box_test") for file in (done / "originals" / part).iterdir()
    )
    apart = []
    for file in originals:
        both = [
            np.asarray(Image.open(root / file.parent.name / file.name), dtype=np.float64) / 255
            for root in (done / "originals", done / "releases" / "blur")
        ]
        apart.append(-10 * np.log10(np.square(both[0] - both[1]).mean()))
    assert found["PSNR"][0] == pytest.approx(np.mean(apart), abs=1e-3)
    own, enlarged = cell(done, "sizes").values()
    assert own["blur"] == pytest.approx(found["SSIM"][0], abs=0.01)  # but for the file's 8 bits
    assert enlarged["blur"] != own["blur"]
    change = cell(done, "release.blur")["expert"]
    for setting, changed in change["change"].items():
        lost = change["settings"][setting]["rank-1"][0] - change["settings"]["raw-raw"]["rank-1"][0]
        assert changed["rank-1"][0] == pytest.approx(lost)


@pytest.mark.slow
def test_recovery_is_compared_picture_by_picture(done: Path) -> None:
    less, more = (cell(done, f"recovery.{name}") for name in (OURS, "avih-released"))
    assert len(less["SSIM each"]) == len(less["people"]) == 15
    assert np.mean(less["SSIM each"]) == pytest.approx(less["scores"]["SSIM"][0], abs=1e-4)
    value, low, high = cell(done, "order")[f"avih-released - {OURS}"]
    assert low <= value <= high
    assert value == pytest.approx(more["scores"]["SSIM"][0] - less["scores"]["SSIM"][0], abs=1e-4)
    assert set(cell(done, "order")) == {f"avih-released - {OURS}", "blur - avih-released"}
    ours = cell(done, f"outline.{OURS}")
    scored = [value for value in ours["AUC each"] if value is not None]
    assert np.mean(scored) == pytest.approx(ours["scores"]["AUC beyond place"][0], abs=1e-4)
    assert set(cell(done, "outlines")) == {f"{OURS} - released", f"{OURS} - floor"}


@pytest.mark.slow
def test_a_second_run_computes_nothing_and_another_study_is_refused(done: Path, data: Path) -> None:
    def times() -> dict[Path, int]:
        return {file: file.stat().st_mtime_ns for part in ("cells", "releases", "work", "sheets")
                for file in (done / part).rglob("*")}  # fmt: skip

    before, text = times(), (done / "report.md").read_text()
    with study(data, done, replace(TINY, experts=(tiny_expert_file(),))) as some:
        assert run_study(some).read_text() == text
        assert "subject" not in vars(some)  # not even the pictures were read
    assert times() == before
    with study(data, done, replace(TINY, steps=12)) as other, pytest.raises(DataError, match="steps differ"):
        other.spread()
    with study(data, done, replace(TINY, attacks=(), objectives=())) as fewer:  # these belong to no other cell
        assert fewer.release(OURS) == cell(done, f"release.{OURS}")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": ("blur",)}, "must hold pixelfade"),
        ({"methods": (OURS, "blurr")}, "did you mean 'blur'"),
        ({"attacks": ("recover",)}, "unknown attack"),
        ({"people": 3, "grid_people": 2}, "at least 4"),
        ({"grid_people": 6}, "at most people"),
        ({"grid_steps": (8,)}, "values of the original would stay"),
        ({"noise_weights": (1.5,)}, "noise_weight must be between"),
        ({"experts": ("a/x.safetensors", "b/x.safetensors")}, "different names"),
    ],
)
def test_a_wrong_configuration_is_refused_before_any_work(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        replace(TINY, **changes)


def test_points_that_change_nothing_share_one_cell_and_each_other_changes_what_it_says() -> None:
    config = PixelFadeStudyConfig()
    variants, points = grid_variants(config), grid_points(config)
    at_base = {(point.axis, point.value) for point in points if point.cell == "base"}
    assert at_base == {("noise weight", "1"), ("objective", "noise"), ("steps", "100"), ("step", "0.01"),
                       ("threshold", "0.03"), ("masks", "5")}  # fmt: skip
    released = PixelFade.presets["released"]
    made = {name: PixelFade.configured(each.preset, each.settings).config for name, each in variants.items()}
    assert made["base"] == released
    assert made["step-0.02"] == replace(released, step=0.02, unmet_step=0.08)
    assert made["masks-8"] == replace(released, masks=8, startup=8)
    assert made["l1-1000"] == replace(released, optimisation="l1", l1_weight=1000.0)
    assert made["own-threshold-0.1"] == replace(PixelFade.default, threshold=0.1)
    assert len({str(each) for each in made.values()}) == len(made)


def test_pictures_are_taken_from_each_camera_in_turn() -> None:
    records = [
        Record(f"{who}_c{camera}_{shot}.png", who, camera) for who in "ab" for camera in "12" for shot in "012"
    ]
    split = Split("gallery", Path("nowhere"), tuple(reversed(records)))
    kept = [record.path for record in few_of_each(split, 3).records]
    assert kept == [f"{who}_{rest}.png" for who in "ba" for rest in ("c2_0", "c1_1", "c1_0")]
    assert few_of_each(split, 99).records == split.records


def test_chosen_people_are_the_first_and_a_folder_of_others_is_refused(data: Path, tmp_path: Path) -> None:
    whole = load_market1501(data)
    some = laid_out(chosen_people(whole, 4, 1, 1, 2, 2), tmp_path)
    assert some.query.identities == some.gallery.identities == whole.query.identities[:4]
    assert (len(some.query), len(some.gallery), len(some.train)) == (4, 4, 4)
    assert some.query.file(0).read_bytes() == whole.query.file(0).read_bytes()
    laid_out(chosen_people(whole, 5, 1, 1, 2, 2), tmp_path)
    with pytest.raises(DataError, match="2 pictures that this study does not choose"):
        laid_out(chosen_people(whole, 4, 1, 1, 2, 2), tmp_path)


def test_paired_differences_leave_out_what_lacks_a_value() -> None:
    first, second = [0.5, None, 0.25, 0.75], [0.25, 0.1, 0.0, 0.5]
    assert difference(first, second, [0, 0, 1, 2], Randomness.from_seed(0)) == pytest.approx([0.25, 0.25, 0.25])
    value, low, high = difference([1.0, 0.0], [0.0, 0.0], [0, 1], Randomness.from_seed(0))
    assert (low, value, high) == (0.0, 0.5, 1.0)


def test_protecting_again_depends_on_picture_and_draw_alone() -> None:
    again, afresh = (
        FreshKeys(PixelFade(PixelFadeConfig(steps=3, batch=4, spread=1.0), toy_expert()), 0) for _ in range(2)
    )
    images = pictures(3)
    first = again(images, 0)
    other = again(images, 5)
    assert not first.equal(other)
    assert afresh(images[1:2], 5).equal(other[1:2])
    assert again(images.flip(0), 0).equal(first.flip(0))


def test_a_plot_is_well_formed_and_holds_its_points(tmp_path: Path) -> None:
    rows = {"a < b": [(1.0, 0.0, "x & y"), (100.0, 2.0, ""), (10.0, 1.0, "")]}
    plot(tmp_path / "plot.svg", "<title>", rows, across="x", up="y", logarithmic=True)
    root = ElementTree.fromstring((tmp_path / "plot.svg").read_text())
    dots = [each.attrib for each in root.iter("{http://www.w3.org/2000/svg}circle")]
    x, y = ([float(dot[side]) for dot in dots] for side in ("cx", "cy"))
    assert x[0] < x[2] < x[1]
    assert x[2] - x[0] == pytest.approx(x[1] - x[2], abs=0.2)
    assert y[0] > y[2] > y[1] > 0

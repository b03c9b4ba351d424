"""The study of PixelFade in the smallest: every cell is computed once, kept, and refused by another study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from studies.pixelfade.plan import (
    OURS,
    PixelFadeStudyConfig,
    grid_points,
    grid_variants,
)
from studies.pixelfade.tables import AXES
from studies.shared.attacks import difference
from studies.shared.figures import plot
from studies.shared.people_data import chosen_people, few_of_each, laid_out
from tests.methods.experts import pictures, toy_expert
from tests.studies.harness import Done, people
from veilkit.audit.inputs.rerun import FreshKeys
from veilkit.datasets.market1501 import load_market1501
from veilkit.errors import DataError
from veilkit.methods.pixelfade.config import PixelFadeConfig
from veilkit.methods.pixelfade.method import PixelFade
from veilkit.rng import Randomness
from veilkit.types import Record, Split

Find = Callable[[str], Done]


@pytest.mark.slow
def test_figures_and_sheets_are_drawn(done: Find) -> None:
    made = done("pixelfade")
    assert {file.stem for file in made.folder.glob("*.svg")} == {
        "figure-1a", *(f"grid-{axis.replace(' ', '-')}" for axis in AXES if axis != "objective")
    }  # fmt: skip
    for name in ("pixelfade", "released", "avih", "blur"):
        with Image.open(made.folder / "sheets" / f"{name}.png") as sheet:
            assert sheet.size[0] > 5 * 64
        for by in ("expert", "judge"):
            settings = made.cell(f"release/{name}")[by]["settings"]
            assert set(settings) == {"raw-raw", "raw-protected", "protected-raw", "protected-protected"}
            for scores in settings.values():
                assert 0 <= scores["rank-1"][1] <= scores["rank-1"][0] <= scores["rank-1"][2] <= 1


@pytest.mark.slow
def test_nothing_is_read_where_all_cells_are_there(done: Find) -> None:
    made = done("pixelfade")
    with made.open(attacks=(), objectives=()) as fewer:  # these belong to no other cell
        assert fewer.release("pixelfade") == made.cell("release/pixelfade")
        assert "originals" not in vars(fewer)  # not even the pictures were read


@pytest.mark.slow
def test_cells_say_what_the_ledger_and_the_files_say(done: Find) -> None:
    made = done("pixelfade")
    ledger = made.cell(f"release/{OURS}")["ledger"]
    assert ledger["pictures"] == 15
    assert ledger["steps"] <= 10
    assert made.cell("release/blur")["ledger"]["held"] is None
    found = made.cell("release/blur")["pictures"]
    originals = sorted(
        file for part in ("query", "bounding_box_test") for file in (made.folder / "originals" / part).iterdir()
    )
    apart = []
    for file in originals:
        both = [
            np.asarray(Image.open(root / file.parent.name / file.name), dtype=np.float64) / 255
            for root in (made.folder / "originals", made.folder / "releases" / "blur")
        ]
        apart.append(-10 * np.log10(np.square(both[0] - both[1]).mean()))
    assert found["PSNR"][0] == pytest.approx(np.mean(apart), abs=1e-3)
    own, enlarged = made.cell("sizes").values()
    assert own["blur"] == pytest.approx(found["SSIM"][0], abs=0.01)  # but for the file's 8 bits
    assert enlarged["blur"] != own["blur"]
    change = made.cell("release/blur")["expert"]
    for setting, changed in change["change"].items():
        lost = change["settings"][setting]["rank-1"][0] - change["settings"]["raw-raw"]["rank-1"][0]
        assert changed["rank-1"][0] == pytest.approx(lost)


@pytest.mark.slow
def test_recovery_is_compared_picture_by_picture(done: Find) -> None:
    made = done("pixelfade")
    less, more = (made.cell(f"recovery/{name}") for name in (OURS, "avih-released"))
    assert len(less["SSIM each"]) == len(less["people"]) == 15
    assert np.mean(less["SSIM each"]) == pytest.approx(less["scores"]["SSIM"][0], abs=1e-4)
    value, low, high = made.cell("order")[f"avih-released - {OURS}"]
    assert low <= value <= high
    assert value == pytest.approx(more["scores"]["SSIM"][0] - less["scores"]["SSIM"][0], abs=1e-4)
    assert set(made.cell("order")) == {f"avih-released - {OURS}", "blur - avih-released"}
    ours = made.cell(f"outline/{OURS}")
    scored = [value for value in ours["AUC each"] if value is not None]
    assert np.mean(scored) == pytest.approx(ours["scores"]["AUC beyond place"][0], abs=1e-4)
    assert set(made.cell("outlines")) == {f"{OURS} - released", f"{OURS} - floor"}


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


def test_chosen_people_are_the_first_and_a_folder_of_others_is_refused(tmp_path: Path) -> None:
    people(tmp_path / "data")
    whole, tmp_path = load_market1501(tmp_path / "data"), tmp_path / "copy"
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

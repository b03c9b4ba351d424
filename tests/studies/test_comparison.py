"""All methods in the smallest: one spec, a row for each, models by name, and what is not there listed as such."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from studies.comparison import measures as all_measures
from studies.comparison.faces import aligned_folder, chosen_faces
from studies.comparison.matrix import SPEC, Judges
from studies.comparison.models import DEFAULTS, Models
from studies.comparison.plan import ENTRIES, FACES, PEOPLE
from studies.comparison.tables import PURPOSES, about, purposes_table, remarks, table
from studies.shared.results import Results
from studies.shared.runner import load_study
from tests.methods.disguises import tiny_disguise_file
from tests.methods.experts import tiny_expert_file
from tests.methods.tiny import tiny_fro, tiny_model_file, tiny_peprnet_file
from tests.studies.harness import TINY_STUDIES, Done, flat_faces
from veilkit.attacks.pictures import HeldPictures
from veilkit.audit.inputs.spec import read_spec
from veilkit.audit.matrix import combinations
from veilkit.datasets.lfw import load_lfw
from veilkit.errors import CheckpointError, DataError, UsageError
from veilkit.experts.names import file_sha256
from veilkit.methods import METHODS, Learns
from veilkit.rng import Randomness

QUICK = {"group": 64, "assembly.steps": 1}
TINY = TINY_STUDIES["comparison"].config
Find = Callable[[str], Done]


@pytest.fixture
def lfw(tmp_path: Path) -> Path:
    flat_faces(tmp_path / "lfw")
    return tmp_path / "lfw"


@pytest.mark.slow
def test_every_method_has_a_row_and_what_is_missing_says_what_it_needs(done: Find) -> None:
    made = done("comparison")
    with made.open() as some:
        rows = some.rows()
    assert list(rows) == list(ENTRIES)
    measured = {name for name, row in rows.items() if "levels" in row}
    assert measured == {"blur", "patches", "face-pixelate"}
    assert "no model is given" in rows["privacyreid"]["not run"]
    assert "not asked for" in rows["noise"]["not run"]
    kept, levels = rows["blur"]["kept"], rows["blur"]["levels"]
    assert kept["rank-1"][1] <= kept["rank-1"][0] <= kept["rank-1"][2]
    assert kept["originals"]["rank-1"][0] == 1.0
    assert levels["L0"]["found"]["attack"] in ("linkage", "own_original")
    assert levels["L1"]["found"] is None
    assert "no patch grid" in levels["L1"]["not made"]["jigsaw"]
    assert rows["face-pixelate"]["people"] == 8
    assert rows["face-pixelate"]["kept"]["found"] is None  # dlib finds no face in pictures of nobody
    assert made.cell("people/blur") == rows["blur"]


@pytest.mark.slow
def test_one_spec_holds_all_of_it_and_the_audit_command_would_run_the_same(done: Find) -> None:
    made = done("comparison")
    spec = read_spec(made.folder / SPEC)
    assert [each.name for each in combinations(spec)] == [
        "people.blur.default.seed0", "people.patches.default.seed0", "faces.face-pixelate.default.seed0",
    ]  # fmt: skip
    assert [each.attacks for each in spec.datasets] == [TINY.attacks, TINY.face_attacks]
    assert spec.learn == TINY.updates
    assert spec.methods[2].judge == "histogram@whole"
    assert spec.datasets[0].originals == made.folder.resolve() / "originals" / "people"


@pytest.mark.slow
def test_weights_to_start_from_stand_in_the_spec_and_in_every_row(done: Find, tmp_path: Path) -> None:
    made, start = done("comparison"), Path(tiny_expert_file("mobilenetv2"))
    given = {"start": str(start), "face-start": str(start)}
    with made.open(tmp_path / "out", given, methods=("blur",)) as some:
        assert some.spec().datasets[0].start == start.resolve()
        some.run()
    held = json.loads((tmp_path / "out" / "cells" / "people.blur.json").read_text())
    assert held["settings"]["start"] == file_sha256(start)
    with (
        made.open(tmp_path / "out", methods=("blur",)) as other,
        pytest.raises(DataError, match=r"\(start differ\)"),
    ):
        other.run()
    with pytest.raises(CheckpointError, match="no such model file"), made.open(
        tmp_path / "other", {"start": str(tmp_path / "missing.safetensors")}
    ):  # fmt: skip
        pass


@pytest.mark.slow
def test_what_is_bound_to_the_expert_is_calibrated_on_the_training_part(done: Find, tmp_path: Path) -> None:
    made = done("comparison")
    with made.run(tmp_path, methods=("pixelfade", "avih", "face-blur")) as run:
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "cuhk03-np").symlink_to(made.data / "cuhk03-np")
        some = made.study.open(replace(run, data=tmp_path / "data"))
        spec = some.spec()
    assert [method.name for method in spec.methods] == ["pixelfade", "avih"]  # no faces were given
    for method in spec.methods:
        assert method.settings["expert"] == "histogram"
        assert method.settings["spread"] > 0
    kept = json.loads((tmp_path / "cells" / "spread.json").read_text())
    assert kept["result"]["spread"] == spec.methods[0].settings["spread"]


@pytest.mark.slow
def test_models_are_taken_from_their_folder_with_what_lies_beside_them(done: Find, tmp_path: Path) -> None:
    made, models = done("comparison"), tmp_path / "models"
    models.mkdir()
    for method, file in (("privacyreid", tiny_model_file()), ("peprnet", tiny_peprnet_file())):
        shutil.copyfile(file, models / DEFAULTS[method])
        shutil.copyfile(tiny_expert_file(), (models / DEFAULTS[method]).with_suffix(".expert.safetensors"))
    shutil.copyfile(tiny_disguise_file(), models / DEFAULTS["disguise"])
    fro = tiny_fro([f"{who:04}" for who in range(1, 5)]).reconfigured(settings=QUICK)
    fro.save(models / DEFAULTS["fro"])
    methods, given = ("privacyreid", "fro", "peprnet", "peprnet-features", "disguise"), {"models": str(models)}
    attacks = {"attacks": ("linkage", "class_linkage"), "face_attacks": ("linkage",)}
    with made.open(tmp_path / "out", given, methods=methods, **attacks) as some:
        rows = some.run()
    assert {name for name, row in rows.items() if "levels" in row} == set(methods)
    assert rows["privacyreid"]["kept"]["by"] != rows["privacyreid"]["judge"]  # its own recogniser, not the general
    assert "needs a student" in rows["fro"]["kept"]["why"]
    assert rows["fro"]["levels"]["L0"]["found"] or rows["fro"]["levels"]["L0"]["invalid"]
    levels, kept = rows["peprnet-features"]["levels"], rows["peprnet-features"]["kept"]
    assert levels["L0"]["found"]["value"] == levels["L3"]["found"]["value"] == kept["rank-1"]
    assert kept["rank-1"][0] <= 1
    assert "compared with each other by anybody" in levels["L0"]["why"]
    tried = {*levels["L1"]["invalid"], *levels["L1"]["not made"]}
    assert tried == {"feature_reconstruction"} or levels["L1"]["found"]
    pool = tmp_path / "out" / "originals" / "pool" / "bounding_box_train"
    assert len(list(pool.iterdir())) == 4 * 4  # the people whom the classifier knows
    shutil.copyfile(tiny_expert_file(), (models / DEFAULTS["fro"]).with_suffix(".student.safetensors"))
    with made.open(tmp_path / "out", given, methods=("fro",), **attacks) as some:
        assert 0 <= some.run()["fro"]["kept"]["rank-1"][0] <= 1


def test_files_of_recognisers_are_found_from_the_specs_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    judges = Judges("own.safetensors", "histogram", "dlib@dlib").resolved()
    assert judges == Judges(str(tmp_path / "own.safetensors"), "histogram", "dlib@dlib")


def test_models_by_name(tmp_path: Path) -> None:
    file = tmp_path / "pool.safetensors"
    file.touch()
    models = Models.of(tmp_path, [f"fro={file}"])
    assert models.file("fro") == file
    assert models.file("disguise") is None
    assert models.lacking(ENTRIES["fro"]) == ""
    assert "--model disguise=FILE" in models.lacking(ENTRIES["disguise"])
    assert models.lacking(ENTRIES["blur"]) == ""
    (tmp_path / DEFAULTS["peprnet"]).touch()
    assert "expert.safetensors" in models.lacking(ENTRIES["peprnet"])
    for words, told in ((["fro"], "METHOD=FILE"), (["blurr=x"], "unknown method with a model")):
        with pytest.raises(UsageError, match=told):
            Models.of(tmp_path, words)
    with pytest.raises(CheckpointError, match="no model of fro"):
        Models.of(tmp_path, [f"fro={tmp_path / 'nowhere'}"])
    with pytest.raises(CheckpointError):
        models.check(["fro"])  # an empty file
    assert set(DEFAULTS) == {entry.method for entry in ENTRIES.values() if issubclass(METHODS[entry.method], Learns)}


def test_faces_are_numbered_and_those_of_another_study_refused(lfw: Path, tmp_path: Path) -> None:
    split = chosen_faces(load_lfw(lfw), (1,), 4, 2)
    assert aligned_folder(split, "whole", 32, tmp_path / "work", tmp_path / "faces") == 0
    made = sorted(file.relative_to(tmp_path / "faces") for file in (tmp_path / "faces").rglob("*.png"))
    assert [file.parent.name for file in made] == [f"{number:04}" for number in range(4) for _ in range(2)]
    with Image.open(tmp_path / "faces" / made[0]) as image:
        assert image.size == (32, 32)
    with pytest.raises(DataError, match="2 faces that this study does not choose"):
        aligned_folder(chosen_faces(load_lfw(lfw), (1,), 3, 2), "whole", 32, tmp_path / "work", tmp_path / "faces")
    with pytest.raises(DataError, match="faces=9"):  # of ten people one has a single picture
        chosen_faces(load_lfw(lfw), (1,), 10, 2)


def level(**found: Any) -> dict[str, Any]:
    return {"found": None, "invalid": {}, "not made": {}, "why": "", **found}


def test_tables_tell_invalid_from_not_applicable_and_from_not_run() -> None:
    hit = {"attack": "recovery", "metric": "rank-1", "value": [0.125, 0.1, 0.2], "chance": 0.01}
    member = {"attack": "memorisation", "metric": "AUC", "value": [0.5, 0.4, 0.6], "chance": 0.5}
    blurred = {
        "label": "blur",
        "kept": {"by": "expert", "rank-1": [0.5, 0.4, 0.6], "mAP": [0.3, None, None],
                 "originals": {"rank-1": [0.9, 0.8, 1.0], "mAP": [0.7, 0.6, 0.8]}},
        "levels": {"L0": level(found=hit, invalid={"linkage": ["too weak"]}), "L1": level(found=member),
                   "L2": level(invalid={"retrained": ["its loss still fell"]}), "L3": level(why="nobody tried")},
        "judge": "stranger",
        "judge on originals": [0.2, 0.1, 0.3],
    }  # fmt: skip
    rows = {"blur": blurred, "fro": {"label": "FRO", "not run": "needs a model"}}
    lines = table(rows, PEOPLE).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert lines[2].startswith("| none (originals) | 90.0 [80.0, 100.0] | 70.0 [60.0, 80.0] | expert |")
    assert "| FRO | not run: needs a model |" in lines[3]
    assert "| 50.0 [40.0, 60.0] | 30.0 | expert; 90.0 [80.0, 100.0] |" in lines[4]
    assert "| 12.5 [10.0, 20.0] (recovery, chance 1.0) †" in lines[4]
    weak = {**blurred, "levels": {**blurred["levels"], "L0": level(found={**hit, "at least": True})}}
    assert "| ≥ 12.5 [10.0, 20.0] (recovery, chance 1.0) |" in table({"blur": weak}, PEOPLE)
    assert "50.0 [40.0, 60.0] (memorisation AUC, chance 50.0)" in lines[4]
    assert lines[4].endswith("| INVALID (retrained) | not attacked |")
    blurred["levels"]["L3"] = level(**{"not made": {"stolen_decoder": "no decoder of this release is at hand"}})
    assert table(rows, PEOPLE).endswith("| INVALID (retrained) | not applicable |")
    blurred["levels"]["L3"] = level(why="nobody tried")
    text = remarks({**rows, "face-blur": {"label": "blur", "not run": "needs pictures"}}, PEOPLE)
    for words in ("`linkage` INVALID: too weak", "L3: nobody tried"):
        assert words in text
    assert "judge: stranger" in about(rows, PEOPLE, TINY)
    assert "5 updates" in about(rows, PEOPLE, TINY)
    assert len(table({"disguise": {"label": "Disguise", "not run": "no model"}}, FACES).splitlines()) == 3


def test_the_front_page_names_the_weakest_attacker_who_gets_nearly_farthest() -> None:
    weak = {"attack": "recovery", "metric": "rank-1", "value": [0.25, 0.2, 0.3], "chance": 0.01, "at least": True}
    member = {"attack": "memorisation", "metric": "AUC", "value": [0.55, 0.4, 0.6], "chance": 0.5}
    levels = {"L0": level(found=member), "L1": level(found=weak), "L2": level(found={**weak, "value": [0.26]})}
    row = {"label": "blur", "kept": {"rank-1": [0.5, 0.4, 0.6]}, "levels": {**levels, "L3": level()}}
    (line,) = purposes_table({"blur": row}).splitlines()[2:]
    assert line.endswith("| Rank-1 50 % | at least 25 %: who runs it |")
    failed = level(invalid={"own_original": ["weak"]})
    row["levels"] = {**dict.fromkeys(levels, level()), "L0": failed}
    assert purposes_table({"blur": row}).endswith("| unknown † |")
    row["levels"] = {**levels, "L1": failed, "L0": level(found={**weak, "value": [0.01]}), "L2": level()}
    assert purposes_table({"blur": row}).endswith("| nothing beyond chance † |")


def test_the_front_page_has_every_row_but_pepr_nets_pictures_once_and_no_brackets() -> None:
    study = load_study("comparison")
    results = Results.load(study.folder)
    assert results is not None
    shown = [name for _, _, name in PURPOSES]
    left = {"peprnet", "face-blur", "face-pixelate"}  # on the study's own page
    assert sorted(shown) == sorted(set(ENTRIES) - left)
    table_of_all = study.tables(results.cells, study.published)["comparison short"]
    assert len(table_of_all.splitlines()) == len(shown) + 2
    for row in (results.cells[f"{ENTRIES[name].table}/{name}"] for name in shown):  # as the text below it says
        chances = [
            each["found"]["chance"] for each in row["levels"].values() if each["found"] and each["found"]["chance"]
        ]
        assert all(chance < 0.022 for chance in chances) or row["label"] == "FRO"
    assert not set("()[]") & set(re.sub(r"\[(`\w+`)\]\([\w./]+\)", r"\1", table_of_all))


def test_all_rows_that_are_not_measured_say_so() -> None:
    study = load_study("comparison")
    results = Results.load(study.folder)
    assert results is not None
    cells = dict(results.cells)
    del cells["people/blur"], cells["faces/face-replace"]
    text = study.tables(cells, study.published)["comparison"]
    assert "| blur | not run: not measured yet |" in text
    assert "| random replacement | not run: not measured yet |" in text
    row = study.claims(cells, study.published)[0]
    assert (row["figure"], row["note"]) == (2, "not measured yet: blur, face-replace")


class Finder:
    """Says that the points are where the first pixel's brightness puts them, and that black pictures have none."""

    def predict(self, images: torch.Tensor) -> torch.Tensor:
        base = torch.tensor([[40.0, 10], [30, 10], [0, 10], [10, 10], [20, 30]])
        shift = 10 * images[:, 0, 0, 0]
        points = base[None] + torch.stack([shift, torch.zeros_like(shift)], -1)[:, None]
        points[images.flatten(1).sum(1) == 0] = torch.nan
        return points


def test_faces_are_counted_where_they_were_and_points_measured_where_both_were_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(all_measures, "load_predictor", lambda name: Finder())
    before, after = torch.full((4, 3, 8, 8), 0.5), torch.full((4, 3, 8, 8), 0.5)
    before[3] = 0  # a face that nobody finds in the original is not asked for
    after[2] = 0
    after[1] = 0.9  # moved by 4 pixels, where the eyes are 40 apart
    people = np.array([0, 0, 1, 1])
    found = all_measures.faces_kept(HeldPictures(before), HeldPictures(after), people, Randomness.from_seed(0))
    assert found["found"][0] == pytest.approx(2 / 3)
    assert found["moved"][0] == pytest.approx(0.05)
    gone = all_measures.faces_kept(HeldPictures(before), HeldPictures(0 * after), people, Randomness.from_seed(0))
    assert (gone["found"][0], gone["moved"]) == (0.0, None)
    assert gone["found"][2] > 0.5  # of two people: none of them found proves little
    none = all_measures.faces_kept(HeldPictures(0 * before), HeldPictures(after), people, Randomness.from_seed(0))
    assert (none["found"], none["moved"]) == (None, None)

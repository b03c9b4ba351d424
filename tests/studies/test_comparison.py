"""All methods in the smallest: one spec, a row for each, models by name, and what is not there listed as such."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from studies.comparison.faces import aligned_folder, chosen_faces
from studies.comparison.models import DEFAULTS, Models
from studies.comparison.plan import ENTRIES, FACES, PEOPLE, ComparisonConfig, Starts
from studies.comparison.matrix import SPEC, ComparisonRows, Judges
from studies.comparison.tables import report, table
from tests.audit.folders import person
from tests.methods.anonymisers import tiny_model_file
from tests.methods.disguises import tiny_disguise_file
from tests.methods.experts import tiny_expert_file
from tests.methods.peprnets import tiny_peprnet_file
from tests.methods.pools import tiny_fro
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.spec import read_spec
from veilkit.audit.matrix import combinations
from veilkit.cli import app
from veilkit.datasets.lfw import load_lfw
from veilkit.datasets.market1501 import load_market1501
from veilkit.errors import CheckpointError, ConfigError, DataError, UnknownNameError, UsageError
from veilkit.experts.digest import file_sha256
from veilkit.methods import METHODS

TINY = ComparisonConfig(
    people=8, queries=1, gallery=2, updates=5, faces=8, shots=2, folds=(1,), finder="whole", side=32,
    attacks=("linkage", "own_original", "jigsaw", "class_linkage"), public_people=4, public_pictures=2,
    methods=("blur", "patches", "privacyreid", "face-pixelate"), face_attacks=("linkage", "own_original"),
)  # fmt: skip
QUICK = {"group": 64, "assembly.steps": 1}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six people of the training part and nine others to test on, by two cameras each."""
    root = tmp_path_factory.mktemp("people")
    for folder, people, shots in (
        ("bounding_box_train", range(6), range(3)),
        ("query", range(6, 15), range(1)),
        ("bounding_box_test", range(6, 15), range(1, 4)),
    ):
        (root / folder).mkdir()
        for who in people:
            for shot in shots:
                Image.fromarray(person(who, shot)).save(root / folder / f"{who + 1:04}_c{1 + shot % 2}_{shot}.png")
    return root


@pytest.fixture(scope="module")
def lfw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten "faces" of one fold, two or three pictures each, the last person of whom has one only."""
    root = tmp_path_factory.mktemp("lfw")
    names = [f"N{number}" for number in range(10)]
    for number, name in enumerate(names):
        (root / name).mkdir()
        for shot in range(1, 2 if number == 9 else 4):
            Image.fromarray(person(number, shot, (48, 48))).save(root / name / f"{name}_{shot:04}.jpg")
    same = [f"{name} 1 2" for name in names[:9]]
    other = [f"{first} 1 {second} 1" for first, second in pairwise(names)]
    (root / "pairs.txt").write_text("\n".join(["1 9", *same, *other]) + "\n")
    return root


@contextmanager
def study(
    data: Path, folder: Path, config: ComparisonConfig, models: Models, lfw: Path | None, start: Path | None = None
) -> Iterator[ComparisonRows]:
    folder.mkdir(exist_ok=True)
    judges = Judges("histogram", "histogram", "histogram@whole")
    with Cache(folder / "features.sqlite") as cache:
        faces = None if lfw is None else load_lfw(lfw)
        yield ComparisonRows(
            load_market1501(data), faces, folder, config, judges, models, cache, starts=Starts(start, start)
        )


@pytest.fixture(scope="module")
def done(data: Path, lfw: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("study")
    with study(data, folder, TINY, Models(folder / "none"), lfw) as some:
        return folder, some.run()


def test_every_method_has_a_row_and_what_is_missing_says_what_it_needs(done: tuple[Path, dict[str, Any]]) -> None:
    folder, rows = done
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
    held = json.loads((folder / "cells" / "people.blur.json").read_text())
    assert held["result"] == rows["blur"]
    assert "N0" not in "".join(file.read_text() for file in (folder / "cells").iterdir())  # nobody's name


def test_one_spec_holds_all_of_it_and_the_audit_command_would_run_the_same(done: tuple[Path, dict[str, Any]]) -> None:
    spec = read_spec(done[0] / SPEC)
    assert [each.name for each in combinations(spec)] == [
        "people.blur.default.seed0", "people.patches.default.seed0", "faces.face-pixelate.default.seed0",
    ]  # fmt: skip
    assert [each.attacks for each in spec.datasets] == [TINY.attacks, TINY.face_attacks]
    assert spec.learn == TINY.updates
    assert spec.methods[2].judge == "histogram@whole"
    assert spec.datasets[0].originals == done[0].resolve() / "originals" / "people"


def test_a_second_run_computes_nothing_and_another_study_is_refused(
    done: tuple[Path, dict[str, Any]], data: Path, lfw: Path
) -> None:
    folder, rows = done

    def cells() -> dict[Path, int]:
        return {file: file.stat().st_mtime_ns for file in (folder / "matrix" / "cells").iterdir()}

    before = cells()
    with study(data, folder, replace(TINY, methods=("blur",)), Models(folder / "none"), lfw) as again:
        assert again.run() == rows
    assert cells() == before
    with (
        study(data, folder, replace(TINY, updates=6), Models(folder / "none"), lfw) as other,
        pytest.raises(DataError, match=r"updates differ.*its own folder"),
    ):
        other.run()
    with (
        study(data, folder, TINY, Models(folder / "none"), lfw, Path(tiny_expert_file("mobilenetv2"))) as other,
        pytest.raises(DataError, match=r"\(start differ\)"),
    ):
        other.run()


def test_weights_to_start_from_stand_in_the_spec_and_in_every_row(data: Path, tmp_path: Path) -> None:
    config, start = replace(TINY, methods=("blur",)), Path(tiny_expert_file("mobilenetv2"))
    with study(data, tmp_path / "out", config, Models(tmp_path), None, start) as some:
        assert some.spec().datasets[0].start == start.resolve()
        some.run()
    held = json.loads((tmp_path / "out" / "cells" / "people.blur.json").read_text())
    assert held["settings"]["start"] == file_sha256(start)
    with (
        study(data, tmp_path / "out", config, Models(tmp_path), None) as other,
        pytest.raises(DataError, match=r"\(start differ\)"),
    ):
        other.run()


def test_what_is_bound_to_the_expert_is_calibrated_on_the_training_part(data: Path, tmp_path: Path) -> None:
    config = replace(TINY, methods=("pixelfade", "avih", "face-blur"))
    with study(data, tmp_path / "out", config, Models(tmp_path), None) as some:
        spec = some.spec()
        assert [method.name for method in spec.methods] == ["pixelfade", "avih"]  # no faces were given
        for method in spec.methods:
            assert method.settings["expert"] == "histogram"
            assert method.settings["spread"] > 0
        kept = json.loads((tmp_path / "out" / "cells" / "spread.json").read_text())
        assert kept["result"]["spread"] == spec.methods[0].settings["spread"]


@pytest.mark.slow
def test_models_are_taken_from_their_folder_with_what_lies_beside_them(data: Path, lfw: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    for method, file in (("privacyreid", tiny_model_file()), ("peprnet", tiny_peprnet_file())):
        shutil.copyfile(file, models / DEFAULTS[method])
        shutil.copyfile(tiny_expert_file(), (models / DEFAULTS[method]).with_suffix(".expert.safetensors"))
    shutil.copyfile(tiny_disguise_file(), models / DEFAULTS["disguise"])
    fro = tiny_fro([f"{who:04}" for who in range(1, 5)]).reconfigured(settings=QUICK)
    fro.save(models / DEFAULTS["fro"])
    config = replace(TINY, methods=("privacyreid", "fro", "peprnet", "peprnet-features", "disguise"))
    with study(data, tmp_path / "out", config, Models(models), lfw) as some:
        rows = some.run()
        assert {name for name, row in rows.items() if "levels" in row} == set(config.methods)
        assert (
            rows["privacyreid"]["kept"]["by"] != rows["privacyreid"]["judge"]
        )  # its own recogniser, not the general
        assert "needs a student" in rows["fro"]["kept"]["why"]
        assert rows["fro"]["levels"]["L0"]["found"] or rows["fro"]["levels"]["L0"]["invalid"]
        assert rows["peprnet-features"]["kept"]["rank-1"][0] <= 1
        levels, kept = rows["peprnet-features"]["levels"], rows["peprnet-features"]["kept"]
        assert levels["L0"]["found"]["value"] == levels["L3"]["found"]["value"] == kept["rank-1"]
        assert "compared with each other by anybody" in levels["L0"]["why"]
        assert {"feature_reconstruction"} == {*levels["L1"]["invalid"], *levels["L1"]["not made"]} or levels["L1"][
            "found"
        ]
        pool = tmp_path / "out" / "originals" / "pool" / "bounding_box_train"
        assert len(list(pool.iterdir())) == 4 * 3  # the people whom the classifier knows
    shutil.copyfile(tiny_expert_file(), (models / DEFAULTS["fro"]).with_suffix(".student.safetensors"))
    with study(data, tmp_path / "out", replace(config, methods=("fro",)), Models(models), lfw) as some:
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
    assert set(DEFAULTS) == {entry.method for entry in ENTRIES.values() if METHODS[entry.method].learns}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"methods": ("blurr",)}, "did you mean"),
        ({"attacks": ("recover",)}, "no attack"),
        ({"people": 7}, "at least 8"),
        ({"shots": 1}, "shots"),
        ({"side": 8}, "side must be"),
    ],
)
def test_a_wrong_configuration_is_refused_before_any_work(changes: dict[str, Any], told: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError, UsageError), match=told):
        replace(TINY, **changes)


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
    text = report({**rows, "face-blur": {"label": "blur", "not run": "needs pictures"}}, TINY)
    for words in ("`linkage` INVALID: too weak", "L3: nobody tried", "judge: stranger", "5 updates"):
        assert words in text
    assert len(table({"disguise": {"label": "Disguise", "not run": "no model"}}, FACES).splitlines()) == 3


def test_the_command_writes_a_report(data: Path, tmp_path: Path) -> None:
    words = ["reproduce", "all", str(data), "--out", str(tmp_path / "out"), "--expert", "histogram"]
    words += ["--models", str(tmp_path), "--set", "people=8", "--set", "methods=pixelate", "--set", "attacks=linkage"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    text = (tmp_path / "out" / "report.md").read_text()
    assert "| Disguise | not run:" in text
    assert "| pixelation | " in text
    wrong = CliRunner().invoke(app, [*words, "--model", "blur=x"])
    assert wrong.exit_code == 2
    assert "method with a model" in wrong.stderr
    wrong = CliRunner().invoke(app, [*words, "--start", tiny_expert_file()])
    assert wrong.exit_code == 2
    assert "belongs to another study (start differ)" in wrong.stderr
    wrong = CliRunner().invoke(app, [*words, "--start", str(tmp_path / "missing.safetensors")])
    assert wrong.exit_code == 2
    assert "no such model file" in wrong.stderr

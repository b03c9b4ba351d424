"""The study of Disguise in the smallest: an untrained swapper, generated faces, and judges that need no weights."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from studies.disguise.faces import people_of_folds, people_outside
from studies.disguise.models import Models, independent_judges, load_models
from studies.disguise.plan import DisguiseStudyConfig, study_settings
from studies.disguise.figures import run_study
from studies.disguise.cells import DisguiseCells
from studies.disguise.utility import Judge, kept
from studies.disguise.verification import verified
from studies.shared.cells import CellStore
from studies.shared.face_commands import disguise
from tests.attacks.learners import Recorder
from tests.methods.disguises import tiny_disguise, tiny_disguise_file
from tests.methods.experts import tiny_expert_file
from veilkit.attacks.learned import retrained
from veilkit.audit.inputs.cache import Cache
from veilkit.configs import as_dict
from veilkit.datasets.folder import load_folder
from veilkit.datasets.lfw import Lfw, load_lfw
from veilkit.errors import CheckpointError, ConfigError, DataError, UnknownNameError
from veilkit.experts.digest import file_sha256
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.synthetic.faces import render_face
from veilkit.training.face_attributes import FaceAttributesTraining

TINY = DisguiseStudyConfig(
    folds=(2, 3), shots=3, public_people=4, public_shots=2, side=32, noises=(0.5, 4.0), alone=(1.0,), steps=3,
    finder="whole", landmarks="landmarks", gaze="gaze", expression="expression", quality="whole",
    attacks=("linkage", "farthest_match", "averaging", "attribute_path"), compared=("linkage",), updates=4,
    inversion_updates=4, batch=4, counts=(1, 2), averaged=4, trained=("original", "ved"), truth="landmarks",
    landmark_training=FaceAttributesTraining(stored=32, cut=32, side=32, epochs=1, batch=8), draws=200, shown=2,
)  # fmt: skip
PEOPLE = {"a": 2, "b": 2, "c": 3, "d": 2, "e": 4, "f": 2, "g": 2, "h": 2}
FOLDS = ("ab", "cd", "ef")


@pytest.fixture(scope="module")
def lfw(tmp_path_factory: pytest.TempPathFactory) -> Lfw:
    """Eight generated people in LFW's layout, six of them in pairs of three folds."""
    base = tmp_path_factory.mktemp("sets")
    root = base / "faces"
    root.mkdir()
    for number in range(4):  # another set, whose people have one picture each
        (base / "others" / f"{number}").mkdir(parents=True)
        pixels, _ = render_face(6, number, 1, size=64)
        Image.fromarray(pixels).save(base / "others" / f"{number}" / "1.png")
    for number, (name, shots) in enumerate(PEOPLE.items()):
        (root / name).mkdir()
        for shot in range(1, shots + 1):
            pixels, _ = render_face(5, number, shot, size=64)
            Image.fromarray(pixels).save(root / name / f"{name}_{shot:04d}.jpg", quality=95)
    (root / "pairs.txt").write_text("3 1\n" + "".join(f"{x} 1 2\n{x} 1 {y} 2\n" for x, y in FOLDS))
    return load_lfw(root)


@contextmanager
def study(
    lfw: Lfw,
    folder: Path,
    config: DisguiseStudyConfig = TINY,
    elsewhere: bool = True,
    start: Path | None = None,
) -> Iterator[DisguiseCells]:
    models = Models(load_models([Path(tiny_disguise_file())]), config, folder / "transforms")
    judges = independent_judges(["histogram"], models.given)
    facts = study_settings(config, models.fingerprints(), list(judges.values()), start)
    others = load_folder(lfw.images.root.parent / "others", "folder", "elsewhere") if elsewhere else None
    with Progress(config.cells(1, elsewhere), "cells") as progress, Cache(folder / "features.sqlite") as cache:
        yield DisguiseCells(
            lfw,
            folder,
            config,
            CellStore(folder, facts, progress),
            models=models,
            judges=judges,
            cache=cache,
            workers=0,
            elsewhere=others,
            start=start,
        )


@pytest.fixture(scope="module")
def done(lfw: Lfw, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    with study(lfw, folder) as some:
        run_study(some)
    return folder


def cell(folder: Path, name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "cells" / f"{name}.json").read_text())["result"]
    return result


@pytest.mark.slow
def test_a_study_writes_every_cell_table_figure_and_sheet(done: Path) -> None:
    assert len(list((done / "cells").glob("*.json"))) == TINY.cells(1, elsewhere=True)
    text = (done / "report.md").read_text()
    for words in ("Tables 1 and 6", "Farthest match", "Tables 4, 5, 8 and 9", "Tables 2 and 7", "Table 3",
                  "no formal guarantee", "Figure 5e", "| Disguise, ved, noise 4 |", "| noise alone, noise 1 |",
                  "opp, mlp: fitted to the main model's swapper"):  # fmt: skip
        assert words in text, words
    assert set(re.findall(r"\]\(([^)]+\.svg)\)", text)) == {file.name for file in done.glob("*.svg")}
    with Image.open(done / "sheets" / "faces.png") as sheet:
        assert sheet.size[1] > 12 * 112  # original, three controls, three transforms, five with other noise
    assert not re.search(r"\b[a-h]_000", text + "".join(file.read_text() for file in (done / "cells").iterdir()))


@pytest.mark.slow
def test_only_test_people_are_scored_and_everybody_else_teaches(done: Path) -> None:
    found = cell(done, "pictures")
    assert (found["pictures"], found["people"]) == (3 + 2 + 3 + 2, 4)  # of e only two are listed, and three taken
    assert (found["public pictures"], found["public people"], found["without a face"]) == (8, 4, 0)
    assert sum(found["outcomes"].values()) == 10
    names = {file.parent.name for file in (done / "originals").rglob("*.jpg")}
    assert {name[0] for name in names} == {"t", "p"}
    assert len(names) == 8
    assert len(list((done / "originals").glob("e*/*.png"))) == 4
    assert cell(done, "elsewhere.ved.histogram")["applicable"]


@pytest.mark.slow
def test_cells_say_what_must_hold(done: Path) -> None:
    original, stranger = (cell(done, f"verified.{name}.histogram") for name in ("original", "stranger"))
    assert original["own"]["0.001"][0] == 1  # a picture is accepted as itself
    assert original["TPR"] == original["TPR, own threshold"]
    assert stranger["own"]["0.001"][0] < 1
    assert original["genuine"] == 3 * 2 + 2 + 3 * 2 + 2
    assert original["impostors"] == 10 * 10 - (9 + 4 + 9 + 4)
    kept_all = cell(done, "utility.original")
    for kind in ("landmarks", "gaze"):
        assert kept_all[kind]["mean"][0] == pytest.approx(0, abs=1e-4)
        assert cell(done, "utility.stranger")[kind]["mean"][0] > 0.1
    assert kept_all["expression"]["mean"][0] == kept_all["expression"]["found"] == 1
    order = cell(done, "utility order")["landmarks"]["ved - blur"]
    each = [cell(done, f"utility.{name}")["landmarks"]["mean"][0] for name in ("ved", "blur")]
    assert order[0] == pytest.approx(each[0] - each[1], abs=1e-4)
    taught = cell(done, "landmarks.ved")
    clean = cell(done, "landmarks.original")["mean"][0]
    assert taught["ratio"][0] == pytest.approx(taught["mean"][0] / clean, rel=1e-3)
    found = cell(done, "guarantee")
    assert found["paper"]["epsilon proved"] is None
    assert found["privunit"]["epsilon claimed"] == found["privunit"]["epsilon proved"] == TINY.epsilon
    assert 0 <= found["privunit"]["epsilon measured"] <= TINY.epsilon
    assert set(cell(done, "order.histogram")) == {
        "opp - mlp", "mlp - ved", "mlp@0.5 - mlp@4", "ved@0.5 - ved@4"
    }  # fmt: skip
    for name in TINY.attacks:
        assert cell(done, f"attack.ved.{name}")["applicable"], name


@pytest.mark.slow
def test_releases_are_of_one_swapper_and_differ_by_transform_and_noise(done: Path) -> None:
    files = {
        name: next((done / "releases" / name).rglob("t*/*.png")).read_bytes()
        for name in ("opp", "mlp", "ved", "ved-0.5", "ved-4", "noise-1", "blur", "replace", "pixelate")
    }
    assert len(set(files.values())) == len(files)


@pytest.mark.slow
def test_a_second_run_computes_nothing_and_another_study_is_refused(done: Path, lfw: Lfw) -> None:
    def times() -> dict[Path, int]:
        parts = ("cells", "releases", "work", "sheets", "landmarks", "transforms")
        return {file: file.stat().st_mtime_ns for part in parts for file in (done / part).rglob("*")}

    before, text = times(), (done / "report.md").read_text()
    with study(lfw, done) as some:
        assert run_study(some).read_text() == text
        assert "subject" not in vars(some)  # not even the pictures were read
    assert times() == before
    with study(lfw, done, replace(TINY, updates=7)) as other, pytest.raises(DataError, match="updates differ"):
        other.pictures()
    with study(lfw, done, replace(TINY, attacks=())) as fewer:  # these belong to no other cell
        assert fewer.pictures() == cell(done, "pictures")


def words(config: dict[str, Any], prefix: str = "") -> list[str]:
    """A configuration as --set takes it."""
    found = []
    for name, value in config.items():
        if isinstance(value, dict):
            found += words(value, f"{prefix}{name}.")
        else:
            shown = ",".join(map(str, value)) if isinstance(value, list) else value
            found.append(f"{prefix}{name}={shown}")
    return found


@pytest.mark.slow
def test_the_command_goes_on_with_the_same_study(done: Path, lfw: Lfw, capsys: pytest.CaptureFixture[str]) -> None:
    cells = {file: file.stat().st_mtime_ns for file in (done / "cells").iterdir()}
    root = lfw.images.root
    disguise(
        root, done, [Path(tiny_disguise_file())], ["histogram"], root.parent / "others",
        settings=words(as_dict(TINY)), workers=0,
    )  # fmt: skip
    assert f"The tables are in {done / 'report.md'}" in capsys.readouterr().out
    assert cells == {file: file.stat().st_mtime_ns for file in (done / "cells").iterdir()}


def test_the_retrained_attacker_starts_from_the_weights_given(
    lfw: Lfw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    monkeypatch.setattr(retrained, "train_on", recorder)
    start = Path(tiny_expert_file("mobilenetv2"))
    with study(lfw, tmp_path, elsewhere=False, start=start) as some:
        assert some.attack("blur", "retrained")["applicable"]
    assert recorder.starts == [start] * 3  # the release and two gates
    held = json.loads((tmp_path / "cells" / "attack.blur.retrained.json").read_text())
    assert held["settings"]["start"] == file_sha256(start)
    with study(lfw, tmp_path, elsewhere=False) as other, pytest.raises(DataError, match=r"\(start differ\)"):
        other.attack("blur", "retrained")
    with pytest.raises(CheckpointError, match="no such model file"):
        disguise(
            lfw.images.root, tmp_path / "out", [Path(tiny_disguise_file())], ["histogram"],
            start=tmp_path / "missing.safetensors", settings=words(as_dict(TINY)), workers=0,
        )  # fmt: skip


def test_people_of_the_folds_and_others_are_apart(lfw: Lfw) -> None:
    test, public = people_of_folds(lfw, (2, 3), 1, None), people_outside(lfw, (2, 3), 3, 1)
    assert test.identities == ("c", "d", "e", "f")
    assert {r.path for r in test.records} == {
        f"{x}/{x}_000{n}.jpg" for x in "cdef" for n in (1, 2)
    }  # fmt: skip
    assert public.identities == ("a", "b", "g")
    assert len(public) == 3
    assert people_of_folds(lfw, (2, 3), 1, 2).identities == ("c", "d")
    with pytest.raises(DataError, match="9 people outside"):
        people_outside(lfw, (2, 3), 9, 1)


def test_a_face_that_is_not_seen_costs_as_much_as_saying_the_same_of_everybody() -> None:
    truth = np.array([[0.0, 0.0], [10.0, 0.0], [-10.0, 0.0], [0.0, 0.0]])
    judge, people, rng = Judge("gaze", "some", None), np.array([0, 0, 1, 1]), Randomness.from_seed(0)
    blind = kept(judge, truth, np.full_like(truth, np.nan), people, rng)
    assert blind["mean"][0] == pytest.approx(5)
    assert (blind["constant"], blind["found"]) == (pytest.approx(5), 0)
    half = kept(judge, truth, np.where([[True], [False], [True], [True]], truth, np.nan), people, rng)
    assert half["each"] == pytest.approx([0, 10, 0, 0], abs=1e-4)
    nobody = np.where([[True], [True], [False], [False]], truth, np.nan)
    assert "fewer than two people" in kept(judge, nobody, truth, people, rng)["why"]


def test_verification_of_features_that_are_known() -> None:
    """Four people on four axes: raw pictures match; turned to the opposite, they are told by the farthest match."""
    people = np.repeat(np.arange(4), 3)
    rng = np.random.default_rng(0)
    raw = (np.eye(4)[people] + 0.05 * rng.normal(size=(12, 4))).astype(np.float32)
    official = [(0, 1, True, 1), (0, 4, False, 1), (6, 7, True, 2), (6, 10, False, 2)]
    same, turned = (verified(each, raw, people, official, Randomness.from_seed(0)) for each in (raw, -raw))
    assert same["TPR"]["0.01"][0] == same["accuracy"][0] == 1
    assert same["farthest"]["0.01"][0] == 0
    assert turned["TPR"]["0.01"][0] == 0
    assert turned["farthest"]["0.01"][0] == 1
    assert turned["own"]["0.01"][0] == 0
    for found in (same, turned):
        assert all(sum(shares) == pytest.approx(1, abs=1e-4) for shares in found["distances"].values())
        assert [value for _, value in found["ROC"]] == sorted(value for _, value in found["ROC"])


def test_strangers_are_accepted_as_often_as_the_threshold_lets_strangers_pass() -> None:
    """Their pairs with their own raw pictures show one person, and must not set the threshold."""
    people = np.repeat(np.arange(200), 3)
    rng = np.random.default_rng(0)
    raw = (rng.normal(size=(200, 3))[people] + 0.05 * rng.normal(size=(600, 3))).astype(np.float32)
    official = [(0, 1, True, 1), (0, 4, False, 1), (6, 7, True, 2), (6, 10, False, 2)]
    others = np.roll(raw, 3, axis=0)
    found = verified(others, raw, people, official, Randomness.from_seed(0), strangers=True)
    assert found["TPR"]["0.01"] == found["TPR, own threshold"]["0.01"]
    for value, low, high in (found["TPR"]["0.01"], found["farthest"]["0.01"]):
        assert low <= 0.01 <= high
        assert value < 0.03
    inflated = verified(others, raw, people, official, Randomness.from_seed(0))
    assert inflated["TPR"]["0.01"][0] < found["TPR"]["0.01"][0]


def test_a_judge_that_taught_any_of_the_models_is_refused() -> None:
    taught = load_models([Path(tiny_disguise_file())])["ved"]
    models = Models({"ved": tiny_disguise(), "mlp": taught}, TINY, Path())
    with pytest.raises(ConfigError, match="cannot judge it"):
        independent_judges([taught.config.identity[0]], models.given)


def test_a_judge_that_taught_the_swapper_is_refused() -> None:
    method = load_models([Path(tiny_disguise_file())])["ved"]
    with pytest.raises(ConfigError, match="cannot judge it"):
        independent_judges([method.config.identity[0]], [method])
    with pytest.raises(ConfigError, match="another ved"):
        load_models([Path(tiny_disguise_file())] * 2)
    with pytest.raises(ConfigError, match="trained model"):
        load_models([])
    with pytest.raises(ConfigError, match="is about opp"):
        Models({"ved": method}, replace(TINY, main="opp"), Path())


def test_crops_protected_again_do_not_depend_on_their_company() -> None:
    method = load_models([Path(tiny_disguise_file())])["ved"]
    models = Models({"ved": method}, TINY, Path())
    images = torch.rand(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    again = models.again(0)
    assert torch.equal(again(images, 1)[1], again(images[1:2], 1)[0])
    assert not torch.equal(again(images, 1), again(images, 2))
    neutral = models.neutral(0)
    assert torch.equal(neutral(images)[2], neutral(images[2:])[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attacks": ("recover",)}, "unknown attack"),
        ({"compared": ("averaging",)}, "runs Disguise once more"),
        ({"folds": (8,)}, "two or more"),
        ({"public_people": 3}, "at least 4"),
        ({"shots": 0}, "at least 1"),
        ({"noises": (0.0,)}, "positive scales"),
        ({"trained": ("ved@8",)}, "first table"),
        ({"main": "noise"}, "opp, mlp or ved"),
    ],
)
def test_a_wrong_configuration_is_refused_before_any_work(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        replace(TINY, **changes)

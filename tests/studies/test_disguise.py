"""The study of Disguise in the smallest: an untrained swapper, generated faces, and judges that need no weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from studies.disguise.faces import people_of_folds, people_outside
from studies.disguise.models import Models, independent_judges, load_models
from studies.disguise.utility import Judge, kept
from studies.disguise.verification import verified
from tests.attacks.learners import Recorder
from tests.methods.disguises import tiny_disguise, tiny_disguise_file
from tests.methods.experts import tiny_expert_file
from tests.studies.harness import TINY_STUDIES, Done, generated_faces
from veilkit.attacks.learned import retrained
from veilkit.datasets.lfw import load_lfw
from veilkit.errors import CheckpointError, ConfigError, DataError
from veilkit.experts.names import file_sha256
from veilkit.rng import Randomness

TINY = TINY_STUDIES["disguise"].config
Find = Callable[[str], Done]


@pytest.mark.slow
def test_a_sheet_has_every_release(done: Find) -> None:
    made = done("disguise")
    with Image.open(made.folder / "sheets" / "faces.png") as sheet:
        assert sheet.size[1] > 12 * 112  # original, three controls, three transforms, five with other noise
    with made.open(attacks=()) as fewer:  # these belong to no other cell
        assert fewer.pictures() == made.cell("pictures")
        assert "originals" not in vars(fewer)  # not even the pictures were read


@pytest.mark.slow
def test_the_retrained_attacker_starts_from_the_weights_given(
    done: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, recorder, start = done("disguise"), Recorder(), tiny_expert_file("mobilenetv2")
    monkeypatch.setattr(retrained, "train_on", recorder)
    given = {"elsewhere": None, "start": start}
    with made.open(tmp_path, given) as some:
        assert some.attack("blur", "retrained")["applicable"]
    assert recorder.starts == [Path(start)] * 3  # the release and two gates
    held = json.loads((tmp_path / "cells" / "attack.blur.retrained.json").read_text())
    assert held["settings"]["start"] == file_sha256(Path(start))
    with (
        made.open(tmp_path, {"elsewhere": None}) as other,
        pytest.raises(DataError, match=r"\(start differ\)"),
    ):
        other.attack("blur", "retrained")
    with (
        pytest.raises(CheckpointError, match="no such model file"),
        made.open(tmp_path / "out", {"elsewhere": None, "start": str(tmp_path / "missing.safetensors")}),
    ):
        pass


@pytest.mark.slow
def test_only_test_people_are_scored_and_everybody_else_teaches(done: Find) -> None:
    made = done("disguise")
    found = made.cell("pictures")
    assert (found["pictures"], found["people"]) == (3 + 2 + 3 + 2, 4)  # of e only two are listed, and three taken
    assert (found["public pictures"], found["public people"], found["without a face"]) == (8, 4, 0)
    assert sum(found["outcomes"].values()) == 10
    names = {file.parent.name for file in (made.folder / "originals").rglob("*.jpg")}
    assert {name[0] for name in names} == {"t", "p"}
    assert len(names) == 8
    assert len(list((made.folder / "originals").glob("e*/*.png"))) == 4
    assert made.cell("elsewhere/ved/histogram")["applicable"]


@pytest.mark.slow
def test_cells_say_what_must_hold(done: Find) -> None:
    made = done("disguise")
    original, stranger = (made.cell(f"verified/{name}/histogram") for name in ("original", "stranger"))
    assert original["own"]["0.001"][0] == 1  # a picture is accepted as itself
    assert original["TPR"] == original["TPR, own threshold"]
    assert stranger["own"]["0.001"][0] < 1
    assert original["genuine"] == 3 * 2 + 2 + 3 * 2 + 2
    assert original["impostors"] == 10 * 10 - (9 + 4 + 9 + 4)
    kept_all = made.cell("utility/original")
    for kind in ("landmarks", "gaze"):
        assert kept_all[kind]["mean"][0] == pytest.approx(0, abs=1e-4)
        assert made.cell("utility/stranger")[kind]["mean"][0] > 0.1
    assert kept_all["expression"]["mean"][0] == kept_all["expression"]["found"] == 1
    order = made.cell("utility order")["landmarks"]["ved - blur"]
    each = [made.cell(f"utility/{name}")["landmarks"]["mean"][0] for name in ("ved", "blur")]
    assert order[0] == pytest.approx(each[0] - each[1], abs=1e-4)
    taught = made.cell("landmarks/ved")
    clean = made.cell("landmarks/original")["mean"][0]
    assert taught["ratio"][0] == pytest.approx(taught["mean"][0] / clean, rel=1e-3)
    found = made.cell("guarantee")
    assert found["paper"]["epsilon proved"] is None
    assert found["privunit"]["epsilon claimed"] == found["privunit"]["epsilon proved"] == TINY.epsilon
    assert 0 <= found["privunit"]["epsilon measured"] <= TINY.epsilon
    assert set(made.cell("order/histogram")) == {
        "opp - mlp", "mlp - ved", "mlp@0.5 - mlp@4", "ved@0.5 - ved@4"
    }  # fmt: skip
    for name in TINY.attacks:
        assert made.cell(f"attack/ved/{name}")["applicable"], name


@pytest.mark.slow
def test_releases_are_of_one_swapper_and_differ_by_transform_and_noise(done: Find) -> None:
    made = done("disguise")
    files = {
        name: next((made.folder / "releases" / name).rglob("t*/*.png")).read_bytes()
        for name in ("opp", "mlp", "ved", "ved-0.5", "ved-4", "noise-1", "blur", "replace", "pixelate")
    }
    assert len(set(files.values())) == len(files)


def test_people_of_the_folds_and_others_are_apart(tmp_path: Path) -> None:
    generated_faces(tmp_path / "lfw")
    lfw = load_lfw(tmp_path / "lfw")
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

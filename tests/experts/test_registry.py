"""Experts by name: what is added can be loaded, what is wrong is refused and leaves nothing behind."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest
import torch

from tests.conftest import tree
from tests.experts.onnx_files import MEAN_COLOUR, Node, write_onnx
from veilkit.checkpoint import load_checkpoint
from veilkit.errors import CheckpointError, ConfigError, UnknownNameError, VeilkitError
from veilkit.experts import load_expert, registry, trial
from veilkit.experts.names import BUILT_IN_NAMES, data_home, expert_names
from veilkit.experts.preprocessing import NORMALISATIONS, Normalisation, Order, Preprocessing
from veilkit.experts.registry import Addition, add_expert, describe_expert, remove_expert
from veilkit.experts.trial import Tried
from veilkit.networks.reid import REID_KIND, load_reid

SIGNED = NORMALISATIONS["signed"]
ASKED = Addition("colours", "MIT", normalisation=SIGNED)
IMAGES = torch.rand(3, 3, 16, 8, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def _trial_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting a process for each trial would take minutes; `test_trial` does."""

    def tried(file: Path, normalisation: Normalisation, *, order: Order, **asked: object) -> Tried:
        found = trial._trial(file, {"mean": normalisation.mean, "std": normalisation.std, "order": order, **asked})
        return Tried(found["dim"], found["sha256"], Preprocessing(found["size"], *normalisation, order))

    monkeypatch.setattr(registry, "try_onnx", tried)


@pytest.fixture
def onnx_file(tmp_path: Path) -> Path:
    return write_onnx(tmp_path / "mean.onnx", MEAN_COLOUR)


def test_an_onnx_expert_is_added_loaded_and_removed(onnx_file: Path, home: Path) -> None:
    sha256 = hashlib.sha256(onnx_file.read_bytes()).hexdigest()
    asked = dataclasses.replace(ASKED, source="made here", sha256=sha256.upper(), order="bgr", card="# Mean colour\n")
    info = add_expert(onnx_file, asked)
    onnx_file.unlink()

    expert = load_expert("colours")
    assert expert.info == info == describe_expert("colours")
    assert (info.dim, info.sha256, info.licence, info.source) == (3, sha256, "MIT", "made here")
    assert (info.origin, info.differentiable, info.card) == ("user", False, "# Mean colour\n")
    torch.testing.assert_close(expert.embed(IMAGES), (2 * IMAGES.mean((2, 3)) - 1).flip(1))
    assert expert_names() == (*BUILT_IN_NAMES, "colours")

    remove_expert("colours")
    assert tree(home) == {}
    with pytest.raises(UnknownNameError):
        load_expert("colours")


def test_a_trained_expert_is_added_and_loaded(reid_file: Path) -> None:
    printed_by_training = load_checkpoint(reid_file, REID_KIND).sha256
    info = add_expert(reid_file, Addition("walkers.v1", "CC-BY-4.0", sha256=printed_by_training))
    assert info.differentiable
    wanted = load_reid(reid_file).embed(IMAGES)
    for expert in (load_expert("walkers.v1"), load_expert(str(reid_file))):
        assert expert.sha256 == info.sha256
        assert (expert.embed(IMAGES) - wanted).abs().max() <= 1e-4 * wanted.abs().max()
    assert load_expert(reid_file).name == "walkers"


def test_flip_is_recorded_and_can_be_overruled(reid_file: Path) -> None:
    assert add_expert(reid_file, Addition("mirrored", "MIT", flip=True)).flip
    network = load_reid(reid_file)
    plain, averaged = network.embed(IMAGES), (network.embed(IMAGES) + network.embed(IMAGES.flip(3))) / 2
    assert (plain - averaged).abs().max() > 1e-2 * plain.abs().max()  # else nothing below would tell them apart
    for expert, wanted in (
        (load_expert("mirrored"), averaged),
        (load_expert("mirrored", flip=True), averaged),
        (load_expert("mirrored", flip=False), plain),
        (load_expert(reid_file, flip=True), averaged),
        (load_expert(reid_file), plain),
    ):
        assert (expert.embed(IMAGES) - wanted).abs().max() <= 1e-4 * wanted.abs().max()
        assert expert.info.flip == (wanted is averaged)
    assert describe_expert("mirrored") == load_expert("mirrored").info


def test_flip_of_onnx_and_built_in_experts(tmp_path: Path) -> None:
    nodes = (Node("Flatten", ("in",), "flat"), Node("MatMul", ("flat", "w"), "out"))
    weights = [[float(x), float(1 - x)] for _ in range(3 * 16) for x in range(8)]  # left and right count differently
    path = write_onnx(tmp_path / "sides.onnx", nodes, constants={"w": weights})
    add_expert(path, dataclasses.replace(ASKED, flip=True))
    plain, mirrored = load_expert("colours", flip=False), load_expert("colours")
    torch.testing.assert_close(mirrored.embed(IMAGES), (plain.embed(IMAGES) + plain.embed(IMAGES.flip(3))) / 2)
    assert not torch.allclose(plain.embed(IMAGES), mirrored.embed(IMAGES), rtol=1e-3)
    assert (plain.info.flip, mirrored.info.flip) == (False, True)
    assert load_expert("people", flip=True).info.flip
    with pytest.raises(ConfigError, match="load it without flip"):
        load_expert("histogram", flip=True)


def test_a_record_without_flip_is_of_an_expert_without_it(reid_file: Path, home: Path) -> None:
    add_expert(reid_file, Addition("older", "MIT"))
    record = home / "experts" / "older" / "expert.json"
    values = json.loads(record.read_text())
    assert values.pop("flip") is False
    record.write_text(json.dumps(values))
    assert not load_expert("older").info.flip


def test_fingerprints_differ_wherever_features_do(reid_file: Path, onnx_file: Path) -> None:
    experts = [load_expert(reid_file), load_expert(reid_file, flip=True)]
    for name, change in (("a", {}), ("b", {"normalisation": NORMALISATIONS["imagenet"]}), ("c", {"order": "bgr"})):
        add_expert(onnx_file, dataclasses.replace(ASKED, name=name, **change))
        experts += [load_expert(name), load_expert(name, flip=True)]
    assert len({expert.info.fingerprint for expert in experts}) == len(experts)
    assert len({expert.sha256 for expert in experts}) == 2
    add_expert(reid_file, Addition("copied", "MIT", flip=True, source="elsewhere"))
    assert load_expert("copied").info.fingerprint == experts[1].info.fingerprint


NAN = (
    Node("Log", ("in",), "log"),
    Node("GlobalAveragePool", ("log",), "pooled"),
    Node("Flatten", ("pooled",), "out"),
)
INFINITE = (*MEAN_COLOUR[:1], Node("Flatten", ("pooled",), "flat"), Node("Sub", ("flat", "flat"), "nil"))
CONSTANT = (*INFINITE[:-1], Node("Sub", ("flat", "flat"), "out"))
LEAKY = (*MEAN_COLOUR[:1], Node("Flatten", ("pooled",), "flat"), Node("Softmax", ("flat",), "out", (("axis", 0),)))
MERGED = (Node("ReduceMean", ("in",), "mean", (("keepdims", 1),)), Node("Flatten", ("mean",), "out"))
SINGLE = (*MEAN_COLOUR[:1], Node("Flatten", ("pooled",), "flat"), Node("MatMul", ("flat", "w"), "out"))


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        (MEAN_COLOUR[:1], r"but got \(1, 3, 1, 1\)"),
        (NAN, "NaN or infinite"),
        ((*INFINITE, Node("Reciprocal", ("nil",), "out")), "NaN or infinite"),
        (CONSTANT, "two different images get the same features"),
        (LEAKY, "change with the other images of its batch"),
        (MERGED, r"expected features of shape \(2, 1\) for 2 images, but got \(1, 1\)"),
        (SINGLE, "at least 2 numbers per image, but got 1"),
    ],
    ids=["map", "nan", "infinite", "constant", "batch", "merged", "single"],
)
def test_a_network_that_fails_its_trial_is_refused(
    tmp_path: Path, home: Path, nodes: tuple[Node, ...], reason: str
) -> None:
    last = nodes[-1].output
    shape = "abcd" if last == "pooled" else "ab"
    path = write_onnx(tmp_path / "bad.onnx", nodes, outputs=[(last, shape)], constants={"w": [[1.0], [2.0], [3.0]]})
    with pytest.raises(CheckpointError, match=reason):
        add_expert(path, ASKED)
    assert not home.exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sha256": "0" * 64}, "expected SHA-256 0000"),
        ({"sha256": "short"}, "expected SHA-256 short"),
        ({"licence": "  "}, "licence of the weights must be stated"),
        ({"normalisation": None}, "does not say its normalisation"),
        ({"size": (32, 8)}, "takes images of 16x8, but the size given is 32x8"),
        ({"name": "people"}, "is taken"),
        ({"name": "histogram"}, "is taken"),
        ({"name": ""}, "name must be"),
        ({"name": "../escape"}, "name must be"),
        ({"name": ".hidden"}, "name must be"),
        ({"name": "Upper"}, "name must be"),
        ({"name": "a/b"}, "name must be"),
        ({"name": "like.onnx"}, "name must be"),
        ({"name": "line\n"}, "name must be"),
        ({"name": "x" * 65}, "name must be"),
    ],
)
def test_a_wrong_request_is_refused(onnx_file: Path, home: Path, change: dict[str, object], reason: str) -> None:
    with pytest.raises(VeilkitError, match=reason):
        add_expert(onnx_file, dataclasses.replace(ASKED, **change))
    assert not home.exists()


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("a.pth", "pickles, which can run code"),
        ("a.pkl", "pickles"),
        ("a.txt", r"ending in \.onnx or"),
        ("a", "ending"),
    ],
)
def test_other_kinds_of_files_are_refused(tmp_path: Path, home: Path, file: str, reason: str) -> None:
    (tmp_path / file).write_bytes(b"\x80\x04K\x01.")
    with pytest.raises(CheckpointError, match=reason):
        add_expert(tmp_path / file, ASKED)
    assert not home.exists()


def test_a_pickle_under_another_name_is_refused(tmp_path: Path, home: Path) -> None:
    path = tmp_path / "disguised.safetensors"
    torch.save({"weight": torch.zeros(1)}, path)
    with pytest.raises(CheckpointError, match="pickle files are not loaded"):
        add_expert(path, Addition("x", "MIT"))
    with pytest.raises(CheckpointError, match="no such model file"):
        add_expert(tmp_path / "absent.onnx", ASKED)
    assert not home.exists()


def test_a_free_size_must_be_given(tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "free.onnx", MEAN_COLOUR, input_shape=("n", 3, "h", "w"))
    with pytest.raises(ConfigError, match="takes images of any size"):
        add_expert(path, ASKED)
    info = add_expert(path, dataclasses.replace(ASKED, size=(40, 20)))
    assert info.preprocessing is not None
    assert info.preprocessing.size == (40, 20)


def test_a_trained_file_brings_its_own_size_and_normalisation(reid_file: Path, home: Path) -> None:
    for change in ({"size": (64, 32)}, {"normalisation": SIGNED}, {"order": "rgb"}):
        with pytest.raises(ConfigError, match="itself; leave them out"):
            add_expert(reid_file, dataclasses.replace(Addition("x", "MIT"), **change))
    assert not home.exists()


def test_a_taken_name_keeps_its_expert(onnx_file: Path, reid_file: Path, home: Path) -> None:
    add_expert(onnx_file, ASKED)
    before = tree(home)
    with pytest.raises(ConfigError, match="'colours' is taken"):
        add_expert(reid_file, Addition("colours", "MIT"))
    assert tree(home) == before


def test_altered_weights_are_not_loaded(onnx_file: Path, home: Path) -> None:
    add_expert(onnx_file, ASKED)
    weights = home / "experts" / "colours" / "weights.onnx"
    write_onnx(weights, (*MEAN_COLOUR[:1], Node("Flatten", ("pooled",), "flat"), Node("Neg", ("flat",), "out")))
    with pytest.raises(CheckpointError, match="altered since they were added"):
        load_expert("colours")
    weights.unlink()
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_expert("colours")


@pytest.mark.parametrize("change", [{"dim": "many"}, {"kind": "oracle"}, {"file": "../../x.onnx"}, {"name": "other"}])
def test_a_damaged_record_is_told_and_can_be_removed(onnx_file: Path, home: Path, change: dict[str, object]) -> None:
    add_expert(onnx_file, ASKED)
    record = home / "experts" / "colours" / "expert.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), **change}))
    with pytest.raises(CheckpointError, match="remove and add it again"):
        load_expert("colours")
    remove_expert("colours")
    assert "colours" not in expert_names()


def test_unknown_names_are_answered_with_known_ones(onnx_file: Path) -> None:
    add_expert(onnx_file, ASKED)
    known = ", ".join(sorted((*BUILT_IN_NAMES, "colours")))
    with pytest.raises(UnknownNameError, match=rf"did you mean 'colours'\? Known: {known}"):
        load_expert("colour")
    for unknown in (describe_expert, remove_expert):
        with pytest.raises(UnknownNameError, match="unknown expert 'nobody'"):
            unknown("nobody")
    with pytest.raises(ConfigError, match="cannot be removed"):
        remove_expert("histogram")
    with pytest.raises(ConfigError, match="register it with `veilkit experts add`"):
        load_expert(onnx_file)


def test_built_in_histogram() -> None:
    assert load_expert("histogram").embed(IMAGES).shape == (3, 512)
    assert describe_expert("histogram").origin == "built-in"


def test_home_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VEILKIT_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_home() == tmp_path / "veilkit"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_home() == tmp_path / ".local" / "share" / "veilkit"

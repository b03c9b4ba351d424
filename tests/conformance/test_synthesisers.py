"""What every method must keep whose pictures belong to no original: one table, one set of tests."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.conftest import tree
from tests.methods.tiny import tiny_fro
from veilkit.datasets.soft_labels import MOVES, SOFT_LABELS, moved, read_soft_labels
from veilkit.errors import DataError, UsageError
from veilkit.media.reading import Limits, decode
from veilkit.methods import METHODS, Synthesiser, bind
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

PEOPLE = tuple(f"person{number}" for number in range(6))
MAKERS = {"fro": tiny_fro}
ALL = sorted(name for name in METHODS if issubclass(METHODS[name], Synthesiser))


@pytest.fixture(params=ALL)
def method(request: pytest.FixtureRequest) -> Synthesiser:
    return MAKERS[request.param](PEOPLE)


def made(method: Synthesiser, people: tuple[str, ...] = ("person0", "person1", "person1"), seed: int = 0):
    items = [f"item{number}" for number in range(len(people))]
    return method.synthesise(items, people, rng=bind(Randomness.from_seed(seed), method))


def test_the_release_is_unpaired_and_in_range(method: Synthesiser) -> None:
    release = made(method)
    assert not release.paired
    assert release.images is not None
    assert release.images.shape[:2] == (3, 3)
    assert release.images.dtype == torch.float32
    assert release.images.min() >= 0
    assert release.images.max() <= 1


def test_the_same_randomness_gives_the_same_pictures_and_another_does_not(method: Synthesiser) -> None:
    first, second, other = made(method).images, made(method).images, made(method, seed=1).images
    assert first is not None
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert not torch.equal(first[1], first[2])  # two pictures of one person are two pictures


def test_protect_looks_at_people_and_not_at_pixels(method: Synthesiser) -> None:
    people = ("person0", "person1", "person1")
    names = tuple(f"item{number}" for number in range(3))
    rng = bind(Randomness.from_seed(0), method)
    dark, bright = (torch.full((3, 3, 32, 16), value) for value in (0.1, 0.9))
    first = method.protect(ImageBatch(dark, names, people), rng=rng)
    second = method.protect(ImageBatch(bright, names, people), rng=rng)
    assert torch.equal(first.images, second.images)
    with pytest.raises(DataError, match="unknown"):
        method.protect(ImageBatch(dark, names), rng=rng)


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_the_plan_gives_each_person_a_share_of_the_originals(method: Synthesiser, scale: float) -> None:
    counts = {person: 3 + number for number, person in enumerate(PEOPLE)}
    scaled = method.reconfigured(settings={"scale": scale})
    groups = scaled.plan({**counts, "a stranger": 9}, rng=Randomness.from_seed(0))
    planned = Counter(person for group in groups for person in group)
    assert sum(planned.values()) == round(scale * sum(counts.values()))
    assert all(abs(planned[person] - scale * counts[person]) <= 1 for person in PEOPLE)
    assert "a stranger" not in planned
    assert groups == scaled.plan(dict(reversed(counts.items())), rng=Randomness.from_seed(0))


def test_strangers_alone_are_refused(method: Synthesiser) -> None:
    with pytest.raises(DataError, match="trained on"):
        method.plan({"a stranger": 3}, rng=Randomness.from_seed(0))


def test_save_and_load(method: Synthesiser, tmp_path: Path) -> None:
    method.save(tmp_path / "model.safetensors")
    loaded = type(method).load(tmp_path / "model.safetensors")
    assert loaded.config == method.config
    assert loaded.classes == method.classes
    loaded.save(tmp_path / "again.safetensors")
    assert type(method).load(tmp_path / "again.safetensors").fingerprint() == loaded.fingerprint()


@pytest.fixture
def model(method: Synthesiser, tmp_path: Path) -> Path:
    method.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_files_are_the_same_under_the_same_key(
    method: Synthesiser, model: Path, folder: Path, tmp_path: Path
) -> None:
    """For no worker process, one and two, and for the same files created in another order elsewhere."""
    key, copy = tmp_path / "secret" / "key", tmp_path / "copy"
    files = [file for file in folder.rglob("*") if file.is_file()]
    random.Random(5).shuffle(files)
    for file in files:
        (copy / file.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy / file.relative_to(folder))
    results = []
    for source, workers in ((folder, 0), (folder, 1), (copy, 2)):
        target = tmp_path / f"release-{workers}"
        outcome = protect(source, target, method.name, model=model, key=key, workers=workers)
        assert (outcome.protected, outcome.refused) == (12, {})
        results.append(tree(target))
    assert results[0] == results[1] == results[2]
    assert len(results[0]) == 12 + 3  # the pictures, soft labels, hashes and manifest
    assert not any("person" in path for path in results[0])
    assert b"person" not in results[0]["manifest.json"]


def test_what_is_done_is_not_done_again(method: Synthesiser, model: Path, folder: Path, tmp_path: Path) -> None:
    target, key = tmp_path / "release", tmp_path / "secret" / "key"
    protect(folder, target, method.name, model=model, key=key)
    whole = tree(target)
    lost = next(target.glob("*/*.png"))
    lost.unlink()
    (target / SOFT_LABELS).unlink()
    kept = {file: file.stat().st_mtime_ns for file in target.glob("*/*.png")}
    protect(folder, target, method.name, model=model, key=key)
    assert tree(target) == whole
    untouched = [file for file, time in kept.items() if file.stat().st_mtime_ns == time]
    assert 0 < len(untouched) < 12  # the other groups stayed as they were


def test_soft_labels_are_the_logits_on_the_saved_files(
    method: Synthesiser, model: Path, folder: Path, tmp_path: Path
) -> None:
    target = tmp_path / "release"
    protect(folder, target, method.name, model=model, seed=4, names="kept")
    labels = read_soft_labels(target)
    assert labels is not None
    assert labels.classes == PEOPLE
    pictures = sorted(str(file.relative_to(target)) for file in target.glob("*/*.png"))
    assert sorted(labels.files) == pictures
    pixels = [decode((target / file).read_bytes(), Limits()) for file in labels.files]
    images = torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2).float() / 255
    expected = type(method).load(model).soft_labels(images).numpy()
    np.testing.assert_allclose(labels.logits, expected, atol=1e-4)
    assert labels.views is not None
    np.testing.assert_array_equal(labels.views.moves, MOVES)
    for move, seen in zip(MOVES, labels.views.logits, strict=True):
        of_view = type(method).load(model).soft_labels(moved(images, move)).numpy()
        np.testing.assert_allclose(seen, of_view, atol=1e-3 + 1e-3 * abs(of_view).max())  # 16 bits


def test_labels_of_a_finished_release_are_made_again_only_if_they_were_changed(
    method: Synthesiser, model: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "release"
    asked = []
    given = type(method).soft_labels
    monkeypatch.setattr(
        type(method), "soft_labels", lambda self, images: asked.append(len(images)) or given(self, images)
    )
    protect(folder, target, method.name, model=model, seed=4, workers=0)
    whole, once = tree(target), len(asked)
    assert once > 0
    protect(folder, target, method.name, model=model, seed=4, workers=0)
    assert (tree(target), len(asked)) == (whole, once)
    (target / SOFT_LABELS).write_bytes(b"something else")
    protect(folder, target, method.name, model=model, seed=4, workers=0)
    assert (tree(target), len(asked)) == (whole, 2 * once)


def test_a_model_is_asked_for(method: Synthesiser, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="veilkit fit"):
        protect(folder, tmp_path / "release", method.name)
    assert not (tmp_path / "release").exists()


def test_a_method_that_learns_nothing_takes_no_model(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(UsageError, match="learns nothing"):
        protect(folder, tmp_path / "release", "blur", model=tmp_path / "model.safetensors")

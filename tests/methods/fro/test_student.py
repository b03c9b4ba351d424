"""Knowledge replay: the student matches its teacher's logits, from a folder that any trainer could read."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from veilkit.datasets.soft_labels import MOVES, SOFT_LABELS, SoftLabels, Views, moved, read_soft_labels
from veilkit.errors import ConfigError, DataError
from veilkit.methods.fro.pool import STUDENT, load_synthetic, views_of
from veilkit.networks.reid import load_reid
from veilkit.training.reid import train_network, train_reid
from veilkit.training.reid_run import ReidRun

TINY = replace(STUDENT, backbone="osnet-x0.25", size=(32, 16), epochs=2, identities=3, images=8)
CLASSES = ("blue", "green", "red")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three colours; the teacher is less sure of the darker ones."""
    generator = np.random.default_rng(0)
    files, logits = [], []
    for number, name in enumerate(CLASSES):
        (tmp_path / "set" / name).mkdir(parents=True)
        for shot in range(8):
            level = int(generator.integers(120, 250))
            pixels = np.full((32, 16, 3), 40, np.uint8)
            pixels[..., number] = level
            Image.fromarray(pixels).save(tmp_path / "set" / name / f"{shot}.png")
            files.append(f"{name}/{shot}.png")
            logits.append(level / 50 * np.eye(3, dtype=np.float32)[number])
    order = generator.permutation(len(files))
    labels = SoftLabels(tuple(files[i] for i in order), CLASSES, np.stack(logits)[order])
    (tmp_path / "set" / SOFT_LABELS).write_bytes(labels.encode())
    return tmp_path / "set"


def test_labels_are_put_to_the_right_pictures(folder: Path) -> None:
    split, targets = load_synthetic(folder)
    for record, target in zip(split.records, targets, strict=True):
        assert CLASSES[int(target.argmax())] == record.identity


def test_numpy_alone_reads_the_file(folder: Path) -> None:
    held = np.load(folder / SOFT_LABELS)
    assert held["logits"].shape == (24, 3)
    assert held["logits"].dtype == np.float32
    assert list(held["classes"]) == list(CLASSES)


def test_the_same_labels_give_the_same_bytes() -> None:
    labels = SoftLabels(("a.png",), ("x", "y"), np.array([[1.0, 2.0]], np.float32))
    assert labels.encode() == labels.encode()


def test_the_student_comes_to_agree_with_its_teacher(folder: Path) -> None:
    split, targets = load_synthetic(folder)
    run = ReidRun(split, replace(TINY, rate=3e-3), targets=targets)
    first, *_, last = (run.step(step, run.batches(step)[0], 0.0) for step in range(16))
    assert last < 0.25 * first


def test_the_loss_is_the_divergence_from_the_teacher_written_out(folder: Path) -> None:
    split, targets = load_synthetic(folder)
    run = ReidRun(split, replace(TINY, temperature=2.0), targets=targets)
    logits, positions = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), np.arange(5)
    teacher, student = ((values.double() / 2).softmax(1).numpy() for values in (targets[:5], logits))
    expected = 4 * (teacher * np.log(teacher / student)).sum(1).mean()
    assert run._identity_loss(logits, positions).item() == pytest.approx(expected, rel=1e-5)


def test_a_student_is_written_as_an_expert(folder: Path, tmp_path: Path) -> None:
    split, targets = load_synthetic(folder)
    out = tmp_path / "student.safetensors"
    options = {"work_dir": tmp_path / "work", "targets": targets, "stream": io.StringIO()}
    train_reid(split, replace(TINY, epochs=1), out, **options)  # type: ignore[arg-type]
    assert load_reid(out).embed(torch.rand(2, 3, 32, 16)).shape[0] == 2


def test_other_targets_are_another_run(folder: Path, tmp_path: Path) -> None:
    split, targets = load_synthetic(folder)
    once = replace(TINY, epochs=1)
    train_network(split, once, work_dir=tmp_path / "work", targets=targets, stream=io.StringIO())
    with pytest.raises(ConfigError, match="targets"):
        train_network(split, once, work_dir=tmp_path / "work", targets=2 * targets, stream=io.StringIO())


def red_of_the_left(images: torch.Tensor) -> torch.Tensor:
    """A teacher who tells mirrored and shifted pictures apart."""
    left = images[:, :, :, : images.shape[3] // 2].mean((2, 3))
    return torch.stack([left[:, 0], left[:, 1] - left[:, 2], images.mean((1, 2, 3))], 1)


def test_a_picture_is_seen_in_turn_in_each_view_with_the_logits_of_that_view(folder: Path) -> None:
    split, _ = load_synthetic(folder)
    generator = torch.Generator().manual_seed(0)
    pixels = (255 * torch.rand(len(split), 3, 32, 16, generator=generator)).byte()
    taught = ReidRun(split, TINY, targets=Views.seen_by(red_of_the_left, pixels))
    taught._data.pixels = pixels
    positions = np.array([3, 4, 5, 12, 20])
    seen = set()
    for epoch in range(len(MOVES)):
        taught.epoch = epoch
        logits = red_of_the_left(taught._varied(positions, 0)[0])
        assert taught._identity_loss(logits, positions).item() == pytest.approx(0, abs=1e-6)
        seen.add(tuple(logits[0].tolist()))
    assert len(seen) == len(MOVES)


def test_the_student_comes_to_agree_with_its_teacher_in_all_views(folder: Path) -> None:
    split, targets = load_synthetic(folder)
    views = Views(MOVES, np.stack([targets.numpy()] * len(MOVES)))
    run = ReidRun(split, replace(TINY, rate=3e-3), targets=views)
    first, *_, last = (run.step(step, run.batches(step)[0], 0.0) for step in range(16))
    assert last < 0.25 * first


def test_views_are_part_of_the_file_and_go_with_their_pictures(folder: Path) -> None:
    split, targets = load_synthetic(folder)
    assert views_of(split, targets) is targets
    labels = read_soft_labels(folder)
    assert labels is not None
    moves = MOVES[:3]
    many = np.stack([labels.logits + 10 * turn for turn in range(3)])
    (folder / SOFT_LABELS).write_bytes(replace(labels, views=Views(moves, many)).encode())
    some = replace(split, records=split.records[5:9])
    found = views_of(some, targets[5:9])
    assert isinstance(found, Views)
    np.testing.assert_array_equal(found.moves, moves)
    for turn in range(3):
        np.testing.assert_allclose(found.logits[turn], targets[5:9].numpy() + 10 * turn, atol=0.02)


def test_views_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match=r"\(views, 3\)"):
        Views(MOVES[:, :2], np.zeros((8, 1, 1), np.float32))
    with pytest.raises(DataError, match=r"\(8, pictures, classes\)"):
        Views(MOVES, np.zeros((7, 1, 1), np.float32))
    with pytest.raises(DataError, match="for each view"):
        SoftLabels(("a.png",), ("x",), np.zeros((1, 1), np.float32), Views(MOVES, np.zeros((8, 2, 1), np.float32)))


@pytest.mark.parametrize("move", [(0, 0.25, 0.125), (1, -0.25, 0), (0, 0, -0.125), (0, 2, 0)])
def test_a_moved_picture_is_mirrored_and_shifted_into_black(move: tuple[float, float, float]) -> None:
    images = 0.1 + 0.9 * torch.rand(2, 3, 8, 4, generator=torch.Generator().manual_seed(0))
    found = moved(images, np.array(move, np.float32))
    down, right = round(8 * move[1]), round(8 * move[2])
    for row in range(8):
        for column in range(4):
            source = (row - down, column - right)
            inside = 0 <= source[0] < 8 and 0 <= source[1] < 4
            place = (source[0], 3 - source[1] if move[0] else source[1])
            expected = images[:, :, place[0], place[1]] if inside else torch.zeros(2, 3)
            assert torch.equal(found[:, :, row, column], expected)


def test_what_does_not_fit_is_refused(folder: Path, tmp_path: Path) -> None:
    split, targets = load_synthetic(folder)
    with pytest.raises(DataError, match="soft targets"):
        train_network(split, TINY, work_dir=tmp_path, targets=targets[:3])
    with pytest.raises(ConfigError, match="validation"):
        train_network(split, TINY, work_dir=tmp_path, targets=targets, validation=0.3)
    (folder / "red" / "stranger.png").write_bytes((folder / "red" / "0.png").read_bytes())
    with pytest.raises(DataError, match="1 of 25"):
        load_synthetic(folder)
    (folder / SOFT_LABELS).write_bytes(b"no archive")
    with pytest.raises(DataError, match="no soft labels"):
        read_soft_labels(folder)
    (folder / SOFT_LABELS).unlink()
    with pytest.raises(DataError, match="teacher"):
        load_synthetic(folder)

"""Learning landmarks, gaze and expression: crops that move the truth along, and training that repeats itself."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.synthetic.test_faces import MIRROR
from veilkit.datasets.augment import AugmentConfig
from veilkit.errors import ConfigError, DataError
from veilkit.experts.face_attributes import FaceAttributePredictor
from veilkit.networks.face_attributes import Attributes
from veilkit.rng import Randomness
from veilkit.synthetic.faces import Angles, generate_faces
from veilkit.synthetic.faces.lens import angles_of
from veilkit.training.face_attributes import (
    MIRRORED,
    CropConfig,
    FaceAttributesTraining,
    attribute_loss,
    plain_matrix,
    random_crops,
    train_face_attributes,
    turned_gaze,
)
from veilkit.training.face_examples import UNKNOWN, FaceExamples, generated_examples, load_examples, together

TINY = FaceAttributesTraining(stored=64, cut=64, side=32, epochs=4, batch=6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("faces") / "set"
    generate_faces(made, people=3, images=2, seed=3, size=64)
    return made


@pytest.fixture(scope="module")
def examples(folder: Path) -> FaceExamples:
    return generated_examples(folder, 64)


def test_it_learns_and_repeats_itself(examples: FaceExamples, tmp_path: Path) -> None:
    config = replace(TINY, epochs=30)
    runs = [
        train_face_attributes(
            examples, config, tmp_path / f"{name}.safetensors", work_dir=tmp_path / name, stream=io.StringIO()
        )
        for name in ("one", "two", "one")  # the third finds the first one's state and has nothing left to do
    ]
    assert runs[0].losses[-5:].mean() < 0.8 * runs[0].losses[:5].mean()
    assert runs[0].sha256 == runs[1].sha256 == runs[2].sha256
    with pytest.raises(ConfigError, match="another run"):
        train_face_attributes(examples, TINY, tmp_path / "x.safetensors", work_dir=tmp_path / "one")
    expert = FaceAttributePredictor.load(tmp_path / "one.safetensors", "landmarks")
    assert expert.info.source == "trained by veilkit on 6 generated faces"
    images = torch.rand(2, 3, 50, 80, requires_grad=True)
    found = expert.predict(images)
    assert found.shape == (2, 68, 2)
    assert 20 < found[..., 0].mean() < 60  # pixels of a picture 80 wide
    assert expert.features(images).shape == (2, 96)
    (gradient,) = torch.autograd.grad(found.sum(), images)
    assert gradient.abs().sum() > 0
    classes = FaceAttributePredictor.load(tmp_path / "one.safetensors", "expression")
    assert torch.allclose(classes.predict(images).sum(1), torch.ones(2), atol=1e-5)
    assert classes.classes[:2] == ("neutral", "happy")
    assert classes.predict(images[:0]).shape == (0, 7)


def test_what_is_not_known_costs_nothing() -> None:
    torch.manual_seed(0)
    found = Attributes(torch.rand(2, 68, 2), torch.rand(2, 2), torch.rand(2, 7))
    gaze, unknown = torch.full((2, 2), torch.nan), torch.full((2,), UNKNOWN)
    assert attribute_loss(found, found.landmarks, gaze, unknown, TINY) == 0
    gaze[0] = found.gaze[0] + 10  # ten degrees off in both angles, of the one face that is known
    assert float(attribute_loss(found, found.landmarks, gaze, unknown, TINY)) == pytest.approx(TINY.gaze, abs=1e-5)


def test_parts_are_put_together_and_named(examples: FaceExamples, folder: Path, tmp_path: Path) -> None:
    real = FaceExamples(
        examples.pixels[:1], examples.landmarks[:1], torch.full((1, 2), torch.nan), torch.tensor([UNKNOWN]),
        {"landmarks": "1 real face", "gaze": "", "expression": ""},
    )  # fmt: skip
    both = together([examples, real])
    assert len(both) == 7
    assert both.taught["landmarks"] == "6 generated faces; 1 real face"
    assert both.taught["gaze"] == "6 generated faces"
    assert both.digest() != examples.digest()
    assert load_examples([folder], 64, tmp_path, folds=()).digest() == examples.digest()
    larger = generated_examples(folder, 128)
    assert torch.allclose(larger.landmarks, 2 * examples.landmarks)


def test_groups_and_moving_augmentation_are_refused(tmp_path: Path) -> None:
    generate_faces(tmp_path / "groups", people=2, images=1, seed=3, size=64, faces_per_picture=2)
    with pytest.raises(DataError, match="group photographs"):
        generated_examples(tmp_path / "groups", 64)
    with pytest.raises(ConfigError, match=r"augment.flip"):
        FaceAttributesTraining(augment=AugmentConfig())


SIDE = 96


def marks(seed: int = 0, count: int = 4) -> torch.Tensor:
    """Landmarks (N, 68, 2) of something like a face in 128x128 pixels: eyes, nose and mouth where they belong."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(count, 68, 2, generator=generator) * 40 + 44
    for group, place in (
        ((36, 42), (50, 55)),
        ((42, 48), (78, 55)),
        ((30, 31), (64, 70)),
        ((48, 49), (52, 86)),
        ((54, 55), (76, 86)),
    ):
        points[:, group[0] : group[1]] = torch.tensor(place, dtype=torch.float32)
    return points


def coordinates(count: int, side: int = 128) -> torch.Tensor:
    """Pictures whose red is the column and whose green is the row, as uint8, side pixels."""
    along = torch.arange(side, dtype=torch.uint8)
    picture = torch.stack(
        [along.expand(side, side), along[:, None].expand(side, side), torch.zeros(side, side)]
    ).byte()
    return picture.expand(count, 3, side, side).clone()


@pytest.mark.parametrize("mirror", [0.0, 1.0])
def test_landmarks_lie_on_what_they_lay_on(mirror: float) -> None:
    points = marks()
    config = CropConfig(mirror=mirror, noise=0, coarse=0)
    images, moved, _ = random_crops(
        coordinates(4), points, torch.zeros(4, 2), SIDE, config, Randomness.from_seed(1).child("crops")
    )
    order = list(MIRRORED) if mirror else list(range(68))
    grid = (2 * moved - 1)[:, :, None]
    colours = torch.nn.functional.grid_sample(images, grid, align_corners=False)[..., 0]  # (N, 3, 68)
    inside = ((moved > 0.03) & (moved < 0.97)).all(-1)
    assert inside.float().mean() > 0.5
    found = colours[:, :2].permute(0, 2, 1) * 255 + 0.5
    assert (found - points[:, order])[inside].abs().max() < 1.0


def test_the_mirror_is_that_of_the_generated_faces() -> None:
    assert list(MIRRORED) == MIRROR.tolist()
    assert [MIRRORED[place] for place in MIRRORED] == list(range(68))


def test_gaze_turns_with_the_picture() -> None:
    degrees, angle = torch.tensor([[20.0, 8.0], [-12.0, 3.0]]), 25.0
    radians = math.radians(angle)  # clockwise in a picture whose rows go down
    turn = torch.tensor([[math.cos(radians), -math.sin(radians), 9.0], [math.sin(radians), math.cos(radians), 4.0]])
    found = turned_gaze(degrees, (2.5 * turn).expand(2, 2, 3))
    for (yaw, pitch), one in zip(degrees.tolist(), found, strict=True):
        wanted = angles_of(Angles(0, 0, angle).matrix() @ Angles(yaw, pitch).direction())
        assert np.allclose(one.numpy(), wanted, atol=1e-3)


def test_a_mirror_turns_the_gaze_aside_and_the_same_node_draws_the_same() -> None:
    gaze, node = torch.tensor([[20.0, 8.0]] * 3), Randomness.from_seed(3).child("crops")
    straight, mirrored = (
        random_crops(coordinates(3), marks(count=3), gaze, SIDE, CropConfig(turn=0, mirror=share), node)[2]
        for share in (0.0, 1.0)
    )
    assert torch.allclose(straight * torch.tensor([-1.0, 1.0]), mirrored, atol=1e-4)
    again = [random_crops(coordinates(3), marks(count=3), gaze, SIDE, CropConfig(), node) for _ in range(2)]
    assert all(torch.equal(one, other) for one, other in zip(*again, strict=True))


def test_a_plain_crop_shows_the_whole_face() -> None:
    points = marks()
    matrix = plain_matrix(points, SIDE)
    eyes = points[:, 36:48].mean(1)
    place = (matrix[:, :, :2] @ eyes[..., None])[..., 0] + matrix[:, :, 2]
    assert torch.allclose(place[:, 0], torch.tensor(SIDE / 2), atol=0.05 * SIDE)
    assert ((place[:, 1] > 0.25 * SIDE) & (place[:, 1] < 0.5 * SIDE)).all()
    with pytest.raises(ConfigError, match="zoom"):
        CropConfig(zoom=(0.0, 1.0))

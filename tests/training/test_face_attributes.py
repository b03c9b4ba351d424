"""Training of landmarks, gaze and expression: it learns, the same way each time, and says what taught it."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from veilkit.datasets.augment import AugmentConfig
from veilkit.errors import ConfigError, DataError
from veilkit.experts.face_attributes import FaceAttributePredictor
from veilkit.networks.face_attributes import Attributes
from veilkit.synthetic.faces import generate_faces
from veilkit.training.face_attributes import FaceAttributesTraining, attribute_loss, train_face_attributes
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

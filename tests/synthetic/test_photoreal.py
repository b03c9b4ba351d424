from importlib import metadata

import numpy as np
import pytest
import torch

from veilkit.errors import ConfigError, UsageError
from veilkit.rng import Randomness
from veilkit.synthetic.photoreal import PhotorealFaces, weights

try:
    metadata.version(weights.PACKAGE)
    INSTALLED = True
except metadata.PackageNotFoundError:
    INSTALLED = False
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
    network = openvino.Core().compile_model(weights.package_file("MappingNetwork.xml"), "CPU")
    ours = faces.styles(torch.from_numpy(noise), 1.0)
    np.testing.assert_allclose(ours.numpy(), network([noise])[0], atol=1e-4)


@needs_package
@pytest.mark.slow
def test_drawn_faces_are_what_openvino_draws(faces: PhotorealFaces) -> None:
    openvino = pytest.importorskip("openvino")
    style = faces.random_styles(1, Randomness.from_seed(0))
    network = openvino.Core().compile_model(weights.package_file("SynthesisNetwork.xml"), "CPU")
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

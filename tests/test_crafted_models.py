"""Crafted model files: refused in one line or read, and never a traceback, much memory or a long wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.crafted_models import crafted, parts_of, written
from tests.methods.disguises import TINY as TINY_DISGUISE
from tests.methods.disguises import tiny_disguise
from tests.methods.tiny import tiny_fro, tiny_model_file, tiny_peprnet_file
from veilkit.errors import CheckpointError, MissingExtraError
from veilkit.experts.face_attributes import FaceAttributePredictor
from veilkit.experts.torch_embedder import TorchEmbedder
from veilkit.methods.controls import Blur
from veilkit.methods.disguise.method import Disguise
from veilkit.methods.fro.method import Fro
from veilkit.methods.learned import Decoder, decoder_beside
from veilkit.methods.peprnet.method import PeprNet
from veilkit.methods.pixelfade.method import PixelFade
from veilkit.methods.privacyreid.method import PrivacyReid
from veilkit.networks.face_attributes import FaceAttributes, FaceAttributesConfig, save_face_attributes
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, save_reid

EACH = 24  # files of a kind; VALID has nine
MOST_SECONDS = 10.0  # of a processor; far more than any takes
Made = Callable[[Path], None]


def _reid(file: Path) -> None:
    save_reid(file, ReidNetwork(ReidNetworkConfig("osnet-x0.25", (32, 16), bands=(1, 2), reduced=8)).eval())


def _faces(file: Path) -> None:
    tiny = FaceAttributesConfig(side=32, stem=4, widths=(4, 8), blocks=(1, 1), kept=4, hidden=8, eye=4)
    save_face_attributes(file, FaceAttributes(tiny).eval(), {"gaze": "nothing"})


def _copied(source: Callable[[], str | Path]) -> Made:
    return lambda file: file.write_bytes(Path(source()).read_bytes()) and None


VALID: dict[str, tuple[Made, Callable[[Path], object]]] = {
    "reid": (_reid, TorchEmbedder.load),
    "face attributes": (_faces, lambda file: FaceAttributePredictor.load(file, "landmarks")),
    "disguise": (lambda file: tiny_disguise().save(file), Disguise.load),
    "fro": (lambda file: tiny_fro(["a", "b", "c"]).save(file), Fro.load),
    "privacyreid": (_copied(tiny_model_file), PrivacyReid.load),
    "decoder": (_copied(lambda: decoder_beside(Path(tiny_model_file()))), Decoder.load),
    "peprnet": (_copied(tiny_peprnet_file), PeprNet.load),
    "pixelfade": (lambda file: PixelFade().save(file), PixelFade.load),
    "blur": (lambda file: Blur().save(file), Blur.load),
}


@pytest.fixture(scope="module", params=list(VALID))
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    file = tmp_path_factory.mktemp("valid") / "model.safetensors"
    VALID[request.param][0](file)
    VALID[request.param][1](file)
    return request.param, file


def test_crafted_models_are_refused_in_words(model: tuple[str, Path], tmp_path: Path) -> None:
    name, valid = model
    file, refused = tmp_path / "crafted.safetensors", 0
    for what, data in crafted(valid, EACH):
        file.write_bytes(data)
        started, told = time.process_time(), None
        try:
            VALID[name][1](file)
        except (CheckpointError, MissingExtraError) as error:
            told = str(error)
        if told is not None:
            refused += 1
            assert 10 < len(told) < 2000, what
        assert time.process_time() - started < MOST_SECONDS, what
    assert refused > EACH // 2


def test_a_valid_model_is_read_when_it_is_written_again(model: tuple[str, Path], tmp_path: Path) -> None:
    """What the generator changes is what is refused, and not how it writes."""
    name, valid = model
    file = tmp_path / "again.safetensors"
    file.write_bytes(written(*parts_of(valid)))
    VALID[name][1](file)


def test_a_disguise_with_an_empty_configuration_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "d.safetensors"
    tiny_disguise(TINY_DISGUISE).save(file)
    kind, _, tensors = parts_of(file)
    for config, reason in (({}, "method is missing"), ({"method": {}, "model": {}}, "experts, dims, sensitivity")):
        file.write_bytes(written(kind, config, tensors))
        with pytest.raises(CheckpointError, match=reason):
            Disguise.load(file)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("backbone", 5, "backbone must be of type str, but got 5"),
        ("bands", [10_000_000], "bands must be 1 to 64 sizes of 1 to 64"),
        ("bands", [64, 64], "at most 64 in all"),
        ("size", [100_000, 100_000], "16 to 1024 pixels a side"),
        ("size", "32,16", "size must be 2 values"),
        ("reduced", 2**40, "reduced must be between 0 and 65536"),
        ("std", [0.0, 1.0, 1.0], "std must be between"),
        ("projection", 65536, "missing projection.weight"),
        ("identities", 2**24, "missing heads.0.classifier.weight"),
    ],
)
def test_a_configuration_out_of_bounds_is_refused(field: str, value: object, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "r.safetensors"
    _reid(file)
    kind, config, tensors = parts_of(file)
    file.write_bytes(written(kind, {**config, field: value}, tensors))
    with pytest.raises(CheckpointError, match=reason):
        TorchEmbedder.load(file)


def test_nothing_is_allocated_that_the_file_does_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network of terabytes within all bounds: it is planned without memory, compared and refused."""
    file = tmp_path / "d.safetensors"
    tiny_disguise(TINY_DISGUISE).save(file)
    kind, config, tensors = parts_of(file)
    config["method"]["transform"] |= {"ved": [65536] * 16, "mlp": [65536] * 16, "latent": 65536}
    config["method"]["swapper"] |= {"width": 1024, "blocks": 64}
    file.write_bytes(written(kind, config, tensors))
    made: list[torch.device] = []
    linear = torch.nn.Linear.reset_parameters

    def noted(layer: torch.nn.Linear) -> None:
        made.append(layer.weight.device)
        linear(layer)

    monkeypatch.setattr(torch.nn.Linear, "reset_parameters", noted)
    with pytest.raises(CheckpointError, match="do not fit"):
        Disguise.load(file)
    assert made
    assert all(device.type == "meta" for device in made)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_weights_that_are_not_finite_are_refused(value: float, model: tuple[str, Path], tmp_path: Path) -> None:
    name, valid = model
    kind, config, tensors = parts_of(valid)
    found = [each for each, tensor in tensors.items() if tensor.is_floating_point() and tensor.numel()]
    if not found:
        pytest.skip("a method without weights")
    tensors[found[-1]].view(-1)[-1] = value
    file = tmp_path / "n.safetensors"
    file.write_bytes(written(kind, config, tensors))
    with pytest.raises(CheckpointError, match="holds NaN or infinite values"):
        VALID[name][1](file)

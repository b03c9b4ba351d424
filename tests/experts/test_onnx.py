"""ONNX experts: the network gets what it was promised, and what does not fit is refused with the reason."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

from tests.experts.onnx_files import MEAN_COLOUR, Node, write_onnx
from veilkit.errors import CheckpointError, MissingExtraError, UsageError
from veilkit.experts.onnx import OnnxEmbedder, open_onnx
from veilkit.experts.preprocessing import NORMALISATIONS, Preprocessing
from veilkit.experts.trial import try_embedder

SIGNED = Preprocessing((16, 8), *NORMALISATIONS["signed"])
IMAGES = torch.rand(5, 3, 16, 8, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def mean_colour(tmp_path: Path) -> Path:
    return write_onnx(tmp_path / "mean.onnx", MEAN_COLOUR)


def test_the_network_sees_prepared_images(mean_colour: Path) -> None:
    wanted = 2 * IMAGES.mean((2, 3)) - 1
    expert = OnnxEmbedder.load(mean_colour, SIGNED, batch_size=2)
    assert (expert.name, expert.dim, expert.differentiable) == ("mean", 3, False)
    torch.testing.assert_close(expert.embed(IMAGES), wanted)
    torch.testing.assert_close(expert.embed(IMAGES[1:2]), wanted[1:2])
    assert expert.embed(IMAGES[:0]).shape == (0, 3)
    reversed_order = Preprocessing((16, 8), *NORMALISATIONS["signed"], "bgr")
    torch.testing.assert_close(OnnxEmbedder.load(mean_colour, reversed_order).embed(IMAGES), wanted.flip(1))


def test_other_sizes_are_resized(mean_colour: Path) -> None:
    flat = torch.tensor([0.2, 0.4, 0.9])[None, :, None, None].expand(1, 3, 50, 41).contiguous()
    found = OnnxEmbedder.load(mean_colour, SIGNED).embed(flat)
    torch.testing.assert_close(found, torch.tensor([[-0.6, -0.2, 0.8]]), atol=1e-5, rtol=0)


def test_a_network_for_single_images_gets_them_one_by_one(tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "one.onnx", MEAN_COLOUR, input_shape=(1, 3, 16, 8), outputs=[("out", (1, 3))])
    found = OnnxEmbedder.load(path, SIGNED).embed(IMAGES)
    torch.testing.assert_close(found, 2 * IMAGES.mean((2, 3)) - 1)


def test_weights_in_the_file_are_used(tmp_path: Path) -> None:
    rows = [[1.0, 2.0], [0.0, -1.0], [0.5, 0.0]]
    nodes = (*MEAN_COLOUR[:1], Node("Flatten", ("pooled",), "flat"), Node("MatMul", ("flat", "w"), "out"))
    expert = OnnxEmbedder.load(write_onnx(tmp_path / "w.onnx", nodes, constants={"w": rows}), SIGNED)
    torch.testing.assert_close(expert.embed(IMAGES), (2 * IMAGES.mean((2, 3)) - 1) @ torch.tensor(rows))


def test_a_free_size_is_reported_as_free(tmp_path: Path, mean_colour: Path) -> None:
    free = write_onnx(tmp_path / "free.onnx", MEAN_COLOUR, input_shape=("n", 3, "h", "w"))
    assert open_onnx(free).size is None
    assert open_onnx(mean_colour).size == (16, 8)


def test_a_gradient_is_refused(mean_colour: Path) -> None:
    with pytest.raises(UsageError, match="can judge, but not supervise"):
        OnnxEmbedder.load(mean_colour, SIGNED).embed(IMAGES.clone().requires_grad_())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"input_shape": ("n", 16, 8, 3)}, r"expected an input of float32 \(N, 3, H, W\)"),
        ({"input_shape": ("n", 1, 16, 8)}, r"expected an input of float32 \(N, 3, H, W\)"),
        ({"input_shape": (4, 3, 16, 8)}, "exactly 4 images at a time"),
        ({"input_shape": ("n", 3, 32, 8)}, "takes images of 32x8, but the size given is 16x8"),
        ({"outputs": [("out", ("n", "d")), ("pooled", ("n", 3, 1, 1))]}, r"one output, but got 2 \(out, pooled\)"),
    ],
)
def test_networks_that_do_not_fit_are_refused(tmp_path: Path, options: dict[str, object], reason: str) -> None:
    path = write_onnx(tmp_path / "odd.onnx", MEAN_COLOUR, **options)
    with pytest.raises(CheckpointError, match=reason):
        OnnxEmbedder.load(path, SIGNED)


def test_an_output_that_is_no_feature_vector_is_refused(tmp_path: Path) -> None:
    maps = write_onnx(tmp_path / "maps.onnx", MEAN_COLOUR[:1], outputs=[("pooled", ("n", 3, 1, 1))])
    with pytest.raises(CheckpointError, match=r"but got \(1, 3, 1, 1\); is this network an embedder"):
        OnnxEmbedder.load(maps, SIGNED)


@pytest.mark.parametrize("content", [b"", b"not a network", b"\x80\x04pickle"])
def test_files_that_are_not_onnx_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "wrong.onnx"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"wrong\.onnx: (onnxruntime cannot open it|not an ONNX file)"):
        open_onnx(path)


def test_without_onnxruntime_the_extra_is_named(mean_colour: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"veilkit\[onnx\]"):
        open_onnx(mean_colour)


@pytest.mark.data
def test_a_public_reid_network_as_an_expert() -> None:
    data = os.environ.get("VEILKIT_DATA")
    weights = Path(os.environ.get("VEILKIT_WEIGHTS") or Path(data or "data").parent / "weights")
    path = weights / "osnet_x0_25_msmt17.onnx"
    if not path.is_file():
        pytest.skip(f"needs {path.name} in $VEILKIT_WEIGHTS, or in a weights folder beside $VEILKIT_DATA")
    expert = OnnxEmbedder.load(path, Preprocessing((256, 128), *NORMALISATIONS["imagenet"]))
    assert expert.dim == 512
    try_embedder(expert)
    pictures = torch.rand(2, 3, 8, 4, generator=torch.Generator().manual_seed(0))
    pictures = torch.nn.functional.interpolate(pictures, size=(256, 128), mode="bilinear")
    brighter = (pictures * 1.1).clamp(0, 1)
    same = torch.cosine_similarity(expert.embed(pictures), expert.embed(brighter))
    other = torch.cosine_similarity(expert.embed(pictures), expert.embed(brighter.flip(0)))
    assert (same > other).all()

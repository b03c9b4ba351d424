"""The arrays of a Keras file come to their places, and borders are TensorFlow's."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from veilkit.errors import CheckpointError
from veilkit.experts.fer_expression import MiniXception, XceptionBlock, _pooled, read_network

h5py = pytest.importorskip("h5py", reason="the extra hdf5 is not installed")
WIDTHS = (8, 16, 32, 64, 128)


def keras_file(path: Path) -> dict[str, np.ndarray]:
    """Random arrays of mini-XCEPTION in the layout of Keras."""
    generator = np.random.default_rng(0)
    shapes = {"conv2d_1/kernel": (3, 3, 1, 8), "conv2d_2/kernel": (3, 3, 8, 8), "conv2d_7/kernel": (3, 3, 128, 7)}
    shapes["conv2d_7/bias"] = (7,)
    norms = [8, 8]
    for number, (before, after) in enumerate(pairwise(WIDTHS)):
        shapes[f"conv2d_{number + 3}/kernel"] = (1, 1, before, after)
        for place, inputs in ((1, before), (2, after)):
            name = f"separable_conv2d_{2 * number + place}"
            shapes[f"{name}/depthwise_kernel"] = (3, 3, inputs, 1)
            shapes[f"{name}/pointwise_kernel"] = (1, 1, inputs, after)
        norms += [after] * 3
    for number, channels in enumerate(norms, 1):
        for field in ("gamma", "beta", "moving_mean", "moving_variance"):
            shapes[f"batch_normalization_{number}/{field}"] = (channels,)
    arrays = {name: generator.random(shape).astype(np.float32) for name, shape in shapes.items()}
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            layer, field = name.split("/")
            file.create_dataset(f"model_weights/{layer}/{layer}_1/{field}:0", data=array)
    return arrays


def test_arrays_come_to_their_places(tmp_path: Path) -> None:
    arrays = keras_file(tmp_path / "model.hdf5")
    network = read_network(tmp_path / "model.hdf5")
    assert torch.equal(network.second.weight[3, 5, 0, 2], torch.tensor(arrays["conv2d_2/kernel"][0, 2, 5, 3]))
    last = network.blocks[3]
    assert isinstance(last, XceptionBlock)
    depthwise = arrays["separable_conv2d_8/depthwise_kernel"]
    assert torch.equal(last.second.depthwise.weight[100, 0, 2, 1], torch.tensor(depthwise[2, 1, 100, 0]))
    # In the file's order of making, the norm of a shortcut comes before those of its block.
    assert np.array_equal(last.norm.weight.numpy(), arrays["batch_normalization_12/gamma"])
    assert np.array_equal(last.second.norm.running_var.numpy(), arrays["batch_normalization_14/moving_variance"])
    assert network(torch.zeros(2, 1, 64, 64)).shape == (2, 7)


def test_another_file_is_refused(tmp_path: Path) -> None:
    keras_file(tmp_path / "model.hdf5")
    with h5py.File(tmp_path / "model.hdf5", "a") as file:
        del file["model_weights/conv2d_5"]
    with pytest.raises(CheckpointError, match="mini-XCEPTION"):
        read_network(tmp_path / "model.hdf5")
    (tmp_path / "text.hdf5").write_text("no")
    with pytest.raises(CheckpointError, match="mini-XCEPTION"):
        read_network(tmp_path / "text.hdf5")


@pytest.mark.parametrize("side", [8, 15])
def test_pools_have_the_borders_of_tensorflow(side: int) -> None:
    maps = torch.randn(1, 1, side, side, generator=torch.Generator().manual_seed(0))
    count = math.ceil(side / 2)
    before = max((count - 1) * 2 + 3 - side, 0) // 2
    wanted = torch.empty(count, count)
    for row in range(count):
        for column in range(count):
            top, left = 2 * row - before, 2 * column - before
            wanted[row, column] = maps[0, 0, max(top, 0) : top + 3, max(left, 0) : left + 3].max()
    assert torch.equal(_pooled(maps)[0, 0], wanted)
    assert sum(p.numel() for p in MiniXception().parameters()) < 60_000
